#!/bin/bash
# What it costs inside the interrupt to keep registers for pairs of samples, by how many samples
# begin one, on the mixed load; in turns, by the kernel's own statistics. The sampler is alone: no
# interpreter. And what becomes of pairs.
. "$(dirname "$0")/lib.sh"
rounds=5 seconds=12
options "$@"
make -s -C "$root" build/bench/pairs || exit 1
restore_stats=$(sysctl -n kernel.bpf_stats_enabled)
sysctl -q kernel.bpf_stats_enabled=1 || die "kernel.bpf_stats_enabled cannot be set"
usual=$((rate / 128 > 8 ? rate / 128 : 8)) # as target.c chooses
settings=$([ $usual = 8 ] && echo 1 || echo 8 1)

start_load 100000
for ((i = 0; i < rounds; i++)); do
	# shellcheck disable=SC2086
	"$programs/pairs" -F "$rate" -t "$seconds" 0 "$usual" $settings
done >"$work/rows"
stop_load

figures() { # EVERY KEY
	sed -n "s/^every=$1 .*\b$2=\([^ ]*\).*/\1/p" "$work/rows"
}
total() { # EVERY KEY
	figures "$1" "$2" | awk '{ s += $1 } END { printf "%d", s }'
}
# Of those that ended, which need not have begun in a turn of the same kind.
percent() { # EVERY KEY
	local ended=0 key
	for key in pairs apart lapsed dropped; do
		ended=$((ended + $(total "$1" $key)))
	done
	figure %.1f "100 * $(total "$1" "$2") / ($ended ? $ended : 1)"
}

header "begun at one sample in" "BPF run time, ns a sample" "more than none" "begun" "pairs, %" \
	"apart, %" "lapsed, %" "dropped, %"
row none "$(figures 0 ns | spread %.0f)" "" "" "" "" "" ""
for every in $usual $settings; do
	row "$every" "$(figures "$every" ns | spread %.0f)" \
		"$(paste -d- <(figures "$every" ns) <(figures 0 ns) | bc -l | spread %.0f)" \
		"$(total "$every" begun)" "$(percent "$every" pairs)" "$(percent "$every" apart)" \
		"$(percent "$every" lapsed)" "$(percent "$every" dropped)"
done
echo
echo "$rounds rounds of $seconds s in turns of 50 ms; median (quartiles); $rate samples/s on each of $cpus CPUs."
more=$(paste -d- <(figures "$usual" ns) <(figures 0 ns) | bc -l | summary | cut -d' ' -f1)
goal "pairs cost under 0.15 us a sample in the mean" "$more < 150"
