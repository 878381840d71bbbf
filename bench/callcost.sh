#!/bin/bash
# What call paths cost above samples without them, at 5,200 a second on each CPU of a machine under the
# mixed load, beside perf record --call-graph dwarf: time stolen from pinned spinners by the interrupts
# (the samplers take turns of 20 ms: see stolen.sh), CPU time of the tools' processes over two minutes,
# and bytes that a second of it leaves on disk. What is compared runs at once then, as the jobs differ.
# The time before, in which all programs are new, is shown beside what counts. A flush comes once a
# minute: one is before, two are in what counts, neither more nor fewer than there are in a day. perf has
# none, and fills the disk: half a minute each must do.
. "$(dirname "$0")/lib.sh"
rounds=4 seconds=5 learn=90 life=120
options "$@"
names=(culprit-samples culprit-paths perf-plain perf-dwarf)
declare -A with=([culprit-samples]=--no-edges [culprit-paths]="--no-edges -g" [perf-plain]=""
	[perf-dwarf]="--call-graph dwarf")

start_load 100000
start empty "$rate"
phases=(-x none= -x "empty=${pid[empty]}")
for name in "${names[@]}"; do
	# shellcheck disable=SC2086
	start "$name" "$rate" ${with[$name]}
	phases+=(-x "$name=${pid[$name]}")
done
for ((i = 0; i < rounds; i++)); do
	"$programs/spinner" -t "$seconds" "${phases[@]}" | sed "s/^/round=$i /"
done >"$work/spun"
stop_all
rm -f "$work"/*.data* "$work"/*.db*

# CPU time of each one's processes as a share of the machine, bytes a second, and CPU time before.
at_once() { # BEFORE LIFE NAME...
	local learn=$1 life=$2 name size
	local -A begun=() before=() after=()
	shift 2
	for name; do
		# shellcheck disable=SC2086
		start "$name" "$rate" ${with[$name]}
	done
	for name; do begun[$name]=$(cpu_time "${pid[$name]}"); done
	sleep "$learn"
	for name; do before[$name]=$(cpu_time "${pid[$name]}"); done
	sleep "$life"
	for name; do after[$name]=$(cpu_time "${pid[$name]}"); done
	for name; do
		stop "$name"
		size=$(cat "$work/$name".d* | wc -c)
		echo "$name $(calc "(${after[$name]} - ${before[$name]}) / $life / $cpus") $(calc "$size / ($learn + $life + 1.5)")" \
			"$(calc "(${before[$name]} - ${begun[$name]}) / $learn / $cpus")"
		rm -f "$work/$name".d*
	done
}
{
	at_once "$learn" "$life" culprit-samples culprit-paths
	at_once 32 32 perf-plain perf-dwarf
} >"$work/alone"
stop_load

stolen() { # NAME: above the empty event's, round by round
	paste <(sed -n "s/.* phase=$1 .* share=\([^ ]*\).*/\1/p" "$work/spun") \
		<(sed -n "s/.* phase=empty .* share=\([^ ]*\).*/\1/p" "$work/spun") | awk '{ print $1 - $2 }'
}
of() { # NAME FIELD
	awk -v name="$1" -v field="$2" '$1 == name { print $field }' "$work/alone"
}
all() { # NAME
	calc "$(stolen "$1" | summary | cut -d' ' -f1) + $(of "$1" 2)"
}

header tool "stolen above an empty event, %" "CPU time of the processes, %" "together, %" "bytes a second" \
	"CPU time before, %"
for name in "${names[@]}"; do
	row "$name" "$(stolen "$name" | spread %.2f 100)" "$(figure %.2f "100 * $(of "$name" 2)")" \
		"$(figure %.2f "100 * $(all "$name")")" "$(figure %.0f "$(of "$name" 3)")" \
		"$(figure %.2f "100 * $(of "$name" 4)")"
done
paths=$(calc "$(all culprit-paths) - $(all culprit-samples)")
dwarf=$(calc "$(all perf-dwarf) - $(all perf-plain)")
echo
echo "Call paths: +$(figure %.2f "100 * $paths")% of the machine above samples without them; perf's by copies of stacks: +$(figure %.2f "100 * $dwarf")%."
goal "under 0.5% above samples without them" "$paths < 0.005"
goal "under a tenth of perf record --call-graph dwarf" "$paths < $dwarf / 10"
goal "data under 1/200" "$(of culprit-paths 3) < $(of perf-dwarf 3) / 200"
