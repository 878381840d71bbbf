#!/bin/bash
# The interpreter in the interrupt under the mixed load: what a burst takes by its length, how often it
# sees a branch, where it stops; what it costs work above plain sampling, in turns (work.c); and what
# the daemon's default of edge samples costs.
. "$(dirname "$0")/lib.sh"
rounds=5 seconds=10
options "$@"
make -s -C "$root" build/bench/bursts || exit 1

start_load 100000
for ((i = 0; i < rounds; i++)); do
	for length in 1 16 32 64; do
		echo "length=$length $("$programs/bursts" -x -n "$length" -F "$rate" -t "$seconds")"
	done
	echo "length=32v $("$programs/bursts" -x -v -n 32 -F "$rate" -t "$seconds")"
done >"$work/rows"
start daemon 0
sleep $((seconds * 3))
edges=$(daemon_status .interpreting)
wrong=$(daemon_status .bursts_wrong)
stop daemon
stop_load

"$culprit" record -q -a --no-edges -e cpu-clock -F "$rate" -o "$work/plain.db" &
pid[plain]=$!
"$programs/bursts" -x -n 16 -F "$rate" >/dev/null &
pid[burst16]=$!
sleep 2
for ((i = 0; i < 2 * rounds; i++)); do
	"$programs/work" -s 12 -t "$seconds" -x none= -x none= -x plain="${pid[plain]}" \
		-x burst16="${pid[burst16]}"
done >"$work/turns"
stop_all

figures() { # LENGTH KEY
	sed -n "s/^length=$1 .* $2=\([^ ]*\).*/\1/p" "$work/rows"
}
slowdown() { # NAME
	sed -n "s/^phase=$1 .*slowdown=//p" "$work/turns"
}
above() {
	paste <(slowdown burst16) <(slowdown plain) | awk '{ print $1 - $2 }'
}
middle() {
	summary | cut -d' ' -f1
}
header "instructions" "ns a burst" "steps" "with a branch, %" "stops at an unknown instruction, %" \
	"at an unknown branch, %" "longest, us"
for length in 1 16 32 64 32v; do
	row "$length" "$(figures $length ns | spread %.0f)" "$(figures $length steps | spread %.1f)" \
		"$(figures $length branch | spread %.2f 100)" \
		"$(figures $length instruction | spread %.3f 100)" \
		"$(figures $length control | spread %.2f 100)" \
		"$(figures $length longest | spread %.0f 0.001)"
done
echo
echo "32v: with inputs, run again in user space: $(figures 32v wrong | awk '{ s += $1 } END { print s }') of" \
	"$(figures 32v again | awk '{ s += $1 } END { print s }') came out wrong."
echo "Slowdown at $rate/s: plain $(slowdown plain | spread %.2f 100)%, with 16 instructions" \
	"$(slowdown burst16 | spread %.2f 100)%, above plain $(above | spread %.2f 100)%."
echo "The daemon at its default interprets for $(figure %.3f "100 * $edges")% of the machine;" \
	"$wrong bursts came out wrong."
echo "$rounds rounds of $seconds s; median (quartiles); $rate samples/s on each of $cpus CPUs."
goal "16 instructions in 1.5 us" "$(figures 16 ns | middle) < 1500"
goal "32 instructions in 2.5 us" "$(figures 32 ns | middle) < 2500"
goal "a branch in 97% of the runs of 32" "$(figures 32 branch | middle) >= 0.97"
goal "unknown instructions stop under 1%" "$(figures 32 instruction | middle) < 0.01"
goal "under 2% above plain sampling" "$(above | middle) < 0.02"
goal "edge samples under 0.3% of the machine" "$edges < 0.003"
