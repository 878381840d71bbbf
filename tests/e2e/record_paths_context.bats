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

add_up() {
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); s[$0] += n } END { for (k in s) print k, s[k] }' | sort
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

# Ten branches one after another, in two contexts; and procedures whose frame must stay as it is.
many() {
	gcc -w -O2 -x c - -o a <<-'END'
		#include <stdarg.h>
		#include <stdio.h>
		#include <stdlib.h>
		#define ALONE __attribute__((noipa))
		#define BIT(n) if (i & 1 << n) __asm__ volatile("xor $" #n ", %0" : "+r"(s) : : "cc")
		ALONE int many(unsigned i) {
			int s = i;
			BIT(0); BIT(1); BIT(2); BIT(3); BIT(4); BIT(5); BIT(6); BIT(7); BIT(8); BIT(9);
			return s;
		}
		ALONE int leaf(int i) { return i & 1 ? 3 * i : i; }
		/* It looks at its own frame from above. */
		ALONE int above(int n) {
			char *here = (char *)__builtin_dwarf_cfa(), *p = here;
			int s = leaf(n);
			for (int i = 0; i < n % 5; i++) s += i & 1 ? leaf(i) : (p++, 1);
			return s + (p - here > 2 ? leaf(3) : 0);
		}
		ALONE int sum(int n, ...) {
			va_list list;
			int s = 0;
			va_start(list, n);
			for (int i = 0; i < n; i++) s += va_arg(list, int) & 1 ? leaf(i) : 2;
			va_end(list);
			return s;
		}
		ALONE int one(int i) { return many(i) + above(i) + 1; }
		ALONE int other(int i) { return many(i * 7) + above(i + 1) + sum(i % 3, i, i + 1) - 1; }
		int main(void) {
			int s = 0;
			for (int i = 0; i < 3000; i++) s += i % 3 ? one(i) : other(i);
			printf("%d\n", s);
			return 0;
		}
	END
}

@test "whole paths, and procedures that have no place for their record" {
	many
	record x.db --exact -- ./a >want.out
	"$CULPRIT" export -f counts -i x.db --image "$(realpath a)" | awk '$1 == "block" && $4 { print $2, $4 }' | sort >want
	record full.db --paths --full -- ./a
	alone full.db >whole
	[ "$(grep -c '^many ' whole)" = 1024 ]
	for options in "" --atomic --full "--full --metric tsc" "--metric tsc --metric page-faults"; do
		rm -f both.db
		record both.db --paths --context $options -- ./a >out
		cmp want.out out
		"$CULPRIT" paths --json --min-share 0 -i both.db --image "$(realpath a)" |
			jq -r '.rows[] | .count as $c | .blocks[] | "\(.) \($c)"' |
			awk '{ n[$1] += $2 } END { for (b in n) print b, n[b] }' | sort | diff want -
		by_context both.db >got
		alone both.db | diff got -
		[[ $options != *--full* ]] || grep '^many ' whole | diff - <(grep '^many ' got)
	done
}

@test "measured: what contexts took is what their paths took, and callees are left out" {
	gcc -w -O2 -x c - -o a <<-'END'
		#define ALONE __attribute__((noipa))
		ALONE int spin(int turns) { for (volatile int i = 0; i < turns; i++); return turns & 1 ? 3 : turns; }
		ALONE int little(int i) { return spin(i & 1 ? 100 : 200) + 1; }
		ALONE int much(int i) { return spin(i & 1 ? 20000 : 20001) + 1; }
		int main(void) { int s = 0; for (int i = 0; i < 200; i++) s += little(i) + much(i); return s == 1; }
	END
	record both.db --paths --context --metric tsc -- ./a
	"$CULPRIT" calls --json -n 1000 --min-share 0 -i both.db | jq -e '
		def took(f; g): [.contexts[] | select(.path[-2:] == [f, g]) | .metrics.tsc] | add;
		took("much"; "spin") > took("little"; "spin") and took("much"; "spin") > took("main"; "much")
		and ([.contexts[] | select(.paths) | (.metrics.tsc // 0) == ([.paths[].metrics.tsc // 0] | add)] | all)'
	"$CULPRIT" paths -i both.db --min-share 0 --metric tsc --json | jq -e '.total > 0 and .totals.readings > 1000'
}

@test "threads, children, signals, exceptions, deep recursion: paths of all contexts are those without" {
	g++ -w -O2 -pthread -x c++ - -o a <<-'END'
		#include <pthread.h>
		#include <signal.h>
		#include <stdio.h>
		#include <sys/wait.h>
		#include <unistd.h>
		#define ALONE extern "C" __attribute__((noipa))
		struct guard { int *n; ~guard() { ++*n; } };
		ALONE int pick(int i) { return i % 3 ? i % 5 ? i : -i : 2 * i; }
		ALONE int thrower(int i) { if (i % 7 == 2) throw i; return pick(i); }
		ALONE int passes(int i, int *n) { guard g{n}; return i & 1 ? thrower(i) : pick(i); }
		ALONE int catches(int i, int *n) { try { return passes(i, n); } catch (int k) { return pick(k); } }
		ALONE int odd(int n);
		ALONE int even(int n) { return n ? odd(n - 1) + pick(n) : 0; }
		ALONE int odd(int n) { return n ? even(n - 1) + 1 : 0; }
		static volatile int handled;
		ALONE void handler(int s) { handled += pick(s) != 0; }
		ALONE void *run(void *) { int n = 0; long s = 0; for (int i = 0; i < 2000; i++) s += catches(i, &n); return (void *)s; }
		int main() {
			pthread_t t[64];
			int n = 0;
			signal(SIGUSR1, handler);
			for (int i = 0; i < 200; i++) raise(SIGUSR1);
			for (int i = 0; i < 64; i++) pthread_create(&t[i], 0, run, 0);
			for (int i = 0; i < 64; i++) pthread_join(t[i], 0);
			if (!fork()) { run(0); _exit(0); }
			wait(0);
			printf("%d %d\n", even(100000) > 0, handled);
			return 0;
		}
	END
	record both.db --paths --context --libs none -- ./a >out
	record paths.db --paths --atomic --libs none -- ./a | cmp out -
	alone paths.db | grep -v '^_' >want
	[ "$(wc -l <want)" -gt 15 ]
	alone both.db | grep -v '^_' | diff want -
	by_context both.db | grep -v '^_' | diff want -
	# pick runs all its paths in the contexts of both its callers, and of the handler one.
	"$CULPRIT" calls --json -n 1000 --min-share 0 -i both.db |
		jq -e '[.contexts[] | select(.path[-2:] == ["handler", "pick"]) | .paths | length] == [1]'
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
	run -2 --separate-stderr "$CULPRIT" record --context --paths --per-thread -- ./a
	[[ $stderr == *"by thread always"* ]]
}
