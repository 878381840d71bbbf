#!/usr/bin/env bats
# culprit calls: on contexts that are known.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	makedb=$(dirname "$CULPRIT")/tests/fixtures/makedb
	"$makedb" counted "$db"
}

calls() { # [OPTION...]
	"$CULPRIT" calls -i "$db" "$@"
}

@test "the tree from the top, call sites together and apart" {
	calls >out
	grep -q "^5 contexts; tsc = 1760" out
	grep -q "99.43%  56.82%    100    f$" out
	grep -q " 5          h (recursive)$" out
	calls --sites | grep -q " 60    f from 1010$"
	calls --metric calls | grep -q "^5 contexts; calls = 176"
	calls --min-share 30% | grep -q "^and 2 more with less than 30%"
}

@test "from the bottom, and hot contexts" {
	calls --bottom-up >out
	[ "$(grep -c "< main$" out)" = 3 ]
	calls --hot | grep -q "28.41%  85.2%     50  main > f > h$"
	calls --hot --proc g | grep -q "^14.20%  14.2%     25  main > f > h > g$"
}

@test "for scripts" {
	calls --json >out
	jq -e '.contexts | length == 4' out
	jq -e '.contexts[1] | .path == ["main", "f", "h"] and .count == 50 and .known == "exact"
		and .frames[2] == {"image": "/opt/demo/lib/libx.so", "start": "0x1000"}
		and .metrics.tsc == 500' out
	jq -e '[.contexts[].share] | add > 0.999 and add < 1.001' out
	jq -e '.contexts[2].recursive == [{"procedure": "h", "count": 5}]' out
	jq -e '.contexts[0].paths | length == 2 and .[1].count == 70' out
}

@test "folded stacks and a flame graph" {
	calls --folded >out
	printf '%s\n' 'main 10' 'main;f 1000' 'main;f;h 500' 'main;f;h;g 250' | diff out -
	calls --svg -o a.svg
	grep -q '<title>h: 42.61%, 750 tsc</title>' a.svg
	calls --svg | diff a.svg -
	if command -v xmllint >/dev/null; then xmllint --noout a.svg; fi
	run "$CULPRIT" calls -i "$db" --hot -o x
	[ "$status" = 2 ] && [[ $output == *"-o goes with --svg and --folded"* ]]
}

@test "how large the tree is" {
	calls --size >out
	grep -q "^nodes  *5, of 4 procedures$" out
	grep -q "^most nodes of a procedure  *2, f$" out
	grep -q "on one path  *1$" out
}

@test "no contexts: one line that says how to get them" {
	"$makedb" small small.db
	run "$CULPRIT" calls -i small.db
	fails_with 2 "culprit record --context"
}
