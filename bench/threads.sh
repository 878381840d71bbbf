#!/bin/bash
# Counting programs with threads (record --exact): what counting together, by thread and with locked
# instructions costs, and what it counts. Programs are scheduled differently in each run, so what waits
# and hands out work differs between any two; how large the largest such counts are is told. povray's
# picture differs from run to run, also unedited, so its counts are not compared. -n: rounds;
# user CPU times, in turns, of the file that nearly all of the time goes to.
. "$(dirname "$0")/lib.sh"
rounds=5
options "$@"
"$root/tools/packages" pigz || exit 3
"$here/program" --prepare || exit 1
export XDG_CACHE_HOME=$work/cache
inputs=$programs/accuracy
names=(xz zstd pigz sort povray)
same=(xz zstd pigz sort) # in every run

job() { # NAME [PREFIX...]
	local name=$1
	shift
	case $name in
	xz) "$@" xz -3 -T4 --block-size=500000 -k -c "$inputs/6m.txt" ;;
	zstd) "$@" zstd -9 -T4 -B500000 -q -c "$inputs/24m.txt" ;;
	pigz) "$@" pigz -p4 -n -c "$inputs/24m.txt" ;;
	sort) "$@" sort --parallel=4 "$inputs/24m.txt" ;;
	povray) "$@" povray "$here/jobs/job.pov" +W120 +H90 +WT4 +A0.3 -D -GA +O- +FP ;;
	esac
}

file_of() { # NAME
	case $1 in
	pigz) realpath "$(/sbin/ldconfig -p | sed -n 's|.*libz.so.1 (.*x86-64.*=> ||p' | head -1)" ;;
	sort) realpath "$(command -v sort)" ;;
	*) "$here/program" --files "$1" ;;
	esac
}

seconds_of() { # FILE COMMAND...: user CPU time to FILE
	local TIMEFORMAT=%U file=$1
	{ time "${@:2}" >"$work/out" 2>"$work/said"; } 2>>"$file" || die "$2: $(tail -1 "$work/said")"
}

declare -A option=([together]="" [thread]=--per-thread [atomic]=--atomic)
for name in "${names[@]}"; do
	job "$name" >"$work/$name.want" 2>/dev/null
	for kind in "${!option[@]}"; do
		"$culprit" edit --exact ${option[$kind]} "$(file_of "$name")" -o "$work/$name.$kind" || exit 1
	done
done
for round in $(seq "$rounds"); do
	for name in "${names[@]}"; do
		for kind in $(rotate "$round" plain together thread atomic); do
			binds=("$work/$name.$kind" "$(file_of "$name")")
			[ "$kind" != plain ] || binds=()
			seconds_of "$work/$name.$kind.s" job "$name" "$root/tools/bind" "${binds[@]}" --
			[ "$name" = povray ] || cmp "$work/out" "$work/$name.want" || die "$name: another output when counted $kind"
		done
	done
done
header program "plain, s" together "by thread" locked
for name in "${names[@]}"; do
	plain=$(summary <"$work/$name.plain.s" | cut -d' ' -f1)
	cells=()
	for kind in together thread atomic; do
		cells+=("$(figure %+.1f%% "100 * ($(summary <"$work/$name.$kind.s" | cut -d' ' -f1) / $plain - 1)")")
	done
	row "$name" "$plain" "${cells[@]}"
done
echo

# ---- what they count ----

# Of two texts of counts: blocks, how many differ, the largest that does; all and the difference of all executions.
compare() { # TRUTH OURS
	awk '$1 == "image" { image = $2 } $1 != "block" { next }
		NR == FNR { count[image, $2] = $4; n++; all += $4; next }
		{ ours += $4 }
		count[image, $2] != $4 { different++; most = $4 > most ? $4 : most }
		END { printf "%d %d %d %d %d\n", n, different, most, all, ours - all }' "$1" "$2"
}

header program "blocks" "executions" "locked, again: different (the largest)" "by thread: different (the largest)" \
	"by thread: executions more" "together: different (the largest)" "together: executions more" "called exact by thread, of procedures"
for name in "${same[@]}"; do
	for kind in atomic again thread together; do
		job "$name" "$culprit" record -q --exact ${option[${kind/again/atomic}]} -o "$work/$kind.db" -- \
			>"$work/out" 2>"$work/said" || die "$name: $(tail -1 "$work/said")"
		"$culprit" export -f counts -i "$work/$kind.db" >"$work/$kind.txt" || exit 1
		rm "$work/$kind.db"
	done
	cells=()
	for kind in again thread together; do
		read -r blocks different most all more < <(compare "$work/atomic.txt" "$work/$kind.txt")
		cells+=("$different ($most)")
		[ "$kind" = again ] || cells+=("$more")
	done
	row "$name" "$blocks" "$all" "${cells[@]}" "$(grep -c '^procedure.* exact$' "$work/thread.txt") of $(grep -c '^procedure' "$work/thread.txt")"
done
