#!/bin/bash
# Do the patched programs in a folder made by prepare.sh write, byte for byte, what the others do?
#
#	same.sh FOLDER
here=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 2
work=$(mktemp -d) && trap 'rm -r "$work"' EXIT
count=0 bad=0

compare() { # PROGRAM INPUT ARGUMENT...; PROGRAM with % for before and after
	local program=$1 input=$2
	shift 2
	count=$((count + 1))
	"${program/\%/before}" "$@" <"$input" >"$work/before" 2>/dev/null
	"${program/\%/after}" "$@" <"$input" >"$work/after" 2>/dev/null
	[ -s "$work/before" ] && cmp -s "$work/before" "$work/after" && return
	bad=$((bad + 1))
	echo "differs: $program $* <$input" >&2
}

# All ranges of samples (65535 needs a divider), colour and grey, dithered and not.
for picture in Garden Storm; do
	for colors in 2 16 256; do
		for maxval in 7 255 1023 65535; do
			pamdepth -quiet $maxval $picture.ppm | pamscale -quiet -xsize 300 >"$work/3"
			ppmtopgm "$work/3" >"$work/1"
			for planes in 1 3; do
				pnmcolormap -quiet $colors "$work/$planes" >"$work/map"
				for how in -nofloyd "-floyd -randomseed=3"; do
					compare netpbm.%/editor/pnmremap "$work/$planes" $how \
						-mapfile "$work/map"
				done
			done
		done
	done
done
# What ccrypt encrypts is different each time (it draws a seed), so the other one must decrypt it.
for size in 0 1 31 32 33 4096 1000000; do
	head -c $size sources.tar >"$work/plain"
	for pair in "before after" "after before"; do
		set -- $pair
		count=$((count + 1))
		ccrypt.$1/src/ccrypt -e -K word <"$work/plain" |
			ccrypt.$2/src/ccrypt -d -K word | cmp -s - "$work/plain" && continue
		bad=$((bad + 1))
		echo "differs: ccrypt, $size bytes" >&2
	done
done
cc -O2 -DHAVE_CONFIG_H -Iccrypt.before -Iccrypt.before/src "$here/blocks.c" \
	ccrypt.after/src/rijndael.c ccrypt.after/src/tables.c -o "$work/blocks" && "$work/blocks" ||
	bad=$((bad + 1))
echo "$count outputs compared, $bad differ"
[ $bad = 0 ]
