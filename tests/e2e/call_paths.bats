#!/usr/bin/env bats
# culprit record -g: the call paths of samples, from the height of the stack, on programs that know them.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	need_root "call paths need BPF"
}

calls() { # [OPTION...]
	"$CULPRIT" calls -i "$db" "$@"
}

# Fails unless the paths that match have this share of all samples, give or take.
share() { # LOW HIGH JQ-CONDITION
	calls --json >out.json
	jq -e --argjson low "$1" --argjson high "$2" \
		"[.contexts[] | select($3) | .share] | add // 0 | debug | . >= \$low and . <= \$high" out.json
}

@test "one function, three callers" {
	"$CULPRIT" record -g -F 2000 -o "$db" -- "$programs/callers" 1.5 2>log
	grep -Eq "call paths: (9[0-9.]*|100.00)% of the samples" log
	share 0.42 0.58 '.path[-2:] == ["first", "worker"]'
	share 0.22 0.38 '.path[-2:] == ["second", "worker"]'
	share 0.12 0.28 '.path[-2:] == ["third", "worker"]'
	# All ways down a recursion are one.
	[ "$(jq '[.contexts[] | select(.path[-2:] == ["second", "worker"])] | length' out.json)" = 1 ]
	jq -e '[.contexts[] | select(.path[-1] == "worker" and .share > 0.1) | .known] | unique == ["unique"]' out.json
	jq -e '[.contexts[] | select(.path[-2] == "first") | .path[0]] | unique == ["_start"]' out.json
	jq -e '[.contexts[] | select(.path[-2] == "third") | .path | index("main")] | unique == [null]' out.json
	jq -e '.event == "cpu-clock" and .metric == "samples" and (.precision == null or .precision > 0.5)' out.json
	# All samples are somewhere.
	[ "$("$CULPRIT" top -i "$db" --json | jq '.events[0].samples')" = "$(jq .total out.json)" ]
	"$CULPRIT" db check "$db"
}

@test "what was learned is kept, and serves the next recording" {
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/callers" 0.6 2>/dev/null
	[ "$(sqlite3 "$db" "SELECT count(*) > 0 FROM profiles JOIN names ON names.id = type WHERE text = 'pathmap'")" = 1 ]
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/callers" 0.6 2>/dev/null
	share 0.85 1.01 '.path[-1] == "worker" and .known == "unique"'
}

@test "counts and samples of contexts are not added up" {
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/callers" 0.3 2>/dev/null
	"$CULPRIT" record --context -o "$db" -- "$programs/callers" 0.01 2>/dev/null
	calls --json | jq -e '.event == null and .contexts[0].known == "exact"'
	calls --json -e cpu-clock | jq -e '.event == "cpu-clock" and .contexts[0].known != "exact"'
}

@test "a stripped program without frame pointers, called by its libraries" {
	seq 20000 | awk '{ print $1 * 7919 % 20011, $1 }' >numbers
	perl -e 'while (<>) { push @a, $_ } for (1..20) { @b = sort { $a <=> $b } @a } print $b[0]' numbers >expected
	"$CULPRIT" record -g -F 2000 -o "$db" -- \
		perl -e 'while (<>) { push @a, $_ } for (1..20) { @b = sort { $a <=> $b } @a } print $b[0]' numbers >out 2>log
	cmp out expected
	# The way from the start of the program is whole.
	share 0.8 1 '.path[0] == "_start" and (.path | index("main"))'
}

# bats test_tags=plain
@test "paths against those of another recording" {
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/callers" 0.6 2>/dev/null
	"$CULPRIT" record -g --call-graph=copy -F 1000 -o other.db -- "$programs/callers" 0.4 2>/dev/null
	calls --check other.db --json >out.json
	jq -e '.by_caller.right_weights > 0.8 and .by_height.weights.precise > 100' out.json
	jq -e '.programs | length == 1 and (.[0].image | endswith("/callers"))' out.json
	[ "$(jq '.by_height.paths | add' out.json)" = "$(jq '.by_caller.paths | add' out.json)" ]
	calls --check other.db | grep -q "precise: the only one"
	# A database without samples of call paths.
	"$CULPRIT" record -F 1000 -o plain.db -- true 2>/dev/null
	run -2 calls --check plain.db
	[[ $output == *"no path maps"* ]]
}

# bats test_tags=plain
@test "how right reported paths are, by looking at every stack" {
	"$CULPRIT" record --call-graph=judged -F 1000 -o "$db" -- "$programs/callers" 0.6 2>log
	# Most samples were judged, and most of them right.
	calls --json | jq -e '.precision > 0.8'
	[ "$(sed -n 's/.* looked at, \([0-9]*\) of them at random.*/\1/p' log)" -gt 200 ]
	run -2 "$CULPRIT" record --call-graph=nonsense -- true
	[[ $output == *"nonsense"* ]]
}

# bats test_tags=plain
@test "contexts that were counted teach the map" {
	"$CULPRIT" record --context -o "$db" -- "$programs/callers" 0.01 2>/dev/null
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/callers" 0.3 2>log
	grep -q "contexts that were counted are known by their heights" log
	# What was counted is all there, and can nearly all be told apart.
	calls --check "$db" --json >out.json
	jq -e '.unit == "calls" and .by_caller.paths.missing == 0 and .by_caller.right_weights > 0.95' out.json
}

# bats test_tags=plain
@test "the call path of a crash, from its registers" {
	"$CULPRIT" record -g -F 1000 -o "$db" -- "$programs/crasher" 0.4 2>/dev/null
	for way in left right; do
		at=$("$programs/crasher" crash $way)
		calls --at "$at" --json >out.json
		jq -e --arg way $way '.paths | length == 1 and .[0].known == "unique" and .[0].path[-3:] == ["main", $way, "bottom"]' out.json
		calls --at "$at" | grep -q "main > $way > bottom"
	done
	run -2 calls --at "crasher+0x1,0x0,0x1000"
	run -2 calls --at "nothing+0x1,0x0,0x1000"
	[[ $output == *"no image and no procedure"* ]]
	run -2 calls --at "bottom,0x1000,0x100000"
	[[ $output == *"no call path is known"* ]]
	run -2 calls --at "bottom,0x1000"
	[[ $output == *"PC,SP,BASE"* ]]
}

# bats test_tags=plain
@test "contexts that an earlier profile does not have" {
	"$CULPRIT" record --context -o old.db -- "$programs/crasher" crash left >/dev/null 2>&1
	"$CULPRIT" record --context -o "$db" -- "$programs/crasher" 0 2>/dev/null
	calls --new old.db --json | jq -e '[.contexts[].path[-1]] | index("right") and (index("left") | not)'
	calls --new old.db | grep -q "main > right > bottom"
	calls --new "$db" | grep -q "no context is new"
	run -2 calls --new old.db --svg
	run -2 calls --new missing.db
}

# bats test_tags=plain
@test "contexts that are hard to name" {
	"$CULPRIT" record -g -F 2000 -o "$db" -- "$programs/call_cases" 1.5 2>log
	share 0 0.03 '.known == "unknown"'
	# Who jumped in place of a call has left no frame: the call says who it was.
	share 0.07 0.15 '.path[-4:] == ["in_jump", "jumps", "jumped_to", "worker"] and .frames[-3].jumped'
	share 0.07 0.15 '.path[-3:] == ["main", "in_recursion", "worker"]'
	share 0.07 0.15 '.path[-3:] == ["main", "in_alloca", "worker"]'
	share 0.07 0.15 '.path[-3:] == ["main", "in_hollow", "worker"] and .known != "ranked"'
	share 0.07 0.15 '.path[-3:] == ["main", "in_longjmp", "worker"]'
	share 0.07 0.15 '.path[-3:] == ["main", "in_vfork", "worker"]'
	# Code made at run time has no rows; its frame pointer leads on.
	share 0.07 0.15 '.path[-2:] == ["called_by_made", "worker"] and .path[-4] == "in_made" and .path[-5] == "main"'
	# A coroutine and a stack for signals have roots of their own.
	share 0.07 0.15 '.path[-2:] == ["in_coroutine", "worker"] and (.path | index("main") | not)'
	share 0.07 0.15 '.path[-2:] == ["in_handler", "worker"] and (.path | index("main") | not)'
	# On the stack of the program, who was interrupted is below the handler.
	share 0.07 0.15 '.path[-2:] == ["in_handler", "worker"] and (.path | index("handled"))'
}

@test "without BPF, as an ordinary user" {
	share_programs
	cp "$programs/callers" "$public"
	db=$public/test.db
	as_nobody "$public/culprit" record -g -F 2000 -o "$db" -- "$public/callers" 1 2>/dev/null
	share 0.4 0.6 '.path[-2:] == ["first", "worker"] and .path[0] == "_start"'
	share 0.2 0.4 '.path[-2:] == ["second", "worker"]'
	share 0.1 0.3 '.path[-2:] == ["third", "worker"] and (.path | index("main") | not)'
	rm "$db"
	as_nobody "$public/culprit" record --call-graph=copy -F 500 -o "$db" -- "$public/callers" 0.4 2>/dev/null
	share 0.9 1.01 '.known == "walked"'
	rm -r "$public"
}

# bats test_tags=plain
@test "chains of frame pointers" {
	gcc -O1 -fno-omit-frame-pointer -I"$root/tests/e2e/programs" -o chained "$root/tests/e2e/programs/callers.c" -lpthread
	"$CULPRIT" record --call-graph=fp -F 2000 -o "$db" -- ./chained 0.6 2>/dev/null
	share 0.42 0.58 '.path[-3:] == ["main", "first", "worker"] and .known == "walked"'
	share 0.12 0.28 '.path[-2:] == ["third", "worker"] and .path[0] == "start_thread"'
}

# bats test_tags=plain
@test "probes in programs are sampling points" {
	"$CULPRIT" record -g -e "uprobe:$programs/callers:worker" -c 1 -o "$db" -- "$programs/callers" 0.05 2>/dev/null
	calls --json >out.json
	jq -e '.event == "uprobe:callers:worker" and .total == 30' out.json
	share 0.3 0.37 '.path[-3:] == ["main", "first", "worker"]'
	run -2 "$CULPRIT" record -e "uprobe:$programs/callers:nobody" -- true
	[[ $output == *"no procedure 'nobody'"* ]]
}
