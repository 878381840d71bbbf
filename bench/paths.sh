#!/bin/bash
# What counting paths costs on the twelve programs, and whether it is right. For each: arrays (what
# record --paths does), refined by that run, whole paths (--full), and with the clock (--metric
# tsc), beside exact counts; CPU times, in turns, -n: rounds. Right: the sums of all paths over every block and
# edge are what counters of their own say that ran beside them (edges_beside.c). For the clock also the floor:
# readings times what one takes beside it. PROGRAMS: only these; CHECKS=1: only whether it is right.
. "$(dirname "$0")/lib.sh"
rounds=5
options "$@"
"$here/program" --prepare && make -s -C "$root" build/bench/edges_beside build/bench/readings || exit 1
edited=$programs/edited
mkdir -p "$edited"
names=${PROGRAMS:-$("$here/program" --names)}
kinds=(exact paths refined full tsc)
MILLIONS=50 # readings of the clock that are timed by themselves

seconds_of() { # FILE COMMAND...: CPU time to FILE, user and system
	local TIMEFORMAT='%U %S' file=$1
	{ time "${@:2}" >/dev/null 2>"$work/said"; } 2>"$work/time" || die "$2: $(tail -1 "$work/said")"
	awk '{ print $1 + $2 }' "$work/time" >>"$file"
}

run_with() { # NAME KIND COMMAND...: with the copy in the place of its file
	local file
	file=$("$here/program" --files "$1")
	if [ "$2" = plain ]; then
		"${@:3}" "$here/program" "$1"
	else
		"${@:3}" "$root/tools/bind" "$edited/$1.$2" "$file" -- "$here/program" "$1"
	fi
}

make_copies() { # NAME
	local file to=$edited/$1
	file=$("$here/program" --files "$1")
	rm -f "$to".{exact,paths,refined,full,tsc}* "$work/$1.db"
	"$culprit" edit --exact "$file" -o "$to.exact" && "$culprit" edit --paths "$file" -o "$to.paths" &&
		"$culprit" edit --paths --full "$file" -o "$to.full" &&
		"$culprit" edit --paths --metric tsc "$file" -o "$to.tsc" &&
		"$here/program" "$1" "$culprit" record -q --paths --libs "$file" -o "$work/$1.db" -- >/dev/null &&
		"$culprit" edit --paths --refine "$work/$1.db" "$file" -o "$to.refined"
}

# ---- right? ----

# povray counts in several threads at once.
atomic() { # NAME
	[ "$1" != povray ] || echo --atomic
}

# Whether paths add up to what was counted beside them, in one run.
check() { # NAME KIND OPTION...
	local file copy=$edited/$1.beside
	file=$("$here/program" --files "$1")
	rm -f "$copy" "$copy".*
	# shellcheck disable=SC2046
	"$root/build/bench/edges_beside" edit $(atomic "$1") "${@:3}" "$file" "$copy" || die "cannot edit $1"
	"$root/tools/bind" "$copy" "$file" -- "$here/program" "$1" || die "$1: fails with $2"
	"$root/build/bench/edges_beside" compare "$copy" >"$work/sums.$2"
	rm -f "$copy" "$copy".*
}

different() { # KIND: blocks and edges
	awk 'END { print $5 ", " $11 }' "$work/sums.$1"
}

header program procedures "paths that ran" times "blocks that ran" "edges that ran" "different: arrays" refined full tsc
for name in $names; do
	make_copies "$name" || die "cannot edit $name"
	check "$name" paths
	check "$name" refined --refine "$work/$name.db"
	check "$name" full --full
	check "$name" tsc --tsc
	read -r procedures _ paths _ _ times _ < <(tr -d , <"$work/sums.paths")
	row "$name" "$procedures" "$paths" "$times" "$(awk 'END { print $1 }' "$work/sums.paths")" \
		"$(awk 'END { print $7 }' "$work/sums.paths")" "$(different paths)" "$(different refined)" \
		"$(different full)" "$(different tsc)"
	[ -n "${CHECKS:-}" ] || run_with "$name" tsc || die "$name: fails with the clock"
	# After one run: what the clock's readings were.
	[ -n "${CHECKS:-}" ] || "$culprit" record --paths --counted "$edited/$name.tsc" -o "$work/$name.tsc.db" 2>&1 >/dev/null |
		sed -n 's/.*clock was read \([0-9]*\) times.*/\1/p' >"$work/readings.$name"
done
[ -z "${CHECKS:-}" ] || exit 0
echo

# ---- what it costs ----

for round in $(seq "$rounds"); do
	for name in $names; do
		for kind in $(rotate "$round" plain "${kinds[@]}"); do
			run_with "$name" "$kind" seconds_of "$work/time.$name.$kind"
		done
		seconds_of "$work/time.readings" "$root/build/bench/readings" "$MILLIONS"
	done
done
header program "plain, s" exact arrays refined full tsc
for name in $names; do
	cells=()
	plain=$(summary <"$work/time.$name.plain" | cut -d' ' -f1)
	for kind in "${kinds[@]}"; do
		ratio=$(calc "$(summary <"$work/time.$name.$kind" | cut -d' ' -f1) / $plain")
		echo "$ratio" >>"$work/ratios.$kind"
		cells+=("$(figure %+.1f%% "100 * ($ratio - 1)")")
	done
	row "$name" "$plain" "${cells[@]}"
done
cells=()
for kind in "${kinds[@]}"; do
	cells+=("$(awk '{ s += log($1) } END { printf "%+.1f%%", 100 * (exp(s / NR) - 1) }' "$work/ratios.$kind")")
done
row "geometric mean" "" "${cells[@]}"

echo

# ---- the clock, and the floor ----

# The floor is what the readings alone take, back to back, on a machine that is as busy as for the others.
reading=$(calc "$(summary <"$work/time.readings" | cut -d' ' -f1) / $MILLIONS / 1e6")
header program "readings, M" "a reading, ns" "floor, s" "above plain, s" "over floor" "run / (plain + floor)"
for name in $names; do
	readings=$(cat "$work/readings.$name")
	plain=$(summary <"$work/time.$name.plain" | cut -d' ' -f1)
	took=$(summary <"$work/time.$name.tsc" | cut -d' ' -f1)
	floor=$(calc "$readings * $reading")
	calc "($took - $plain) / $floor" >>"$work/over" && echo >>"$work/over"
	calc "$took / ($plain + $floor)" >>"$work/run" && echo >>"$work/run"
	row "$name" "$(figure %.1f "$readings / 1e6")" "$(figure %.1f "1e9 * $reading")" "$(figure %.2f "$floor")" \
		"$(figure %.2f "$took - $plain")" "$(tail -1 "$work/over" | xargs printf %.2f)" "$(tail -1 "$work/run" | xargs printf %.2f)"
done
mean() { # FILE
	awk '{ s += log($1); n++ } END { printf "%.2f", exp(s / n) }' "$1"
}
row "geometric mean" "" "" "" "" "$(mean "$work/over")" "$(mean "$work/run")"
goal "the clock: at most 25% above the floor" "$(mean "$work/over") <= 1.25"
