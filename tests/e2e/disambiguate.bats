#!/usr/bin/env bats
# culprit edit --disambiguate: call paths that heights of the stack confuse, and the copy in which they do not.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	need_root "call paths need BPF"
}

# A map of all its stacks.
learn() { # PROGRAM
	rm -f "$db"
	"$CULPRIT" record --call-graph=copy -F 2000 -o "$db" -- "$1" 0.4 >said 2>/dev/null
}

report() { # [OPTION...]
	"$CULPRIT" edit "$programs/confused" --disambiguate --map "$db" --report "$@"
}

@test "confused call paths are told apart by larger frames and wrapped calls" {
	learn "$programs/confused"
	cp said expected
	report --json -o copy >out.json
	# What is left are samples of how the program starts, in other files.
	jq -e '.before.samples < 0.3 and .before.paths < 0.95' out.json
	jq -e '.after[0].samples < 0.7 and .after[0].samples > 0.3 and .after[0].changes > 0' out.json
	jq -e '.after[1].samples > 0.9 and .after[2].paths > .before.paths' out.json
	jq -e '.after[2].growth < 1.13 and .after[2].mean_extra > 0' out.json
	jq -e '.changes | map(.method) | index("frames") != null and index("calls") != null' out.json
	# In the copy it is so: functions and heights tell all of it.
	rm "$db"
	"$CULPRIT" record -g -F 2000 -o "$db" -- "$PWD/copy" 0.4 2>/dev/null >said
	cmp said expected
	"$CULPRIT" calls -i "$db" --json >out.json
	known() { jq -e "[.contexts[] | select(.path[-1] == \"$1\")] | $2" out.json; }
	# Which of beta's callers gets a copy of it is open, and so is whether others come to it by the
	# jump at its old entry.
	callers='map([[.path, .frames] | transpose[] | select(.[1].jumped | not) | .[0] | sub("[.]twin$"; "")][-3]) | unique'
	known worker "$callers == [\"left\", \"right\"]"
	known helper "$callers == [\"alpha\", \"beta\"]"
	known worker 'map(.known) | index("ranked") == null'
	known helper 'map(.known) | index("ranked") == null'
}

# bats test_tags=plain
@test "the paper's random search changes frames only; what is not chosen stays" {
	learn "$programs/confused"
	report --search random --json | jq -e '.after[2].samples < 0.7 and ([.changes[].method] | unique == ["frames"])'
	# Their frames are on all confused paths alike: only a stray sample of the start can be told apart by them.
	report --only middle --only worker --json >out.json
	jq -e '.after[2].samples < 0.05 and [.changes[].function] - ["middle", "worker"] == []' out.json
	report --only middle --json | jq -e '[.refused[] | select(.reason == "it was left out")][0] | .functions > 1 and .samples > 0.5'
	report | grep -q "larger frames .* 1.0[0-9]*x"
}

# bats test_tags=plain
@test "paths that were counted are told apart, too" {
	learn "$programs/confused"
	few=$(report --json | jq .contexts)
	"$CULPRIT" record --context -o "$db" -- "$programs/confused" 0.01 >/dev/null 2>&1
	report --json >out.json
	# All that main calls, sampled or not.
	jq -e --argjson few "$few" '.contexts >= $few and .contexts >= 12 and .before.paths < 1 and .after[1].paths > .before.paths' out.json
}

@test "what is missing is said" {
	"$CULPRIT" record -o "$db" -- true 2>/dev/null
	run ! report
	[[ $output == *"record -g"* ]]
	run ! "$CULPRIT" edit "$programs/confused" --disambiguate --report
	[[ $output == *"--map"* ]]
	run ! report --search best
	run ! "$CULPRIT" edit "$programs/confused" --null --map "$db" --report
}
