#!/usr/bin/env bats
# culprit record --paths --context: paths of every context; summed over contexts they are what record
# --paths counts, and the contexts are those of record --context.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

# Paths of a database that has them by context, added up; and those of one without contexts.
by_context() {
	"$CULPRIT" calls --json -n 1000000 --min-share 0 -i "$1" |
		jq -r '.contexts[] | .path[-1] as $p | .paths[]? | "\($p) \(.begins) \(.blocks | join(",")) \(.ends) \(.next) \(.count)"' |
		add_up
}

alone() {
	"$CULPRIT" paths --json --min-share 0 -i "$1" |
		jq -r '.rows[] | "\(.procedure) \(.begins) \(.blocks | join(",")) \(.ends) \(.next) \(.count)"' | add_up
}

# Without what never keeps a record, such as _start.
add_up() {
	grep -v '^_' | awk '{ n = $NF; sub(/ [0-9]+$/, ""); s[$0] += n } END { for (k in s) print k, s[k] }' | sort
}

contexts() {
	"$CULPRIT" calls --folded --min-share 0 -i "$1" | sort
}

mixed() {
	gcc -w -O2 -x c - -o a <<-'END'
		#include <setjmp.h>
		#include <stdlib.h>
		static jmp_buf out;
		#define ALONE __attribute__((noipa))
		ALONE int leaf(int i) { return i * 3; }
		ALONE int parity(int i) { return i & 1 ? i / 3 : i + 1; }
		ALONE int turns(int n) { int s = 0; for (int i = 0; i < n; i++) s += i & 2 ? parity(i) : leaf(i); return s; }
		ALONE int odd(int i) { return turns(i | 1) + parity(2 * i + 1); }
		ALONE int even(int i) { return turns(i & 6) + parity(2 * i); }
		ALONE int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
		ALONE int kind(int i) { switch (i % 7) { case 0: return leaf(i); case 1: return 5; case 2: return i / 2;
			case 3: return parity(i); case 4: return -i; case 5: return i + 1; } return 0; }
		ALONE int deep(int n) { if (n == 3) longjmp(out, n); return deep(n - 1) + kind(n); }
		ALONE int jumps(int n) { volatile int s = 0; int got = setjmp(out); if (got) s += got; else s += deep(n); return s; }
		ALONE int compare(const void *a, const void *b) { return parity(*(int *)a) - parity(*(int *)b); }
		int main(void) {
			int s = 0, list[] = {5, 2, 8, 1, 9, 4, 7, 3};
			for (int i = 0; i < 1000; i++)
				s += i % 3 ? odd(i % 10) : even(i % 10), s += kind(i);
			s += fact(10) + jumps(9);
			qsort(list, 8, sizeof *list, compare);
			return s == 1;
		}
	END
}

record() { # DATABASE OPTION... -- COMMAND...
	"$CULPRIT" record -q -o "$@"
}

@test "summed over contexts paths are those without contexts, and contexts those without paths" {
	mixed
	record both.db --paths --context -- ./a
	record paths.db --paths -- ./a
	record context.db --context -- ./a
	by_context both.db >got
	alone paths.db >want
	[ "$(wc -l <want)" -gt 20 ]
	diff want got
	alone both.db | diff want -
	contexts context.db >want
	contexts both.db | diff want -
}

@test "paths differ by context as the program has them" {
	mixed
	record both.db --paths --context -- ./a
	"$CULPRIT" calls --json -n 1000 --min-share 0 -i both.db |
		jq -r '.contexts[] | select(.path[-1] == "parity") | [.path[-2]] + ([.paths[].count] | sort | map(tostring)) | join(" ")' |
		sort >got
	grep -qx 'even 334' got
	grep -qx 'odd 666' got
	# In the text each context has its own.
	"$CULPRIT" calls --paths --min-share 0 -i both.db >text
	[ "$(grep -c ' | entry' text)" -gt 20 ]
}

@test "copies by hand, refined ones, and what is not possible" {
	mixed
	"$CULPRIT" edit --context --paths a -o copy
	./copy || true
	"$CULPRIT" record -q --context --paths --counted copy -o counted.db
	record paths.db --paths -- ./a
	record refined.db --context --paths --refine paths.db -- ./a
	alone paths.db | awk '{ print $1, $3, $NF }' | while read -r name blocks n; do
		for b in ${blocks//,/ }; do echo "$name $b $n"; done
	done | add_up >want
	for db in counted refined; do
		alone $db.db | awk '{ print $1, $3, $NF }' | while read -r name blocks n; do
			for b in ${blocks//,/ }; do echo "$name $b $n"; done
		done | add_up | diff want -
	done
	run -2 --separate-stderr "$CULPRIT" record --context --paths --full -- ./a
	[[ $stderr == *"--full"* ]]
}
