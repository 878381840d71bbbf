#!/bin/bash
# Agreement with perf: both sample the same load at the same time; the overlap of two profiles is
# the sum of min(p, q) over the procedures, p and q their shares.
#
# perf names no procedures in stripped programs, so its samples are taken as (file, address) from
# perf.data itself and given to the procedure with the nearest start below among those that culprit
# reports for that file (overlap.c). Two random halves of perf's own samples, compared the same way,
# tell how far two samples of this size can agree at all.
. "$(dirname "$0")/lib.sh"
rounds=3 seconds=60
options "$@"

for ((i = 0; i < rounds; i++)); do
	start_load 100000
	start perf "$rate"
	start culprit "$rate"
	sleep "$seconds"
	stop culprit
	stop perf
	stop_load
	"$culprit" top -i "$work/culprit.db" --json |
		jq -r '.rows[] | [.samples, .start, .image] | @tsv' >"$work/ours.tsv"
	"$programs/overlap" "$work/perf.data" "$work/ours.tsv" 2>"$work/differences.$i"
done >"$work/rows"

header "culprit's samples" "perf's samples" procedures "overlap, %" "two samples of perf, %" \
	"by image, %" "perf's unmatched, %"
while read -r line; do
	row "$(value ours "$line")" "$(value theirs "$line")" "$(value procedures "$line")" \
		"$(calc "100 * $(value overlap "$line")")" "$(calc "100 * $(value self "$line")")" \
		"$(calc "100 * $(value images "$line")")" "$(calc "100 * $(value unmatched "$line")")"
done <"$work/rows"
echo
echo "$rounds rounds of $seconds s at $rate samples/s on each of $cpus CPUs. Largest differences (last round):"
sed 's/^/    /' "$work/differences.$((rounds - 1))"
goal "overlap at least 97%" \
	"$(sed 's/.*overlap=\([^ ]*\).*/\1/' "$work/rows" | summary | cut -d' ' -f1) >= 0.97"
