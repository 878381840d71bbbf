#!/bin/bash
# How much longer a fixed piece of work takes: every job of the mixed load once on each CPU, with
# nothing, an empty event, culprit and perf, at the given rate and at culprit's default rate. The
# samplers are started and stopped for each run; every round has another order. A slowdown is a
# ratio to the same job on the same CPU without a sampler in the same round.
. "$(dirname "$0")/lib.sh"
rounds=10 seconds=1 # seconds: how many times each job
options "$@"

start daemon 0
default=$(daemon_status '.rate | round')
stop daemon
[ "$default" -gt 0 ] 2>/dev/null || die "the daemon states no rate"

configurations="none empty:$rate culprit:$rate perf:$rate empty:$default culprit:$default perf:$default"
for ((i = 0; i < rounds; i++)); do
	for c in $(rotate $i $configurations); do
		name=${c%%:*}
		start "$name" "${c##*:}"
		"$here/load" --work "$seconds" | sed "s/^/$i $c /"
		stop "$name"
	done
done >"$work/rows"

# Slowdowns of all jobs, or of the whole work in each round; COLUMN 5 elapsed, 6 CPU time.
by_job() { # CONFIGURATION COLUMN
	awk -v c="$1" -v k="$2" '{ t[$1, $2, $3, $4] += $k; cell[$1 SUBSEP $3 SUBSEP $4] }
	END { for (x in cell) { split(x, p, SUBSEP); base = t[p[1], "none", p[2], p[3]]
		if (base > 0) print t[p[1], c, p[2], p[3]] / base - 1 } }' "$work/rows"
}
by_round() { # CONFIGURATION COLUMN
	awk -v c="$1" -v k="$2" '{ t[$1, $2] += $k; round[$1] }
	END { for (r in round) print t[r, c] / t[r, "none"] - 1 }' "$work/rows"
}

header "" "elapsed, % by job" "elapsed, % by round" "CPU time, % by job" "CPU time, % by round"
for c in ${configurations#none }; do
	row "${c/:/ at } /s" "$(by_job "$c" 5 | spread %.2f 100)" "$(by_round "$c" 5 | spread %.2f 100)" \
		"$(by_job "$c" 6 | spread %.2f 100)" "$(by_round "$c" 6 | spread %.2f 100)"
done
echo
echo "$rounds rounds, 9 jobs on each of $cpus CPUs; median (quartiles); default rate $default/s."
goal "under 1% at the default rate" "$(by_job "culprit:$default" 5 | summary | cut -d' ' -f1) < 0.01"
