#!/bin/bash
# How right call paths are that are told by the height of the stack: Tables 2 to 4 and Figures 7 to 12
# of Mytkowicz, Coughlin and Diwan (OOPSLA 09) for our programs. (More of what editing brings:
# disambiguate.sh.)
#
#   -t SECONDS   of learning on the other input (60: what is flushed by then does not count)
#   -r RATE      samples a second (2000)
#   PROGRAM...   only these
#
# The truth is twofold: contexts that were counted (record --context), all of them, by calls; and the
# stacks of all samples (--call-graph=copy, --call-graph=judged).
. "$(dirname "$0")/lib.sh"
rounds=1 seconds=60 rate=2000
options "$@"
shift $((OPTIND - 1))
make -s -C "$root" build/bench/lookup || exit 1
PROGRAMS=${*:-${PROGRAMS:-}}
. "$here/recordings.sh"

declare -A languages=([cc1]=C++ [povray]=C++)

run() { # [--other] NAME OPTION...: records it
	local other=()
	[ "$1" != --other ] || { other=(--other); shift; }
	"$here/program" "${other[@]}" "$1" "$culprit" record "${@:2}" --
}

check() { # MAP TRUTH FILE
	"$culprit" calls -i "$1" --check "$2" --json -n 1 >"$3"
}

part() { # FILE KEY paths|weights CATEGORY...: a key may be below another one, behind a dot
	local file=$1
	jq -r --arg k "$2" --arg w "$3" --arg c "${*:4}" 'getpath($k | split("."))[$w] as $v | ($v | add) as $all
		| if $all > 0 then 100 * ($c | split(" ") | map($v[.]) | add) / $all else 0 end' "$file" |
		awk '{ printf "%.2f", $1 }'
}

# Shares of paths with at most so many at their place, 1 to 5.
degrees() { # FILE
	jq -r '.by_height as $s | ($s.paths | add) as $all | [foreach $s.degrees_paths[0:5][] as $d (0; . + $d; 100 * . / $all)]
		| map(. * 10 | round / 10 | tostring) | join(", ")' "$1"
}

judged() { # DATABASE [FILTER...]: the verdicts of the last recording
	local last
	last=$("$culprit" db ls "$1" --json | jq '[.epochs[].id] | max')
	"$culprit" calls -i "$1" --epoch "$last" "${@:2}" --json -n 1 >"$work/judged.json"
}
verdict() { # CATEGORY...
	jq -r --arg c "$*" '.verdicts as $v | ($v | add) as $all
		| if $all > 0 then 100 * ($c | split(" ") | map($v[.]) | add) / $all else 0 end' "$work/judged.json" |
		awk '{ printf "%.2f", $1 }'
}

measure() { # NAME
	local name=$1 d=$work/$1 begun TIMEFORMAT=%U
	mkdir -p "$d"
	run "$name" --context -o "$d/map.db" # edits, so that it is not timed
	rm -f "$d/map.db"
	user_seconds "$here/program" "$name" >"$d/plain"
	run "$name" --context -o "$d/map.db"
	sed -n 's/.* took \([0-9.]*\) s of user time.*/\1/p' "$inputs/$name.err" >"$d/counted"
	run --other "$name" --context -o "$d/other.db"
	"$culprit" calls -i "$d/map.db" --size --json | jq .nodes >"$d/nodes"
	"$culprit" calls -i "$d/other.db" --size --json | jq .nodes >"$d/other_nodes"
	run "$name" -g -F "$rate" -o "$d/map.db"
	"$programs/lookup" "$d/map.db" >"$d/lookup"
	{ time "$culprit" edit "$("$here/program" --files "$name")" --disambiguate --map "$d/map.db" \
		--report --json -o "$d/copy" >"$d/edit.json" 2>/dev/null; } 2>"$d/search"
	check "$d/map.db" "$d/map.db" "$d/offline.json"
	check "$d/map.db" "$d/other.db" "$d/online.json"
	run "$name" -g --call-graph=copy -F "$rate" -o "$d/all.db"
	check "$d/map.db" "$d/all.db" "$d/samples.json"
	run "$name" -g --call-graph=judged -F "$rate" -o "$d/map.db"
	judged "$d/map.db"
	cp "$work/judged.json" "$d/same.json"
	# Another input, which only samples are learned from: one recording of the program again and
	# again, of which the last part counts.
	run "$name" -g -F "$rate" -o "$d/learn.db"
	begun=$(date +%s)
	"$here/program" --other "$name" "$culprit" record -g --call-graph=judged -F "$rate" -o "$d/learn.db" -- \
		bash -c 'end=$((SECONDS + $1)); while [ $SECONDS -lt $end ]; do "${@:2}"; done' - $((seconds + 20))
	judged "$d/learn.db" --time "$((begun + seconds + 5)),"
	cp "$work/judged.json" "$d/learned.json"
	rm -f "$d"/*.db* "$d/copy"
}

for name in "${names[@]}"; do
	measure "$name"
done

echo "**Table 2: paths of procedures** that were called, on one input and on another."
echo
header program language "paths" "paths, other input" "of its paths at their heights, not compared"
for name in "${names[@]}"; do
	row "$name" "${languages[$name]:-C}" "$(cat "$work/$name/nodes")" "$(cat "$work/$name/other_nodes")" \
		"$(jq .not_compared "$work/$name/offline.json")"
done

echo
echo "**Table 3: what it costs outside the program**: all calling contexts counted (record --context), user time against the plain run; finding a path by procedure and height; the search for a copy in which heights tell paths apart, and making it."
echo
header program "profile" "heights" "lookup, ns" "cycles" "disambiguation, s of user time"
for name in "${names[@]}"; do
	d=$work/$name
	read -r heights ns <"$d/lookup"
	row "$name" "$(figure %.1fx "$(cat "$d/counted") / ($(cat "$d/plain") + 1e-9)")" "$heights" "$ns" \
		"$(figure %.0f "$ns * 1e-9 * $(tick_rate)")" "$(cat "$d/search")"
done
echo
echo "**Table 4: the deepest stack** of the copy, against the plain program's."
echo
header program "larger frames" "and wrapped calls and second copies"
for name in "${names[@]}"; do
	row "$name" $(jq -r '[.after[0].growth, .after[2].growth] | map("\(. * 1000 | round / 1000)x") | join(" ")' "$work/$name/edit.json")
done

figure_of() { # FILE KEY: categories of paths, then of weights
	local f=$1 k=$2
	for what in paths weights; do
		for c in precise first ambiguous incorrect missing; do
			printf '%s\n' "$(part "$f" "$k" $what $c)"
		done
	done
}
figure_table() { # FILE.json KEY
	header program "paths: precise, %" "first of several" ambiguous incorrect missing \
		"calls: precise, %" "first of several" ambiguous incorrect missing
	for name in "${names[@]}"; do
		mapfile -t cells < <(figure_of "$work/$name/$1.json" "$2")
		row "$name" "${cells[@]}"
	done
}
echo
echo "**Figure 11: same input, by procedure and height alone** (the truth: all contexts that were counted)."
echo
figure_table offline by_height
echo
echo "**Figure 7: the same, where samples tell one return address** if paths share a place. (The paper's figure 7 is with frames made larger.)"
echo
figure_table offline by_caller
echo
echo "**Figure 12: another input, by procedure and height alone**, map of the first input, nothing learned."
echo
figure_table online by_height
echo
echo "**Figure 9: the same, with one return address.**"
echo
figure_table online by_caller
echo
echo "**Paths with the sites of their calls**, beside those of procedures: right, % of the paths (of the calls). Where a path was called from several sites, the one that was counted most on the first input is named."
echo
right_of() { # FILE KEY
	echo "$(part "$1" "$2" paths precise first) ($(part "$1" "$2" weights precise first))"
}
header program "call-site paths" "same input, height alone: procedures" "call sites" "one word told: procedures" "call sites" \
	"another input, one word told: procedures" "call sites"
for name in "${names[@]}"; do
	d=$work/$name
	row "$name" "$(jq '.call_sites.by_height.paths | add' "$d/offline.json")" \
		"$(right_of "$d/offline.json" by_height)" "$(right_of "$d/offline.json" call_sites.by_height)" \
		"$(right_of "$d/offline.json" by_caller)" "$(right_of "$d/offline.json" call_sites.by_caller)" \
		"$(right_of "$d/online.json" by_caller)" "$(right_of "$d/online.json" call_sites.by_caller)"
done
echo
echo "**Figures 8 and 10: degree of ambiguity**: % of the paths with at most 1, 2, 3, 4, 5 paths at their place."
echo
header program "same input" "another input"
for name in "${names[@]}"; do
	row "$name" "$(degrees "$work/$name/offline.json")" "$(degrees "$work/$name/online.json")"
done
echo
echo "**Samples**: what a map of counted contexts and one recording says of all stacks of another run with the same input (distinct paths, samples); how right the report of a run with the same input is; and of a run with another input, after $seconds s of learning on it, when only one sampled run of the first input was known before. Right is the likeliest path, by procedures; wrong, what was called unique and is another; ranked, what was called the likeliest of several and is not."
echo
header program "distinct paths right, %" "samples right" "samples wrong" \
	"report, same input: right" wrong ranked missing "report, another input: right" wrong ranked missing judged
for name in "${names[@]}"; do
	d=$work/$name
	cp "$d/same.json" "$work/judged.json"
	same=("$(verdict precise first)" "$(verdict incorrect)" "$(verdict ambiguous doubted)" "$(verdict missing)")
	cp "$d/learned.json" "$work/judged.json"
	row "$name" "$(part "$d/samples.json" by_caller paths precise first)" \
		"$(part "$d/samples.json" by_caller weights precise first)" \
		"$(part "$d/samples.json" by_caller weights ambiguous incorrect)" "${same[@]}" \
		"$(verdict precise first)" "$(verdict incorrect)" "$(verdict ambiguous doubted)" "$(verdict missing)" \
		"$(jq '.verdicts | add' "$work/judged.json")"
done
