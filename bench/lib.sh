# What the measures share: options, running the tools, numbers and tables. Sourced by bench/*.sh.
# shellcheck shell=bash
#
# Options of every measure: -n ROUNDS, -t SECONDS (of one round), -r RATE; defaults are set by the
# measure before it calls `options "$@"`. CULPRIT and PERF name the programs.
set -u
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
programs=$root/build/bench
culprit=${CULPRIT:-$root/build/culprit}
perf=${PERF:-perf}
cpus=$(nproc)
work=$(mktemp -d "${TMPDIR:-/tmp}/culprit-bench.XXXXXX")
rounds=5 seconds=5 rate=5200

declare -A pid=() # of the samplers that run, by name
load=             # process id of the load
others=()         # and of what else makes load
finish() {
	stop_all
	stop_load
	[ -z "${restore_stats:-}" ] || sysctl -q "kernel.bpf_stats_enabled=$restore_stats"
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	echo "$(basename "$0"): $*" >&2
	exit 3
}

options() {
	while getopts n:t:r: option; do
		case $option in
		n) rounds=$OPTARG ;;
		t) seconds=$OPTARG ;;
		r) rate=$OPTARG ;;
		*) exit 2 ;;
		esac
	done
	[ "$(id -u)" = 0 ] || die "the measures need root: they sample the whole machine"
	"$root/tools/packages" linux-perf jq sqlite3 bc || exit 3
	make -s -C "$root" helpers || exit 1
	[ -x "$culprit" ] || die "$culprit is not there; run make first"
	"$here/load" --prepare || exit 1
}

# ---- numbers ----

calc() { # EXPRESSION: an awk expression
	awk "BEGIN { printf \"%.9g\", $* }"
}

figure() { # FORMAT EXPRESSION
	awk "BEGIN { printf \"$1\", ${*:2} }"
}

# Ticks of the time stamp counter in a second.
tick_rate() {
	sed -n 's/.*tsc: Refined TSC clocksource calibration: \([0-9.]*\) MHz.*/\1e6/p' <(dmesg 2>/dev/null) | tail -1 | grep . ||
		awk '/^cpu MHz/ { print $4 "e6"; exit }' /proc/cpuinfo
}

# Reads numbers; prints "median q1 q3 min max n".
summary() {
	sort -g | awk '
	function at(q,   i, f) { i = 1 + (NR - 1) * q; f = i - int(i); i = int(i)
		return i < NR ? v[i] * (1 - f) + v[i + 1] * f : v[NR] }
	{ v[NR] = $1 }
	END { if (NR) print at(.5), at(.25), at(.75), v[1], v[NR], NR; else print "0 0 0 0 0 0" }'
}

# Prints "median (q1 to q3)" of the numbers on standard input, times SCALE, with FORMAT.
spread() { # FORMAT [SCALE]
	summary | awk -v f="$1" -v k="${2:-1}" '{ printf f " (" f " to " f ")", $1 * k, $2 * k, $3 * k }'
}

# Takes the values of KEY=VALUE in a line.
value() { # KEY LINE
	local word
	for word in $2; do
		[ "${word%%=*}" = "$1" ] && echo "${word#*=}" && return
	done
}

# Says whether a goal of the table was reached: the condition is an awk expression.
goal() { # TEXT CONDITION
	if [ "$(calc "($2) ? 1 : 0")" = 1 ]; then
		echo "goal reached: $1"
	else
		echo "goal MISSED: $1"
	fi
}

row() { # CELL...
	local IFS='|'
	echo "|$*|" | sed 's/|/ | /g; s/^ //; s/ $//'
}

header() { # CELL...
	row "$@"
	row "$@" | sed 's/[^|]\{1,\}/---/g'
}

# ---- processes ----

# CPU seconds of a process and its children, with nanosecond resolution.
cpu_time() { # PID
	local pid total=0 t
	for pid in "$1" $(pgrep -P "$1"); do
		t=$(awk '{ s += $1 } END { printf "%.0f", s }' /proc/"$pid"/task/*/schedstat 2>/dev/null)
		total=$((total + ${t:-0}))
	done
	calc "$total / 1e9"
}

start_load() { # SECONDS [--short N]
	"$here/load" "$@" >"$work/load.out" 2>&1 &
	load=$!
	sleep 1
}

stop_load() {
	[ -z "$load${others[*]}" ] || kill $load "${others[@]}" 2>/dev/null
	[ -z "$load${others[*]}" ] || wait $load "${others[@]}" 2>/dev/null
	load=
	others=()
}

# Starts a sampler of the whole machine at RATE (0: its own default) and lets it settle: empty,
# control (another empty one), perf, culprit (record), daemon, or none. What follows a dash in the
# name tells several of a kind apart.
start() { # NAME RATE [OPTION...]
	local name=$1
	local -a at=("${@:3}")
	[ "$2" = 0 ] || at+=(-F "$2")
	case ${name%%-*} in
	none) return 0 ;;
	empty | control) "$programs/empty_event" "${at[@]}" & ;;
	# Build-ids would be read from every file at the end; nothing here needs them.
	perf) "$perf" record -q -B -N -a -e cpu-clock "${at[@]}" -o "$work/$name.data" & ;;
	culprit)
		rm -f "$work/$name".db*
		"$culprit" record -a "${at[@]}" -o "$work/$name.db" &
		;;
	daemon)
		rm -f "$work"/daemon.db*
		"$culprit" daemon start --foreground --db "$work/daemon.db" "${at[@]}" &
		;;
	esac >"$work/$name.out" 2>&1
	pid[$name]=$!
	sleep 1.5
	await_events "${pid[$name]}"
	kill -0 "${pid[$name]}" 2>/dev/null || die "$name did not start: $(tail -3 "$work/$name.out")"
	[ "$name" != daemon ] || await_daemon
}

# On a busy machine programs of the kernel take long to be checked.
await_events() { # PID
	local i
	for i in $(seq 100); do
		# shellcheck disable=SC2010
		! kill -0 "$1" 2>/dev/null || ls -l "/proc/$1/fd" | grep -q perf_event && return
		sleep 0.2
	done
}

await_daemon() {
	local i
	for i in $(seq 50); do
		[ "$(daemon_status .running)" != true ] || return 0
		sleep 0.2
	done
	die "the daemon does not answer: $(cat "$work/daemon.out")"
}

stop() { # NAME
	[ -n "${pid[$1]:-}" ] || return 0
	kill -INT "${pid[$1]}" 2>/dev/null
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

stop_all() {
	local name
	for name in "${!pid[@]}"; do
		stop "$name"
	done
}

daemon_status() { # JQ
	"$culprit" daemon status --json --db "$work/daemon.db" | jq -r "$1"
}

# Names the configurations in another order each round.
rotate() { # ROUND NAME...
	local by=$1 n i
	shift
	n=$#
	for ((i = 0; i < n; i++)); do
		local at=$(((i + by) % n + 1))
		echo "${!at}"
	done
}
