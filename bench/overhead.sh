#!/bin/bash
# What interpreting costs work above plain sampling, by the length of bursts and by how many samples
# have one (the ASPLOS 2000 paper's table of overheads), in turns (work.c).
. "$(dirname "$0")/lib.sh"
rounds=10 seconds=20
options "$@"
make -s -C "$root" build/bench/bursts || exit 1
lengths=(16 64 256) everies=(1 4 16)

"$culprit" record -q -a --no-edges -e cpu-clock -F "$rate" -o "$work/plain.db" &
pid[plain]=$!
phases=(-x none= -x none= -x plain="${pid[plain]}")
for length in "${lengths[@]}"; do
	for every in "${everies[@]}"; do
		"$programs/bursts" -x -n "$length" -e "$every" -F "$rate" >/dev/null &
		pid[b$length-$every]=$!
		phases+=(-x "b$length-$every=$!")
	done
done
sleep 3
for ((i = 0; i < rounds; i++)); do
	"$programs/work" -s 12 -t "$seconds" "${phases[@]}"
done >"$work/turns"
stop_all

slowdown() { # NAME
	sed -n "s/^phase=$1 .*slowdown=//p" "$work/turns"
}
above() { # NAME
	paste <(slowdown "$1") <(slowdown plain) | awk '{ print $1 - $2 }'
}
header "above plain sampling, %" "from every sample" "from one in 4" "from one in 16"
for length in "${lengths[@]}"; do
	cells=()
	for every in "${everies[@]}"; do
		cells+=("$(above "b$length-$every" | spread %.2f 100)")
	done
	row "$length instructions" "${cells[@]}"
done
echo
echo "Plain sampling: $(slowdown plain | spread %.2f 100)%. $rounds rounds of $seconds s; median" \
	"(quartiles); $rate samples/s on each of $cpus CPUs, user programs only."
