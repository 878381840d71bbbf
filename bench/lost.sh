#!/bin/bash
# Lost samples at 20,000/s on each CPU under the mixed load, and the books: every sample attributed,
# unknown, lost or throttled, against the event's own count / period, and against a clock: the time
# the epoch lasted on all CPUs / period.
. "$(dirname "$0")/lib.sh"
rounds=5 seconds=15 rate=20000
options "$@"

for ((i = 0; i < rounds; i++)); do
	start_load 100000
	start culprit "$rate"
	sleep "$seconds"
	stop culprit
	stop_load
	lasted=$("$culprit" db ls -i "$work/culprit.db" --json | jq '.epochs[-1] | .ended - .started')
	"$culprit" top -i "$work/culprit.db" --json | jq -r --argjson lasted "$lasted" --argjson cpus "$cpus" \
		'.events[0] | [.attributed + .unknown, .unknown, .lost, .throttled, .missed, .expected, $lasted * $cpus * 1e9 / .period] | @tsv'
done >"$work/rows"

header samples unknown lost throttled missed "lost, %" "sum / event's count" "sum / clock"
while read -r samples unknown lost throttled missed expected clock; do
	sum=$(calc "$samples + $lost + $throttled")
	row "$samples" "$unknown" "$lost" "$throttled" "$missed" "$(calc "100 * $lost / $sum")" \
		"$(calc "$expected ? $sum / $expected : 0")" "$(calc "$sum / $clock")"
done <"$work/rows"
echo
echo "$rounds rounds of $seconds s at $rate samples/s on each of $cpus CPUs; samples include the unknown."
goal "lost under 0.1%" "$(awk '{ print $3 / ($1 + $3 + $4) }' "$work/rows" | sort -g | tail -1) < 0.001"
goal "the books agree within 1%" \
	"$(awk '{ d = $6 ? ($1 + $3 + $4) / $6 - 1 : 1; print d < 0 ? -d : d }' "$work/rows" | sort -g | tail -1) < 0.01"
