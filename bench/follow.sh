#!/bin/bash
# Why bursts stop at an unknown branch, and the most that following every vector instruction, wide ones
# and masks too, could bring: under the mixed load.
. "$(dirname "$0")/lib.sh"
rounds=3 seconds=30 rate=2000
options "$@"
make -s -C "$root" build/bench/follow || exit 1

start_load 100000
for ((i = 0; i < rounds; i++)); do
	for length in 32 64 200; do
		echo "length=$length $("$programs/follow" -n "$length" -F "$rate" -t "$seconds")"
	done
done >"$work/rows"
stop_load

share() { # LENGTH KEY
	sed -n "s/^length=$1 .* $2=\([^ ]*\).*/\1/p" "$work/rows" | spread %.2f 100
}
header "instructions" "with a branch, %" "stop at an unknown branch, %" \
	"would be known if vectors were followed" "unknown since the sample" "not to be read" \
	"first branch unknown, %" "would be known"
for length in 32 64 200; do
	row "$length" "$(share $length branch)" "$(share $length control)" \
		"$(share $length control_known)" "$(share $length control_sample)" \
		"$(share $length control_memory)" "$(share $length first)" \
		"$(share $length first_known)"
done
echo
echo "$rounds rounds of $seconds s; shares of bursts, median (quartiles); $rate samples/s on each of $cpus CPUs."
