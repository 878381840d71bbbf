#!/bin/bash
# How much longer work takes while it is sampled, with an empty event, culprit and perf, at the
# given rate and at culprit's default rate.
#
# First in turns of 12 ms: pieces of fixed work on every CPU, each piece timed (work.c); the control
# is another stretch without a sampler. That leaves out what the sampler's processes do, so their
# CPU time is stated beside. Then as a whole: every job of the mixed load once on each CPU, the
# samplers started and stopped for each run, every round in another order; a slowdown is a ratio to
# the same job on the same CPU without a sampler in the same round. -n rounds of the first, a third of
# them of the second.
. "$(dirname "$0")/lib.sh"
rounds=24 seconds=20
options "$@"

start daemon 0
default=$(daemon_status '.rate | round')
stop daemon
[ "$default" -gt 0 ] 2>/dev/null || die "the daemon states no rate"
samplers="empty-$rate culprit-$rate perf-$rate empty-$default culprit-$default perf-$default"

phases=(-x none= -x none= -x none= -x control=)
for name in $samplers; do
	start "$name" "${name#*-}"
	phases+=(-x "$name=${pid[$name]}")
done
for ((i = 0; i < rounds; i++)); do
	"$programs/work" -s 12 -t "$seconds" "${phases[@]}"
done >"$work/turns"
stop_all

wholes=$(((rounds + 2) / 3))
for ((i = 0; i < wholes; i++)); do
	for name in $(rotate $i none $samplers); do
		start "$name" "${name#*-}"
		t0=$EPOCHREALTIME
		before=$([ "$name" = none ] || cpu_time "${pid[$name]}")
		"$here/load" --work 1 | sed "s/^/$i $name /"
		after=$([ "$name" = none ] || cpu_time "${pid[$name]}")
		echo "$name $(calc "(${after:-0} - ${before:-0}) / ($EPOCHREALTIME - $t0) / $cpus")" \
			>>"$work/processes"
		stop "$name"
	done
done >"$work/rows"

in_turns() { # NAME
	sed -n "s/^phase=$1 .*slowdown=//p" "$work/turns"
}
processes() { # NAME
	awk -v name="$1" '$1 == name { print $2 }' "$work/processes"
}
# Slowdowns of all jobs; COLUMN 5 elapsed, 6 CPU time.
by_job() { # NAME COLUMN
	awk -v c="$1" -v k="$2" '{ t[$1, $2, $3, $4] += $k; cell[$1 SUBSEP $3 SUBSEP $4] }
	END { for (x in cell) { split(x, p, SUBSEP); base = t[p[1], "none", p[2], p[3]]
		if (base > 0) print t[p[1], c, p[2], p[3]] / base - 1 } }' "$work/rows"
}

header "" "in turns, %" "its processes, % of the machine" "whole jobs, elapsed, %" \
	"whole jobs, CPU time, %"
row control "$(in_turns control | spread %.2f 100)" "" "" ""
for name in $samplers; do
	row "${name/-/ at }/s" "$(in_turns "$name" | spread %.2f 100)" \
		"$(processes "$name" | spread %.3f 100)" "$(by_job "$name" 5 | spread %.2f 100)" \
		"$(by_job "$name" 6 | spread %.2f 100)"
done
echo
echo "$rounds rounds of $seconds s in turns, $wholes rounds of 9 jobs on each of $cpus CPUs;" \
	"median (quartiles); default rate $default/s."
turns=$(in_turns "culprit-$default" | summary | cut -d' ' -f1)
both=$(calc "$turns + $(processes "culprit-$default" | summary | cut -d' ' -f1)")
goal "under 1% at the default rate ($(figure %.2f "100 * $both")% with its processes)" "$both < 0.01"
