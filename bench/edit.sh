#!/bin/bash
# What editing costs (the editor's table): how much of stock binaries is edited, how fast, and what
# null edits and exact counts (also with counters placed by an earlier run, --refine) cost the programs, on the twelve programs as they are and on ten from
# source, where compilers and BOLT can instrument too. -n: rounds; CPU times, in turns, the least of each.
. "$(dirname "$0")/lib.sh"
rounds=7
options "$@"
"$root/tools/packages" bolt-19 libbolt-19-dev clang g++ || exit 3
"$here/program" --prepare && "$here/sources" --prepare || exit 1
edited=$programs/edited
mkdir -p "$edited"
bolt=$(realpath "$(command -v llvm-bolt-19)") # it looks for its library beside itself

seconds_of() { # FILE COMMAND...: CPU time to FILE, user and system
	local TIMEFORMAT='%U %S' file=$1
	{ time "${@:2}" >/dev/null 2>"$work/said"; } 2>"$work/time" || die "$2: $(tail -1 "$work/said")"
	awk '{ print $1 + $2 }' "$work/time" >>"$file"
}

geometric() { # of ratios on standard input: "mean worst", both in percent above 1
	awk '{ s += log($1); if ($1 > m) m = $1 } END { if (NR) printf "%.2f %.2f", 100 * (exp(s / NR) - 1), 100 * (m - 1); else print "- -" }'
}

# Of the least times: whatever else runs on a machine, or beside it on its host, only ever adds.
least() { # FILE
	sort -g "$1" | head -1
}

least_ratio() { # FILE BASE
	calc "$(least "$1") / $(least "$2")"
}

percent() { # RATIO
	figure %+.1f%% "100 * ($1 - 1)"
}

# ---- coverage and speed of editing ----

header file "text, MB" "functions moved, %" "instructions moved, %" "editing, s" "MB/s"
for name in $("$here/program" --names); do
	file=$("$here/program" --files "$name")
	for kind in null exact; do
		seconds_of "$work/$kind-edit.$name" "$culprit" edit "--$kind" "$file" -o "$edited/$name.$kind"
	done
	"$culprit" edit --report --json "$file" >"$work/report" || exit 1
	text=$(size -A "$file" | awk '$1 == ".text" { print $2 / 1e6 }')
	functions=$(jq '100 * .edited / .functions' "$work/report")
	insns=$(jq '100 * .edited_instructions / .instructions' "$work/report")
	took=$(cat "$work/null-edit.$name")
	row "$(basename "$file")" "$(figure %.2f "$text")" "$(figure %.2f "$functions")" \
		"$(figure %.2f "$insns")" "$took" "$(figure %.1f "$text / ($took + 0.0005)")"
	echo "$text $took $functions $insns" >>"$work/coverage"
done
read -r speed functions insns < <(awk '{ t += $1; s += $2; f += $3; i += $4 } END { print t / s, f / NR, i / NR }' "$work/coverage")
echo

# ---- the twelve, as the distribution made them ----

for name in $("$here/program" --names); do
	file=$("$here/program" --files "$name")
	rm -f "$edited/$name.exact.counts" "$edited/$name.db"
	"$root/tools/bind" "$edited/$name.exact" "$file" -- "$here/program" "$name" >/dev/null 2>&1
	"$culprit" record -q --counted "$edited/$name.exact" -o "$edited/$name.db" &&
		"$culprit" edit --exact --refine "$edited/$name.db" "$file" -o "$edited/$name.refined" || exit 1
done
for round in $(seq "$rounds"); do
	for name in $("$here/program" --names); do
		file=$("$here/program" --files "$name")
		for kind in $(rotate "$round" plain null exact refined); do
			binds=("$edited/$name.$kind" "$file")
			[ "$kind" != plain ] || binds=()
			seconds_of "$work/stock.$name.$kind" "$root/tools/bind" "${binds[@]}" -- "$here/program" "$name"
		done
	done
done
header "stock program" "plain, s" "--null" "--exact" "--exact --refine"
for name in $("$here/program" --names); do
	for kind in null exact refined; do
		least_ratio "$work/stock.$name.$kind" "$work/stock.$name.plain" >"$work/ratio.$kind"
		{ cat "$work/ratio.$kind"; echo; } >>"$work/stock.$kind"
	done
	row "$name" "$(spread %.2f <"$work/stock.$name.plain")" "$(percent "$(cat "$work/ratio.null")")" \
		"$(percent "$(cat "$work/ratio.exact")")" "$(percent "$(cat "$work/ratio.refined")")"
done
read -r null null_worst < <(geometric <"$work/stock.null")
read -r exact exact_worst < <(geometric <"$work/stock.exact")
read -r refined refined_worst < <(geometric <"$work/stock.refined")
row "geometric mean (worst)" "" "$null% ($null_worst%)" "$exact% ($exact_worst%)" "$refined% ($refined_worst%)"
echo

# ---- from source: the others ----

kinds=(gcc null exact coverage bolt clang profile)
build() { # NAME
	local to=$edited/source.$1
	[ -e "$to.done" ] && return
	"$here/sources" --build "$1" "$to.gcc" gcc -O2 -g0 -Wl,-q &&
		"$here/sources" --build "$1" "$to.coverage" gcc -O2 -g0 --coverage &&
		"$here/sources" --build "$1" "$to.clang" clang -O2 -g0 &&
		"$here/sources" --build "$1" "$to.profile" clang -O2 -g0 -fprofile-instr-generate &&
		touch "$to.done" || die "cannot build $1"
}
for name in $("$here/sources" --names); do
	to=$edited/source.$name
	build "$name"
	"$culprit" edit --null "$to.gcc" -o "$to.null" && "$culprit" edit --exact "$to.gcc" -o "$to.exact" || exit 1
	# It cannot do all of them; speed is compared on those that it can.
	instrument=("$bolt" "$to.gcc" -o "$to.bolt" --instrument --instrumentation-file="$work/bolt.fdata")
	if "${instrument[@]}" >/dev/null 2>&1; then
		for round in 1 2 3; do
			seconds_of "$work/speed.bolt.$name" "${instrument[@]}"
			seconds_of "$work/speed.exact.$name" "$culprit" edit --exact "$to.gcc" -o "$to.exact"
		done
		for kind in bolt exact; do
			least "$work/speed.$kind.$name" >>"$work/speed.$kind"
		done
	else
		rm -f "$to.bolt"
	fi
done
export LLVM_PROFILE_FILE=$work/clang.profraw
for round in $(seq "$rounds"); do
	for name in $("$here/sources" --names); do
		for kind in $(rotate "$round" "${kinds[@]}"); do
			[ ! -e "$edited/source.$name.$kind" ] || seconds_of "$work/source.$name.$kind" \
				"$here/sources" --run "$name" "$edited/source.$name.$kind"
		done
	done
done
header "from source" "plain, s" "--null" "--exact" "gcc --coverage" "BOLT --instrument" \
	"clang -fprofile-instr-generate (over clang)"
for name in $("$here/sources" --names); do
	cells=()
	for kind in null exact coverage bolt profile; do
		base=gcc
		[ "$kind" != profile ] || base=clang
		[ -e "$work/source.$name.$kind" ] || { cells+=("cannot"); continue; }
		ratio=$(least_ratio "$work/source.$name.$kind" "$work/source.$name.$base")
		echo "$ratio" >>"$work/source.$kind"
		cells+=("$(percent "$ratio")")
	done
	row "$name" "$(spread %.2f <"$work/source.$name.gcc")" "${cells[@]}"
done
cells=()
for kind in null exact coverage bolt profile; do
	read -r mean worst < <(geometric <"$work/source.$kind")
	cells+=("$mean% ($worst%)")
done
row "geometric mean (worst)" "" "${cells[@]}"
echo
total() { awk '{ s += $1 } END { print s }' "$work/speed.$1"; }
times=$(calc "$(total bolt) / ($(total exact) + 0.001)")
echo "Editing the programs from source with exact counts: $(total exact) s of CPU time; BOLT: $(total bolt) s ($(figure %.1f "$times") times)."
goal "98% of the functions of stock binaries are edited" "$functions >= 98"
goal "null edits under 1% (geometric mean), 3% (worst)" "$null < 1 && $null_worst < 3"
goal "exact counts under 8% (geometric mean)" "$exact < 8"
goal "5 MB of text a second" "$speed >= 5"
goal "5 times as fast as BOLT" "$times >= 5"
