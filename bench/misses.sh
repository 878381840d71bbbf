#!/bin/bash
# Stall cycles that 'why' blames on caches against simulated cache misses, by procedure (the paper's
# Figure 10): the twelve programs, each run a recording, and callgrind with this machine's first
# caches, twice: with the second cache in the place of the last, and with the third. As in the paper
# the counts are exact ones, so that it is the blame that is looked at and not the frequencies; with
# estimated ones the figures stand beside.
#
# What misses cost is measured here, with loads that depend on each other (latency.c): in half of the
# first cache, a quarter of the second, the third, and beyond; and with lines of code that jump to each
# other (fetch.c): in half of the first cache, in as much of the second as branches are remembered for,
# and in the third. The third is as large as what loads still find there, for others may
# use most of it: the most of 2, 4, 8 ... times the second in which they take less than twice as long as
# in 2 times. CACHES gives all this as a quieter moment had it, in the words of the last line. Misses of
# stores do not count: what waits for them is the store buffer. Misses that overlap or are foreseen cost
# less than the simulation can know: of no procedure they cost more than all of its time.
#
# A procedure that takes long has more of everything. So shares of its time are compared as well, and
# what the time alone would say is printed.
#
# Also the misses themselves: what excursions found gone from the first caches, against what the simulation did (each program's sum made the same).
#
# Procedures with at least -n samples. PROGRAMS and RECORDINGS: see recordings.sh. KEEP is a folder for
# the figures of each procedure.
. "$(dirname "$0")/lib.sh"
rounds=200 seconds=25
options "$@"
make -s -C "$root" build/bench/misses build/bench/blamed build/bench/gone build/bench/latency build/bench/fetch || exit 1
. "$here/recordings.sh"

# Not every machine tells the ways.
ways() { # LEVEL1_DCACHE
	local ways
	ways=$(getconf "$1_ASSOC")
	case $ways in '' | undefined | 0) ways=8 ;; esac
	echo "$ways"
}
geometry() { # LEVEL1_DCACHE
	echo "$(getconf "$1_SIZE"),$(ways "$1"),$(getconf "$1_LINESIZE")"
}

# Nanoseconds of a load: the median, for neighbours come and go.
nanoseconds_in() { # BYTES [PROGRAM]
	for _ in 1 2 3 4 5 6 7; do "$programs/${2:-latency}" "$1"; done | summary | cut -d' ' -f1
}

# Prints bytes of the third cache, what a miss of the first, second and third costs, and what one of
# code of the first and second does.
measure_caches() {
	local second in_first in_second in_third beyond third size ns longest code
	second=$(getconf LEVEL2_CACHE_SIZE) third=$((second * 2))
	in_first=$(nanoseconds_in $(($(getconf LEVEL1_DCACHE_SIZE) / 2)))
	in_second=$(nanoseconds_in $((second / 4)))
	in_third=$(nanoseconds_in "$third")
	beyond=$(nanoseconds_in $((second * 64)))
	longest=$(calc "2 * $in_third")
	for ((size = third * 2; size < second * 64; size *= 2)); do
		ns=$(nanoseconds_in "$size")
		[ "$(calc "$ns < $longest")" = 1 ] || break
		third=$size in_third=$ns
	done
	code=$(nanoseconds_in $((second / 8)) fetch)
	echo "$third $(calc "$in_second - $in_first") $(calc "$in_third - $in_second") $(calc "$beyond - $in_third")" \
		"$(calc "$code - $(nanoseconds_in $(($(getconf LEVEL1_ICACHE_SIZE) / 2)) fetch)")" \
		"$(calc "$(nanoseconds_in $((second * 2)) fetch) - $code")"
}
[ -n "${CACHES:-}" ] || CACHES=$(measure_caches)
read -r third near far memory near_code far_code <<<"$CACHES"

# What a sample stands for.
nanoseconds() { # DATABASE
	sqlite3 "$1" "SELECT CASE unit WHEN 'ns' THEN period ELSE period / cycles_per_ns END FROM events LIMIT 1"
}

# A line for each procedure: name, image, start... see the awk below.
compare() { # NAME DATABASE
	awk -v name="$1" -v repeats="$(repeats "$1")" -v least="$rounds" -v near="$near" -v far="$far" \
		-v memory="$memory" -v near_code="$near_code" -v far_code="$far_code" -v sample="$(nanoseconds "$2")" '
	FILENAME ~ /misses$/ {
		i[$1, $2] = near_code * $3 + far_code * $5; d[$1, $2] = near * $4 + far * $6; prefetches[$1, $2] = $7
		missed["i", $1, $2] = $3; missed["d", $1, $2] = $4
		next
	}
	FILENAME == "/dev/stdin" { gone["i", $1, $2] = $3; gone["d", $1, $2] = $4; next }
	FILENAME ~ /far[0-9]+$/ { d[$1, $2] += memory * $6; next }
	function at_most(time, cost) { return cost < time ? cost : time }
	($1, $2) in i && $4 >= least {
		time = sample * $4
		data = at_most(time, repeats * d[$1, $2]); code = at_most(time, repeats * i[$1, $2])
		print name, $2, ($12 + $13) / 2, data, ($16 + $17) / 2, code, ($12 + $13) / 2 / $4,
			data / time, ($16 + $17) / 2 / $4, code / time, $4, repeats * d[$1, $2],
			gone["d", $1, $2] + 0, missed["d", $1, $2], gone["i", $1, $2] + 0, missed["i", $1, $2]
	}' "$inputs/$1.misses" "$inputs/$1.far$third" /dev/stdin <("$programs/blamed" "$2") < <("$programs/gone" "$2") |
		awk '{ row[NR] = $0; a += $13; b += $14; c += $15; d += $16 }
		END {
			for (k = 1; k <= NR; k++) {
				$0 = row[k]
				$13 *= a > 0 ? b / a : 0; $15 *= c > 0 ? d / c : 0
				print
			}
		}'
}

for name in "${names[@]}"; do
	caches=(--cache-sim=yes --I1="$(geometry LEVEL1_ICACHE)" --D1="$(geometry LEVEL1_DCACHE)")
	simulate "$name" caches misses "$programs/misses" "${caches[@]}" --LL="$(geometry LEVEL2_CACHE)"
	simulate "$name" "third$third" "far$third" "$programs/misses" "${caches[@]}" \
		--LL="$third,$((2 * $(ways LEVEL2_CACHE))),$(getconf LEVEL2_CACHE_LINESIZE)"
	record "$name"
	count_exactly "$name"
	compare "$name" "$recordings/$name.exact.db" >>"$work/rows"
	compare "$name" "$recordings/$name.db" >>"$work/estimated"
done

[ -z "${KEEP:-}" ] || cp "$work/rows" "$work/estimated" "$KEEP"
correlation() { # COLUMN COLUMN [NAME]
	awk -v a="$1" -v b="$2" -v name="${3:-}" '
	name == "" || $1 == name { n++; x += $a; y += $b; xx += $a * $a; yy += $b * $b; xy += $a * $b }
	END {
		v = (n * xx - x * x) * (n * yy - y * y)
		if (n > 2 && v > 0) printf "%.2f", (n * xy - x * y) / sqrt(v); else print "-"
	}' "${rows:-$work/rows}"
}
estimated() { # COLUMN COLUMN [NAME]: the same without exact counts
	rows=$work/estimated correlation "$@"
}
line() { # TITLE [NAME]
	row "$1" "$(awk -v name="${2:-}" 'name == "" || $1 == name' "$work/rows" | wc -l)" \
		"$(correlation 3 4 "${2:-}")" "$(correlation 5 6 "${2:-}")" "$(estimated 3 4 "${2:-}")" \
		"$(estimated 5 6 "${2:-}")" "$(correlation 7 8 "${2:-}")" "$(correlation 9 10 "${2:-}")" \
		"$(correlation 11 4 "${2:-}")" "$(correlation 11 6 "${2:-}")" \
		"$(correlation 13 14 "${2:-}")" "$(correlation 15 16 "${2:-}")"
}

header "" "procedures" "D-cache" "I-cache" "D-cache, estimated" "I-cache, estimated" "D-cache, shares" \
	"I-cache, shares" "time and D-cache" "time and I-cache" "loads found gone" "lines of code found gone"
for name in "${names[@]}"; do
	line "$name" "$name"
done
line "all" ""
echo
echo "Correlation of stall cycles (the middle of their range) with what simulated misses cost: $near ns for" \
	"one of the first caches, $far ns more for one of the second, $memory ns more for one of the third" \
	"($((third >> 20)) MB); of code $near_code and $far_code ns. With more than the time for misses that overlap" \
	"$(correlation 3 12) for the D-cache."
echo "CACHES=\"$CACHES\""
goal "D-cache: 0.8" "$(or_zero "$(correlation 3 4)") >= 0.8"
goal "I-cache: 0.8" "$(or_zero "$(correlation 5 6)") >= 0.8"
