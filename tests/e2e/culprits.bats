#!/usr/bin/env bats
# Whom culprit why blames for loops that are made to stall for one reason each, and whom it acquits:
# programs/culprits.txt says what is right.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	need_root "interpreting branches needs CAP_BPF and CAP_PERFMON"
	list=$root/tests/e2e/programs/culprits.txt
}

# Records until the scale of the loop is known: on a busy machine anchors may be few. Only what is
# asked for is kept: some loops have a hundred thousand instructions. took.txt: how long a round took.
explain() { # LOOP
	for _ in 1 2 3; do
		rm -f "$db"*
		"$CULPRIT" record -e cpu-clock -F 4000 -o "$db" -- "$programs/culprits" "$1" 0.8 >took.txt || return
		"$CULPRIT" why -i "$db" "$1" --json >all.json || return
		jq '{scale, summary, blocks: [{instructions: [.blocks[].instructions[]
			| {address, stalls} | select(.stalls != [])]}]}' all.json >out.json || return
		[ "$(jq -r .scale out.json)" = relative ] || break
	done
}

# Who is first in the list: of the guilty instruction, or (with a star) of the summary; "static" when
# the best case has nearly all of the time. A neighbour on the same core slows down fetching, which can
# be half of the time of a loop of one cycle: that does not count.
verdict() { # LOOP FIRST
	local start guilty
	if jq -e '.summary | .dynamic_total + .unexplained < 0.2 +
		([.dynamic[] | select(.culprit == "frontend") | .max] | add)' out.json >/dev/null; then
		echo static
	elif [[ $2 == \** ]]; then
		jq -r '.summary.dynamic | max_by(.min + .max) | .culprit' out.json
	else
		start=$(nm "$programs/culprits" | awk -v n="$1" '$3 == n { print $1 }')
		guilty=$(nm "$programs/culprits" | awk -v n="guilty_$1" '$3 == n { print $1 }')
		address=$(printf 0x%x $((0x$start + 0x$guilty)))
		jq -r --arg a "$address" '[.blocks[].instructions[] | select(.address == $a)
			| .stalls[0].culprit] | first // "nobody"' out.json
	fi
}

# Culprits on the list of the guilty instruction, or of the whole loop.
accused() { # FIRST
	if [[ $1 == \** ]] || [ -z "${address:-}" ]; then
		jq -r '.summary.dynamic[] | select(.max > 0.02) | .culprit' out.json
	else
		jq -r --arg a "$address" '.blocks[].instructions[] | select(.address == $a)
			| .stalls[].culprit' out.json
	fi
}

# Nanoseconds a round, the least of three.
round() { # LOOP
	for _ in 1 2 3; do "$programs/culprits" "$1" 0.1; done | sort -n | head -1 | cut -d' ' -f1
}

# Some chips have no trouble with a loop, or not in every run: where it took as long as its twin, nobody
# is to blame; where it took longer, but by less than LEAST nanoseconds, some cycles may be anybody's.
judge() { # LOOP [TWIN [LEAST]]
	local loop first acquitted got name twin
	read -r loop first acquitted < <(awk -v n="$1" '$1 == n' "$list")
	explain "$loop"
	cat took.txt
	if [ $# -gt 1 ]; then
		twin=$(round "$2")
		if awk "BEGIN { exit !($(cut -d' ' -f1 took.txt) < 1.3 * $twin) }"; then
			first=static
		elif awk "BEGIN { exit !($(cut -d' ' -f1 took.txt) < $twin + ${3:-0}) }"; then
			first=static,frontend,unexplained,nobody
		fi
	fi
	if [ "$(jq -r .scale out.json)" = relative ] && [ "$first" != static ]; then
		echo "$loop: the machine is too restless to know the scale"
		return 0
	fi
	address=
	verdict "$loop" "$first" >verdict.txt
	got=$(cat verdict.txt)
	echo "$loop: $got, expected $first; scale $(jq -r .scale out.json)"
	[[ ,${first#\*}, == *,$got,* ]]
	for name in $(accused "$first"); do
		echo "accused: $name"
		[[ ,$acquitted, != *,$name,* ]]
	done
}

# bats test_tags=plain
@test "data: caches and pages" {
	judge chase_memory
	judge chase_cache
	judge chase_pages
}

# bats test_tags=plain
@test "loads behind stores" {
	judge forward_blocked
	judge forward_fits
	judge alias_4k alias_none # newer chips compare whole addresses in time
	judge alias_none
}

@test "branches" {
	judge branch_random
	judge branch_always
}

# bats test_tags=plain
@test "slow operations" {
	judge divide
	judge locked_add
	judge fenced
}

# bats test_tags=plain
@test "denormal numbers" {
	judge denormal normal 1 # AMD's chips need some cycles more, in some runs, and no microcode
	judge normal
}

# bats test_tags=plain
@test "stores that miss" {
	judge store_burst
}

# bats test_tags=plain
@test "code: caches and pages" {
	judge code_lines
	judge code_pages
	judge code_fits
}

@test "every loop of the list is judged" {
	while read -r loop _; do
		[[ -z $loop || $loop == \#* ]] || grep -Eq "judge $loop( |$)" "$BATS_TEST_FILENAME"
	done <"$list"
}
