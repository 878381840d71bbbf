#!/bin/bash
# Takes a measure to a machine that has nothing of what it needs: a root with every file that one
# run of it here opened, which is how the programs' libraries, modules and inputs are found.
#
#   kit.sh pack FILE [CULPRIT...]         here: writes FILE (tar, gzip), with other builds of culprit if so named
#   kit.sh run FILE [OPTION...] [KIND...] there, as root: unpacks it, runs kinds.sh with these options in it
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

# A path as it is written, and what its links lead to: tar wants each of them.
links_of() { # PATH
	local rest=$1 at='' part
	while [ -n "$rest" ]; do
		rest=${rest#/}
		part=${rest%%/*}
		[[ $rest == */* ]] && rest=${rest#*/} || rest=
		case $part in
		'' | .) continue ;;
		..) at=${at%/*} && continue ;;
		esac
		if [ -L "$at/$part" ]; then
			echo "$at/$part"
			rest=$(readlink "$at/$part")/$rest
			[[ $rest != /* ]] || at=
		else
			at+=/$part
		fi
	done
	echo "$at"
}

# Files that are neither the kernel's nor somebody's for a while; the tree may lie among the latter.
lasting() {
	awk -v tree="$root/" 'index($0, tree) == 1 ? !/\/build\/bench\/(kinds|accuracy)\// : !/^\/(proc|sys|dev|run|tmp|var)\//'
}

# What is done there, in short: inputs are made, every program runs once, and one is measured.
rehearse() {
	local name
	rm -f "$root"/build/bench/accuracy/.* && "$here/program" --inputs || exit 1
	for name in $("$here/program" --names); do
		"$here/program" --files "$name" && "$here/program" "$name" && "$here/program" --short "$name" || exit 1
	done
	PROGRAMS=bzip2 "$here/kinds.sh" -s -n 1 copy null exact-refined checks
}

pack() { # FILE [CULPRIT...]
	local seen path
	"$root/tools/packages" strace || exit 3
	"$here/program" --prepare && make -s -C "$root" build/bench/cputime && mkdir -p "$(dirname "$1")" || exit 1
	seen=$(mktemp) || exit 1
	KIT=1 strace -f -qq --seccomp-bpf -y -s 4096 -e trace=%file -o "$seen" "$here/kit.sh" rehearse >/dev/null || exit 1
	# Tar calls the tree /culprit, wherever it is.
	{
		printf '%s\n' /bin/bash /bin/sh /lib64/ld-linux-x86-64.so.2 # the kernel opens these itself
		[ $# = 1 ] || realpath "${@:2}"
		grep -v ' = -1 ' "$seen" | grep -o '[<"]/[^">]*' | cut -c2-
	} | sort -u | lasting | while read -r path; do
		[ ! -f "$path" ] || links_of "$path"
	done | sort -u | sed 's,^/,,' | tar -C / -czf "$1" --no-recursion --transform "s,^${root#/}/,culprit/," -T - || exit 1
	rm "$seen"
	ls -l "$1"
}

# In a mount namespace of its own: nothing stays mounted.
inside() { # FILE [OPTION...]
	local to
	to=$(mktemp -d) && tar -C "$to" -xzf "$1" && mkdir -p "$to"/{dev,proc,tmp} && mount --bind "$to" "$to" &&
		mount --rbind /dev "$to/dev" && mount -t proc proc "$to/proc" || exit 3
	KIT=1 TMPDIR=/tmp ROWS=/rows chroot "$to" /bin/bash -c '
		/culprit/bench/program --inputs && exec /culprit/bench/kinds.sh "$@"' kit "${@:2}" || exit 1
	[ -z "${ROWS:-}" ] || cp "$to/rows" "$ROWS"
	umount -R "$to/dev" "$to/proc" && umount "$to" && rm -rf --one-file-system "$to"
}

case ${1:-}:$# in
pack:1 | run:1 | :*)
	echo "usage: kit.sh pack FILE [CULPRIT...] | run FILE [OPTION...] [KIND...]" >&2
	exit 2
	;;
pack:* | rehearse:* | inside:*) "$@" ;;
run:*) unshare --mount "$here/kit.sh" inside "${@:2}" ;;
esac
