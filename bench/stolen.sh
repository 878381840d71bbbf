#!/bin/bash
# Time stolen from pinned spinners by the sampling interrupts, above that of an empty event, plus
# the CPU time of the tool's processes, under the mixed load.
#
# The samplers stand ready together and take turns of 20 ms (see spinner.c); a second empty event
# shows how far two equal things come out apart. The CPU time of the processes is measured after
# that, one tool at a time, over whole lives of a minute from start to exit: culprit reads the
# symbols of all that got samples before it ends, and perf record, as people type it, reads its
# samples again to find the files that got any (-B -N leaves that out; such a perf.data can be read
# on this machine only, while the files are there).
#
# perf takes samples; so does culprit with --no-edges, and these two are compared. By default culprit
# also interprets from some of its samples to see where branches go, at a share of its own
# (bench/follow.sh): it stands beside them.
. "$(dirname "$0")/lib.sh"
rounds=12 seconds=10 life=60
options "$@"
samplers=(empty control culprit-samples culprit perf)

start_load 100000
for name in "${samplers[@]}"; do
	start "$name" "$rate" $([ "$name" != culprit-samples ] || echo --no-edges)
	phases+=(-x "$name=${pid[$name]}")
done
for ((i = 0; i < rounds; i++)); do
	"$programs/spinner" -t "$seconds" -x none= "${phases[@]}" | sed "s/^/round=$i /"
done >"$work/spun"
stop_all

life() { # NAME COMMAND...: its CPU time as a share of the machine
	(
		"${@:2}" sleep "$life" >/dev/null 2>&1 || echo "$1 did not live to its end" >&2
		times
	) | awk -v name="$1" -v whole=$((life * cpus)) \
		'NR == 2 { gsub(/[ms]/, " "); print name, ($1 * 60 + $2 + $3 * 60 + $4) / whole }'
}
for ((i = 0; i < (rounds + 3) / 4; i++)); do
	rm -f "$work"/life.*
	life culprit-samples "$culprit" record -a -e cpu-clock -F "$rate" --no-edges -o "$work/life.db"
	life culprit "$culprit" record -a -e cpu-clock -F "$rate" -o "$work/life.edges.db"
	life perf "$perf" record -q -a -e cpu-clock -F "$rate" -o "$work/life.data"
	life bare "$perf" record -q -B -N -a -e cpu-clock -F "$rate" -o "$work/life.bare"
done >"$work/processes"
stop_load

column() { # NAME KEY
	sed -n "s/.* phase=$1 .* $2=\([^ ]*\).*/\1/p" "$work/spun"
}

# Stolen share above the empty event's, round by round.
above() { # NAME
	paste <(column "$1" share) <(column empty share) | awk '{ print $1 - $2 }'
}

processes() { # NAME
	awk -v name="$1" '$1 == name { print $2 }' "$work/processes"
}

both() { # NAME [PROCESSES]: median of one plus median of the other
	calc "$(above "$1" | summary | cut -d' ' -f1) + $(processes "${2:-$1}" | summary | cut -d' ' -f1)"
}

header "" "stolen, % of a CPU" "gaps a second" "median gap, us" "above the empty event, %" \
	"its processes, %" "both, % of the machine"
for name in none "${samplers[@]}"; do
	cells=("$name" "$(column "$name" share | spread %.2f 100)" "$(column "$name" rate | spread %.0f)"
		"$(column "$name" p50 | spread %.2f)" "$(above "$name" | spread %.3f 100)")
	case $name in
	culprit* | perf)
		cells+=("$(processes "$name" | spread %.3f 100)" "$(figure %.3f "100 * $(both "$name")")")
		;;
	*) cells+=(" " " ") ;;
	esac
	row "${cells[@]}"
done
row "perf -B -N" "" "" "" "" "$(processes bare | spread %.3f 100)" \
	"$(figure %.3f "100 * $(both perf bare)")"
echo
echo "$rounds rounds of $seconds s, lives of $life s; median (quartiles); $rate samples/s on each of $cpus CPUs."
goal "under 0.5% of the machine" "$(both culprit-samples) < 0.005"
goal "below perf's" "$(both culprit-samples) < $(both perf)"
