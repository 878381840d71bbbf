#!/bin/bash
# Samples that could not be placed, under the mixed load with 500 short processes a second.
. "$(dirname "$0")/lib.sh"
rounds=5 seconds=20 short=500
options "$@"

for ((i = 0; i < rounds; i++)); do
	start_load $((seconds + 3)) --short $short
	start culprit "$rate"
	sleep "$seconds"
	stop culprit
	wait "$load"
	load=
	"$culprit" top -i "$work/culprit.db" --json |
		jq -r --arg reached "$(value rate "$(cat "$work/load.out")")" \
			'.events[0] | "\(.attributed + .unknown) \(.unknown) \(.lost) \($reached)"'
done >"$work/rows"

header "samples" "unknown" "unknown, %" "lost" "short processes/s"
while read -r samples unknown lost reached; do
	row "$samples" "$unknown" "$(figure %.4f "100 * $unknown / $samples")" "$lost" "$reached"
done <"$work/rows"
echo
share=$(awk '{ print $2 / $1 }' "$work/rows")
echo "Unknown: $(spread %.4f 100 <<<"$share")%; $rounds rounds of $seconds s at $rate samples/s" \
	"on each of $cpus CPUs; median (quartiles)."
goal "under 0.5%" "$(summary <<<"$share" | cut -d' ' -f1) < 0.005"
goal "the paper's 0.05%" "$(summary <<<"$share" | cut -d' ' -f1) < 0.0005"
