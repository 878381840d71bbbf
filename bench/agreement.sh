#!/bin/bash
# Agreement with perf: both sample the same load at the same time; the overlap of two profiles is
# the sum of min(p, q) over the procedures, p and q their shares.
#
# perf names no procedures in stripped programs, so its samples are taken as (file, address) from
# perf.data itself and given to the procedure with the nearest start below among those that culprit
# reports for that file (overlap.c). Two random halves of perf's own samples, compared the same way,
# tell how far two samples of this size can agree at all. Only what perf took while culprit did
# counts.
. "$(dirname "$0")/lib.sh"
rounds=3 seconds=90
options "$@"

for ((i = 0; i < rounds; i++)); do
	start_load 100000
	start perf "$rate" -k CLOCK_MONOTONIC
	rm -f "$work"/culprit.db*
	"$culprit" record -a -F "$rate" -o "$work/culprit.db" -- \
		sh -c "cat /proc/uptime; sleep $seconds; cat /proc/uptime" \
		>"$work/window" 2>"$work/culprit.out" || die "$(tail -3 "$work/culprit.out")"
	stop perf
	stop_load
	mapfile -t window < <(cut -d' ' -f1 "$work/window")
	"$culprit" top -i "$work/culprit.db" --json |
		jq -r '.rows[] | [.samples, .start, .image] | @tsv' >"$work/ours.tsv"
	"$programs/overlap" "$work/perf.data" "$work/ours.tsv" "${window[@]}" \
		2>"$work/differences.$i" ||
		die "$(tail -n 3 "$work/differences.$i" "$work/perf.out")"
done >"$work/rows"

percent() { # KEY LINE
	figure %.2f "100 * $(value "$1" "$2")"
}

header "culprit's samples" "perf's samples" procedures "overlap, %" "two samples of perf, %" \
	"by image, %" "perf's unmatched, %"
while read -r line; do
	row "$(value ours "$line")" "$(value theirs "$line")" "$(value procedures "$line")" \
		"$(percent overlap "$line")" "$(percent self "$line")" "$(percent images "$line")" \
		"$(percent unmatched "$line")"
done <"$work/rows"
echo
echo "$rounds rounds of $seconds s at $rate samples/s on each of $cpus CPUs." \
	"Largest differences (last round):"
sed 's/^/    /' "$work/differences.$((rounds - 1))"
goal "overlap at least 97%" \
	"$(sed 's/.*overlap=\([^ ]*\).*/\1/' "$work/rows" | summary | cut -d' ' -f1) >= 0.97"
