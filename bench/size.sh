#!/bin/bash
# Bytes kept for the same 60 s of the mixed load, both tools at once: perf.data against culprit's
# profile data; cached symbols and code counted apart.
. "$(dirname "$0")/lib.sh"
rounds=1 seconds=60
options "$@"

for ((i = 0; i < rounds; i++)); do
	start_load 100000
	start perf "$rate"
	start culprit "$rate"
	sleep "$seconds"
	stop culprit
	stop perf
	stop_load
	"$culprit" db ls -i "$work/culprit.db" --json |
		jq -r --argjson perf "$(stat -c %s "$work/perf.data")" '.size |
			[$perf, .file, .profiles, .totals, .procedures, .code, .images, .other] | @tsv'
done >"$work/rows"

kilo() { # COLUMNS (an awk expression)
	awk "{ print $1 }" "$work/rows" | spread %.1f 0.001
}
# totals, processes and accounts are profile data; procedures, code and images are the cache.
profile='$3 + $4 + $8' cache='$5 + $6 + $7'
header "" KB
row "perf.data" "$(kilo '$1')"
row "profile data" "$(kilo "$profile")"
row "of it: profiles" "$(kilo '$3')"
row "of it: totals by process, thread, CPU, cgroup" "$(kilo '$4')"
row "of it: the rest (processes, accounts, events)" "$(kilo '$8')"
row "cached symbols, code, images" "$(kilo "$cache")"
row "the whole file" "$(kilo '$2')"
row "perf.data / profile data" "$(awk "{ print \$1 / ($profile) }" "$work/rows" | spread %.1f)"
echo
echo "$rounds rounds of $seconds s at $rate samples/s on each of $cpus CPUs."
goal "at most 1/50 of perf.data" \
	"$(awk "{ print \$1 / ($profile) }" "$work/rows" | sort -g | head -1) >= 50"
goal "cache under 2 MB" "$(awk "{ print $cache }" "$work/rows" | sort -g | tail -1) < 2e6"
