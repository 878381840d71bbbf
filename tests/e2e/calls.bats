#!/usr/bin/env bats
# culprit record --context and culprit calls: on contexts that are known, and on a program that runs.

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
	calls --metric calls | grep -q "^5 contexts; calls = 181"
	calls --min-share 30% | grep -q "^and 2 more (--min-share, -n)"
}

@test "from the bottom, and hot contexts" {
	calls --bottom-up >out
	[ "$(grep -c "< main$" out)" = 3 ]
	calls --hot | grep -q "28.41%  85.2%     50  main > f > h$"
	calls --hot --proc g | grep -q "^14.20%  14.2%     25  main > f > h > g$"
}

@test "for scripts" {
	calls --json >out
	jq -e '.contexts | length == 5' out
	jq -e '.contexts[1] | .path == ["main", "f", "h"] and .count == 50 and .known == "exact"
		and .frames[2] == {"image": "/opt/demo/lib/libx.so", "start": "0x1000"}
		and .metrics.tsc == 500' out
	jq -e '[.contexts[].share] | add > 0.999 and add < 1.001' out
	jq -e '[.contexts[] | select(.recursive) | {path, count}] == [{"path": ["main", "f", "h", "g", "h"], "count": 5}]' out
	jq -e '.contexts[0].paths | length == 2 and .[1].count == 70' out
}

@test "folded stacks and a flame graph" {
	calls --folded >out
	printf '%s\n' 'main 10' 'main;f 1000' 'main;f;h 500' 'main;f;h;g 250' | diff out -
	"$CULPRIT" export -f folded -i "$db" | diff out -
	run "$CULPRIT" calls -i "$db" --svg -o "$db"
	fails_with 2 "is the database itself"
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

@test "a program's contexts: who was called from where, how often" {
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
	export XDG_CACHE_HOME=$dir/cache
	gcc -w -O1 -fno-inline -fno-optimize-sibling-calls -x c - -o a <<-'END'
		#include <stdlib.h>
		volatile int sink;
		void leaf(void) { sink++; }
		void left(void) { leaf(); leaf(); }
		void right(void) { leaf(); }
		void deep(int n) { if (n) deep(n - 1); else leaf(); }
		int order(const void *a, const void *b) { left(); return *(int *)a - *(int *)b; }
		int main(void) {
			int two[] = {2, 1};
			for (int i = 0; i < 10; i++) {
				left();
				i % 2 ? right() : left();
			}
			deep(7);
			qsort(two, 2, sizeof *two, order);
			return 0;
		}
	END
	rm "$db"
	"$CULPRIT" record --context -o "$db" -- ./a
	"$CULPRIT" db check "$db"
	calls --json --metric calls | jq -r '.contexts[] | "\(.path | join(" ")) \(.count)"' |
		sed -n 's/.*main/main/p' | sort >got
	sort >want <<-'END'
		main 1
		main left 15
		main left leaf 30
		main right 5
		main right leaf 5
		main deep 1
		main deep deep 7
		main deep leaf 1
		main order 1
		main order left 1
		main order left leaf 2
	END
	diff got want
	calls --json | jq -e '[.contexts[] | select(.recursive) | .path[-1]] == ["deep"]'
}
