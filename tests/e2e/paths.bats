#!/usr/bin/env bats
# culprit record --paths and culprit paths: on counts that are known, and on programs that really run.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	makedb=$(dirname "$CULPRIT")/tests/fixtures/makedb
}

paths() { # [OPTION...]
	"$CULPRIT" paths -i "$db" "$@"
}

@test "hot, cold, dense and sparse" {
	"$makedb" counted "$db"
	paths --min-share 5% >out
	grep -q "^4 paths ran 111 times" out
	grep -A1 "f (1 of 2)" out | grep -q "entry 2000 2004 2008 200c 200d return"
	! grep -q "(1 of 1)" out
	paths --json --min-share 5% | jq -e '.metric == "tsc" and (.rows | length) == 2
		and .rows[0].metrics.tsc == 1000 and .rows[0].share > 0.9 and .rows[0].path == 1
		and .rows[0].class == "dense" and .rows[1].class == "sparse"
		and ([.classes[].paths] | add) == 4 and ([.classes[].share] | add) > 0.999'
}

@test "by another metric, one procedure, procedures by paths" {
	"$makedb" counted "$db"
	paths --metric executions --json | jq -e '.total == 111 and .rows[0].count == 50'
	paths g | grep -q "loop 3010 -> 3010"
	paths 'demo!0x3000' --json | jq -e '(.rows | length) == 1 and .rows[0].next == "0x3010"'
	[ "$(paths --procedures | awk '$1 == 2 { print $NF }')" = f ]
	paths --proc 'm*' --json --min-share 0 | jq -e '[.rows[].procedure] == ["main"]'
	run "$CULPRIT" paths -i "$db" --metric misses
	fails_with 2 "no metric 'misses' was measured; there are tsc, executions and instructions"
}

@test "what edges alone would foretell" {
	"$makedb" counted "$db"
	paths --compare --min-share 10% | grep -q "2 that never ran"
	paths --compare --json --min-share 10% | jq -e '.prediction.never == 2
		and .prediction.overlap < 0.51 and .rows[0].predicted == 25'
}

@test "no paths: one line that says how to get them" {
	"$makedb" small "$db"
	run "$CULPRIT" paths -i "$db"
	fails_with 2 "culprit record --paths"
}

# Two conditions that agree in nine of ten rounds: what an edge profile cannot tell.
correlated() {
	gcc -w -g -O1 -fno-if-conversion -fno-if-conversion2 -fno-tree-vectorize -x c - -o a <<-'END'
		volatile int sink;
		__attribute__((noinline)) void f(int a, int b) {
			if (a)
				sink++;
			else
				sink--;
			if (b)
				sink += 2;
			else
				sink -= 2;
		}
		int main(void) {
			for (int i = 0; i < 1000; i++)
				f(i % 2, i % 10 ? i % 2 : !(i % 2));
			return 0;
		}
	END
}

@test "a program's paths, their counts and source lines" {
	need_namespaces
	correlated
	"$CULPRIT" record --paths -o "$db" -- ./a
	"$CULPRIT" db check "$db"
	paths f --json >out
	jq -e '[.rows[].count] | sort == [100, 400, 500]' out
	jq -e 'all(.rows[]; .lines | test("^<stdin>:[0-9,-]+$"))' out
	paths --compare --json | jq -e '.prediction.overlap < 0.99'
}

@test "paths add up to edges, and to blocks" {
	need_namespaces
	# Text, code and noise: all that deflate tells apart.
	{ seq 20000; head -c 50000 /bin/sh; awk 'BEGIN { srand(1); while (n++ < 9000) print rand() }'; } >input
	"$CULPRIT" record --paths -q -o "$db" -- gzip -9 -n -c input >got
	gzip -9 -n -c input | cmp - got
	"$CULPRIT" record --exact -q -o exact.db -- gzip -9 -n -c input >got
	"$CULPRIT" paths -i "$db" --json --min-share 0 |
		jq -r '.rows[] | .count as $n | .blocks[] | "\(.) \($n)"' |
		awk '{ sum[$1] += $2 } END { for (b in sum) print b, sum[b] }' | sort >sums
	"$CULPRIT" export -f counts -i exact.db --image gzip |
		awk '$1 == "block" && $4 > 0 { print $2, $4 }' | sort >blocks
	[ "$(wc -l <sums)" -gt 500 ]
	diff sums blocks
}

@test "a copy made by hand" {
	correlated
	"$CULPRIT" edit --paths a -o copy
	./copy
	./copy
	run "$CULPRIT" record --counted copy -o "$db"
	[ "$status" -eq 2 ]
	[[ $output == *copy.map*"counts something else: say --paths"* ]]
	"$CULPRIT" record --paths --counted copy -o "$db"
	paths f --json | jq -e '[.rows[].count] | sort == [200, 800, 1000]'
}
