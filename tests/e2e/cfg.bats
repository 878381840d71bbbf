#!/usr/bin/env bats
# culprit cfg: the text for Graphviz, and the pictures that it makes of it.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	MAKEDB="$(dirname "$CULPRIT")/tests/fixtures/makedb"
	"$MAKEDB" small "$db"
}

cfg() { # [OPTION...]
	"$CULPRIT" cfg -i "$db" "$@"
}

@test "the graph as text" {
	cfg hot --epoch 1 -o hot.dot
	grep -q '^digraph' hot.dot
	grep -q 'b1 \[id="block-0x401004", label="401004\.\.40100c' hot.dot
	grep -q 'b1 -> b1 \[id="edge-0x401004-0x401004", label=" taken [0-9.]*[kMG]* [89][0-9.]*%", penwidth=[0-9.]*, style=[a-z]*, color=blue3' hot.dot
	grep -q 'entry -> b0' hot.dot
	grep -q 'add    $0x1,%rax\\l' hot.dot
	cfg hot --epoch 1 --all --full --syntax intel -o all.dot
	grep -q 'add    rax,0x1\\l' all.dot
}

@test "long blocks are shortened, --full shows them" {
	cfg hot --epoch 1 -o hot.dot
	grep -q '… 6 more …' hot.dot
	cfg hot --epoch 1 --full -o full.dot
	[ "$(grep -c 'more …' full.dot)" = 0 ]
}

@test "pictures by dot" {
	cfg hot -o hot.svg
	grep -q '<svg' hot.svg
	grep -q '401004' hot.svg
	cfg hot -o hot.png
	[ "$(head -c 4 hot.png | tail -c 3)" = PNG ]
}

@test "without dot: which package has it, exit 3" {
	PATH= run "$CULPRIT" cfg -i "$db" hot -o hot.svg
	fails_with 3 dot graphviz
	PATH= run "$CULPRIT" cfg -i "$db" hot -o hot.dot
	[ "$status" = 0 ]
}

@test "what cannot be drawn or written" {
	run cfg nothing -o x.svg
	fails_with 2 nothing
	run cfg page_fault -o x.svg
	fails_with 2 page_fault 'no code'
	run cfg hot -o nowhere/x.dot
	fails_with 2 nowhere/x.dot
	run cfg hot -o nowhere/x.svg
	[ "$status" = 3 ]
	[ "$(grep -c '^culprit: ' <<< "$output")" = 1 ]
	[ ! -e x.svg ]
}
