#!/bin/bash
# Stall cycles that 'why' blames on caches against simulated cache misses, by procedure (the paper's
# Figure 10): the twelve programs as recorded for accuracy.sh, and callgrind with this machine's first
# caches and its second one in the place of the last. What misses cost is measured here: loads that depend on
# each other, in half of the first and the second cache and in eight times the second (latency.c). Misses of
# stores do not count: what waits for them is the store buffer. Procedures with at least -n samples. PROGRAMS and RECORDINGS: see recordings.sh.
. "$(dirname "$0")/lib.sh"
rounds=200 seconds=25
options "$@"
make -s -C "$root" build/bench/misses build/bench/blamed build/bench/latency || exit 1
. "$here/recordings.sh"

# Size, ways and line; not every machine tells the ways.
geometry() { # LEVEL1_DCACHE
	local ways
	ways=$(getconf "$1_ASSOC")
	case $ways in undefined | 0) ways=8 ;; esac
	echo "$(getconf "$1_SIZE"),$ways,$(getconf "$1_LINESIZE")"
}

second=$(getconf LEVEL2_CACHE_SIZE)
read -r ns1 ns2 ns3 < <("$programs/latency" $(($(getconf LEVEL1_DCACHE_SIZE) / 2)) $((second / 2)) $((second * 8)))
near=$(calc "$ns2 - $ns1") far=$(calc "$ns3 - $ns2")

for name in "${names[@]}"; do
	simulate "$name" caches misses "$programs/misses" --cache-sim=yes \
		--I1="$(geometry LEVEL1_ICACHE)" --D1="$(geometry LEVEL1_DCACHE)" \
		--LL="$(geometry LEVEL2_CACHE)"
	record "$name"
	awk -v name="$name" -v repeats="$(repeats "$name")" -v least="$rounds" -v near="$near" -v far="$far" '
	NR == FNR { i[$1, $2] = near * $3 + far * $5; d[$1, $2] = near * $4 + far * $6; next }
	($1, $2) in i && $4 >= least {
		print name, $2, ($12 + $13) / 2, repeats * d[$1, $2], ($16 + $17) / 2, repeats * i[$1, $2]
	}' "$inputs/$name.misses" <("$programs/blamed" "$recordings/$name.db")
done >"$work/rows"

correlation() { # COLUMN COLUMN [NAME]
	awk -v a="$1" -v b="$2" -v name="${3:-}" '
	name == "" || $1 == name { n++; x += $a; y += $b; xx += $a * $a; yy += $b * $b; xy += $a * $b }
	END {
		v = (n * xx - x * x) * (n * yy - y * y)
		if (n > 2 && v > 0) printf "%.2f", (n * xy - x * y) / sqrt(v); else print "-"
	}' "$work/rows"
}
line() { # TITLE [NAME]
	row "$1" "$(grep -c "^${2:-}" "$work/rows")" "$(correlation 3 4 "${2:-}")" "$(correlation 5 6 "${2:-}")"
}

header "" "procedures" "D-cache" "I-cache"
for name in "${names[@]}"; do
	line "$name" "$name"
done
line "all" ""
echo
echo "Correlation of stall cycles (the middle of their range) with what simulated misses cost: $near ns for" \
	"one of the first caches, $far ns more for one of the second."
goal "D-cache: 0.8" "$(or_zero "$(correlation 3 4)") >= 0.8"
goal "I-cache: 0.8" "$(or_zero "$(correlation 5 6)") >= 0.8"
