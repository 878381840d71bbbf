#!/bin/bash
# Lost samples at 20,000/s on each CPU under the mixed load, and the books: every sample attributed,
# unknown, lost or throttled, against the event's own count / period, and against the clock: the
# seconds of sleep that were recorded, on all CPUs / period. Missed are the ticks that the timer skipped
# because the machine (or its host) was late.
. "$(dirname "$0")/lib.sh"
rounds=5 seconds=15 rate=20000
options "$@"

start_load 100000
for ((i = 0; i < rounds; i++)); do
	rm -f "$work"/culprit.db*
	"$culprit" record -a -F "$rate" -o "$work/culprit.db" -- sleep "$seconds" 2>"$work/culprit.out" ||
		die "$(tail -3 "$work/culprit.out")"
	"$culprit" top -i "$work/culprit.db" --json | jq -r --argjson clock $((seconds * cpus)) \
		'.events[0] | [.attributed + .unknown, .unknown, .lost, .throttled, .missed, .expected,
			$clock * 1e9 / .period] | @tsv'
done >"$work/rows"
stop_load

header samples unknown lost throttled missed "lost, %" "sum / event's count" "with missed" \
	"sum / clock"
while read -r samples unknown lost throttled missed expected clock; do
	sum=$(calc "$samples + $lost + $throttled")
	row "$samples" "$unknown" "$lost" "$throttled" "$missed" "$(figure %.4f "100 * $lost / $sum")" \
		"$(figure %.4f "$sum / $expected")" "$(figure %.4f "($sum + $missed) / $expected")" \
		"$(figure %.4f "$sum / $clock")"
done <"$work/rows"
echo
echo "$rounds rounds of $seconds s at $rate samples/s on each of $cpus CPUs;" \
	"samples include the unknown."
goal "lost under 0.1%" "$(awk '{ print $3 / ($1 + $3 + $4) }' "$work/rows" | sort -g | tail -1) < 0.001"
goal "the books agree within 1%" \
	"$(awk '{ d = ($1 + $3 + $4) / $6 - 1; print d < 0 ? -d : d }' "$work/rows" |
		sort -g | tail -1) < 0.01"
