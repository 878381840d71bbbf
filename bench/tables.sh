#!/bin/bash
# The five tables of Ammons, Ball and Larus (PLDI 97) for the twelve programs: what path and context
# profiles cost (1), how much measuring disturbs what is measured (2), how large calling context trees are
# (3), and how cache misses are spread over paths (4) and procedures (5). -n: rounds of table 1.
#
# There are no cache counters in many virtual machines, so misses are simulated: callgrind's first data
# cache has this machine's size, and what an instruction missed is shared out among the paths through it by how
# often they ran (path_misses.c). PROGRAMS: see recordings.sh. TABLES="1 3" makes only some.
. "$(dirname "$0")/lib.sh"
rounds=5
options "$@"
make -s -C "$root" build/bench/path_misses || exit 1
. "$here/recordings.sh"
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$programs/cache}
tables=" ${TABLES:-1 2 3 4 5} "
wanted() { # TABLE
	[[ $tables == *" $1 "* ]]
}

# Runs a program's job under culprit; the database is made anew.
run_job() { # NAME DATABASE OPTION...
	rm -f "$2"
	"$here/program" "$1" "$culprit" record -q -o "$2" "${@:3}" -- && return
	tail -1 "$inputs/$1.err" >"$work/said"
	return 1
}

# ---- 1: what it costs ----

# How each is made; a way that this version does not have stays empty.
ways=(paths refined context both "paths tsc" "context tsc")
options_of() { # WAY NAME
	case $1 in
	paths) echo --paths ;;
	refined) echo --paths --refine "$work/$2.earlier.db" ;;
	context) echo --context ;;
	both) echo --paths --context ;;
	"paths tsc") echo --paths --metric tsc ;;
	"context tsc") echo --context --metric tsc ;;
	esac
}

# User CPU seconds of the job alone: not of editing, nor of reading what was counted.
job_seconds() { # NAME WAY
	[ "$2" != plain ] || {
		user_seconds "$here/program" "$1"
		return
	}
	rm -f "$work/timed.db"
	# shellcheck disable=SC2046
	"$here/program" "$1" "$culprit" record -o "$work/timed.db" $(options_of "$2" "$1") --
	sed -n 's/.* took \([0-9.]*\) s of user time.*/\1/p' "$inputs/$1.err"
}

geometric() {
	awk '$1 > 0 { s += log($1); n++ } END { if (n) printf "%+.1f%%", 100 * (exp(s / n) - 1); else print "-" }'
}

median() { # FILE
	summary <"$1" | cut -d' ' -f1
}

table_1() {
	local name way ratio cells
	for name in "${names[@]}"; do
		for way in "${ways[@]}"; do # once, so that nothing is edited while it is timed
			# shellcheck disable=SC2046
			run_job "$name" "$work/warm.db" $(options_of "$way" "$name") || : >"$work/cannot.$name.$way"
			[ "$way" != paths ] || mv "$work/warm.db" "$work/$name.earlier.db"
		done
	done
	for round in $(seq "$rounds"); do
		for name in "${names[@]}"; do
			while read -r way; do
				[ -e "$work/cannot.$name.$way" ] || job_seconds "$name" "$way" >>"$work/time.$name.$way"
			done < <(rotate "$round" plain "${ways[@]}")
		done
	done
	header "program" "plain, s" "${ways[@]}"
	for name in "${names[@]}"; do
		cells=()
		for way in "${ways[@]}"; do
			if [ -s "$work/time.$name.$way" ]; then
				ratio=$(calc "$(median "$work/time.$name.$way") / ($(median "$work/time.$name.plain") + 1e-9)")
				echo "$ratio" >>"$work/ratio.$way"
				cells+=("$(figure %+.1f%% "100 * ($ratio - 1)")")
			else
				cells+=("-")
			fi
		done
		row "$name" "$(median "$work/time.$name.plain")" "${cells[@]}"
	done
	cells=()
	for way in "${ways[@]}"; do
		cells+=("$(cat "$work/ratio.$way" 2>/dev/null | geometric)")
	done
	row "geometric mean" "" "${cells[@]}"
	echo
	for way in "paths 15" "refined 5" "context 20" "both 45"; do
		[ ! -s "$work/ratio.${way% *}" ] || goal "${way% *}, executions only: ${way#* }%" \
			"$(geometric <"$work/ratio.${way% *}" | tr -d '+%') <= ${way#* }"
	done
}

# ---- 2: how much measuring disturbs ----

elapsed_seconds() { # COMMAND...
	local TIMEFORMAT=%R
	{ time "$@" >/dev/null 2>&1; } 2>&1
}

# Ticks of the time stamp counter that a plain run takes, and what profiles say it took: on an idle
# machine, for the counter goes on while others run.
table_2() {
	local name plain cells way metric
	header "program" "plain, Mticks" "by paths" "by contexts"
	for name in "${names[@]}"; do
		plain=$(calc "$(elapsed_seconds "$here/program" "$name") * $(tick_rate)")
		cells=()
		for way in paths calls; do
			metric=-
			if run_job "$name" "$work/metric.db" --${way/calls/context} --metric tsc; then
				metric=$("$culprit" "$way" -i "$work/metric.db" --metric tsc --json -n 1 | jq .total)
				metric=$(figure %.2f "$metric / ($plain + 1)")
			fi
			cells+=("$metric")
		done
		row "$name" "$(figure %.0f "$plain / 1e6")" "${cells[@]}"
	done
}

# ---- 3: how large the tree is ----

table_3() {
	local name size
	header "program" "profile, bytes" "nodes" "procedures" "children" "height" "highest" "most of one" \
		"recursive" "call sites" "on one path"
	for name in "${names[@]}"; do
		run_job "$name" "$work/context.db" --context --paths ||
			run_job "$name" "$work/context.db" --context || die "$name: $(tail -1 "$work/said")"
		size=$("$culprit" calls -i "$work/context.db" --size --json) || exit 1
		row "$name" $(jq -r '[.bytes, .nodes, .procedures, (.degree * 100 | round / 100),
			(.height * 10 | round / 10), .deepest, .replication, .recursive, .sites,
			if .paths > 0 then .one_path else "-" end] | join(" ")' <<<"$size")
	done
}

# ---- 4 and 5: hot paths and hot procedures ----

geometry() { # LEVEL1_DCACHE
	local ways
	ways=$(getconf "$1_ASSOC")
	case $ways in undefined | 0) ways=8 ;; esac
	echo "$(getconf "$1_SIZE"),$ways,$(getconf "$1_LINESIZE")"
}

measure_misses() { # NAME
	[ -e "$work/$1.json" ] && return
	simulate "$1" caches d1 true --cache-sim=yes --I1="$(geometry LEVEL1_ICACHE)" \
		--D1="$(geometry LEVEL1_DCACHE)" --LL="$(geometry LEVEL2_CACHE)"
	run_job "$1" "$work/$1.db" --paths || die "$1: $(tail -1 "$work/said")"
	"$programs/path_misses" "$work/$1.db" "$inputs/$1.caches" || exit 1
	"$culprit" paths -i "$work/$1.db" --metric D1-simulated --json -n 1 >"$work/$1.json" || exit 1
}

# Of classes, dense first: cells made by a jq expression of one of them.
class_cells() { # NAME JQ
	jq -r "[.classes[] | $2] | .[]" "$work/$1.json"
}

table_4() {
	local name cells
	header "program" "paths" "dense" "inst" "misses" "sparse" "inst" "misses" "cold" "inst" "misses"
	for name in "${names[@]}"; do
		measure_misses "$name"
		mapfile -t cells < <(class_cells "$name" '(.paths, "\(.instructions * 1000 | round / 10)%",
			"\(.share * 1000 | round / 10)%")')
		row "$name" "$(jq .paths "$work/$name.json")" "${cells[@]}"
	done
}

table_5() {
	local name cells
	header "program" "dense" "paths each" "misses" "sparse" "paths each" "misses" "cold" "paths each" "misses"
	for name in "${names[@]}"; do
		measure_misses "$name"
		mapfile -t cells < <(class_cells "$name" '(.procedures,
			(if .procedures > 0 then .paths_in_procedures / .procedures * 10 | round / 10 else 0 end),
			"\(.share_of_procedures * 1000 | round / 10)%")')
		row "$name" "${cells[@]}"
	done
}

titles=("" "Overhead of profiling (user CPU time above the plain program's)"
	"Perturbation: ticks that profiles measured over ticks of a plain run"
	"Size of the calling context tree" "Simulated misses of the first data cache, by path (hot: 1%)"
	"Simulated misses of the first data cache, by procedure (hot: 1%)")
for table in 1 2 3 4 5; do
	wanted "$table" || continue
	printf 'Table %s. %s\n\n' "$table" "${titles[table]}"
	"table_$table"
	echo
done
