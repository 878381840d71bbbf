#!/usr/bin/env bats
# culprit record --context: the calling context tree is the one that a tracer sees, whatever leaves
# procedures early or calls them from elsewhere.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	sources=$BATS_TEST_DIRNAME/programs/context
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

context() { # [OPTION...] -- COMMAND...
	"$CULPRIT" record --context -q -o "$db" "$@"
}

# Folded stacks, without what the compiler puts into every program; equal ones added up.
folded() {
	"$CULPRIT" calls --folded --min-share 0 -i "$db" | grep -v '^_' | add_up
}

add_up() {
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); s[$0] += n } END { for (k in s) print k, s[k] }' | sort
}

entries() { # NAME: over all contexts
	"$CULPRIT" calls --json --min-share 0 -n 1000000 -i "$db" |
		jq "[.contexts[] | select(.path[-1] == \"$1\") | .count] | add"
}

program() { # NAME [FLAG...]: from standard input
	gcc -w -O2 -x c - -o "$@"
}

traced() {
	gcc -w -O2 -fno-omit-frame-pointer -c "$sources/tracer.c" -o tracer.o
	g++ -w -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -finstrument-functions -rdynamic \
		"$sources/calls.cc" tracer.o -o traced -pthread
	TRACE=trace ./traced
	add_up <trace >want
	[ "$(wc -l <want)" -gt 5000 ]
}

@test "the same contexts as a tracer: exceptions, longjmp, callbacks, recursion, threads, a child" {
	traced
	g++ -w -O2 -fno-optimize-sibling-calls "$sources/calls.cc" -o plain -pthread
	context --libs none -- ./plain
	folded | cmp want -
}

# bats test_tags=plain
@test "the same when all procedures can be called from elsewhere, and at fixed addresses" {
	traced
	g++ -w -O2 -fno-optimize-sibling-calls -rdynamic "$sources/calls.cc" -o exported -pthread
	context --libs none -- ./exported
	folded | cmp want -
	rm "$db"
	g++ -w -O0 -no-pie "$sources/calls.cc" -o fixed -pthread
	context --libs none --atomic -- ./fixed
	folded | cmp want -
}

@test "jumps at the end are calls of who jumps; of a callback, its caller's" {
	program a -fno-inline -fno-ipa-cp <<-'END'
		#include <stdlib.h>
		__attribute__((noipa)) int last(int i) { return i / 3; }
		__attribute__((noipa)) int next(int i) { return last(i + 1); }
		__attribute__((noipa)) int first(int i) { return next(i + 2) + 1; }
		__attribute__((noipa)) int late(const void *a, const void *b) { return last(*(int *)a - *(int *)b); }
		int main(void) {
			int list[] = {1, 2}, s = 0;
			for (int i = 0; i < 10; i++)
				s += first(i);
			qsort(list, 2, sizeof *list, late);
			return s == 1;
		}
	END
	context -- ./a
	cat >want <<-'END'
		main 1
		main;first 10
		main;first;next 10
		main;first;next;last 10
		main;last 1
		main;late 1
	END
	folded | cmp want -
}

@test "recursion of 100,000 frames is three contexts; a killed program loses nothing" {
	program a <<-'END'
		#include <signal.h>
		__attribute__((noipa)) int odd(int n);
		__attribute__((noipa)) int even(int n) { return n ? odd(n - 1) + 1 : (raise(SIGKILL), 0); }
		__attribute__((noipa)) int odd(int n) { return n ? even(n - 1) + 1 : 0; }
		int main(void) { return even(100000) == 1; }
	END
	context -- ./a
	cat >want <<-'END'
		main 1
		main;even 1
		main;even;odd 50000
		main;even;odd;even 50000
	END
	folded | cmp want -
}

# bats test_tags=plain
@test "storms of signals lose no entry" {
	program a -pthread <<-'END'
		#include <signal.h>
		#include <stdio.h>
		#include <sys/time.h>
		static volatile int handled;
		__attribute__((noipa)) void count(void) { handled++; }
		__attribute__((noipa)) void handler(int s) { count(); (void)s; }
		__attribute__((noipa)) int leaf(int i) { return i * 3; }
		__attribute__((noipa)) int inner(int i) { return leaf(i) + leaf(i + 1); }
		__attribute__((noipa)) int outer(int i) { return inner(i) + inner(i + 2); }
		int main(void) {
			struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
			int s = 0;
			signal(SIGALRM, handler);
			setitimer(ITIMER_REAL, &often, NULL);
			for (int i = 0; i < 3000000 || handled < 20; i++)
				s += outer(i % 3000000);
			setitimer(ITIMER_REAL, &never, NULL);
			printf("%d\n", handled);
			return 0;
		}
	END
	context -- ./a >handled
	[ "$(entries handler)" -eq "$(cat handled)" ]
	[ "$(entries count)" -eq "$(cat handled)" ]
	[ "$(entries leaf)" -eq $((4 * $(entries outer))) ]
}

@test "a library that is loaded later has its contexts below who calls it" {
	program plug.so -shared -fPIC <<-'END'
		static __attribute__((noipa)) int inside(int i) { return i * 3; }
		int plug(int (*back)(int), int i) { return inside(i) + back(i); }
	END
	program a -ldl <<-'END'
		#include <dlfcn.h>
		__attribute__((noipa)) int back(int i) { return i + 1; }
		__attribute__((noipa)) int use(int (*f)(int (*)(int), int), int i) { return f(back, i); }
		int main(void) {
			void *h = dlopen("./plug.so", RTLD_NOW);
			int (*f)(int (*)(int), int) = h ? (int (*)(int (*)(int), int))dlsym(h, "plug") : 0;
			int s = 0;
			for (int i = 0; f && i < 7; i++)
				s += use(f, i);
			return !s;
		}
	END
	context --libs "$PWD/plug.so" -- ./a
	folded >got
	grep -qx 'main;use;plug 7' got || grep -qx 'main;plug 7' got # a jump at its end
	grep -q 'plug;back 7' got
	grep -q 'plug;inside 7' got
}

@test "a metric belongs to the contexts, and leaves the tree as it is" {
	traced
	g++ -w -O2 -fno-optimize-sibling-calls "$sources/calls.cc" -o plain -pthread
	context --metric tsc --libs none -- ./plain
	"$CULPRIT" calls --folded --metric calls --min-share 0 -i "$db" | grep -v '^_' | add_up | cmp want -
	"$CULPRIT" calls --json --min-share 0 -n 1000000 -i "$db" >got
	jq -e '[.contexts[] | select(.recursive | not) | .metrics.tsc] | min >= 0 and add > 0' got
	# An hour of no clock is this long: no reading was taken for an interval.
	jq -e '[.contexts[].metrics.tsc // 0] | max < 36e12' got
}

@test "static programs are refused with the reason" {
	program a -static <<<'int main(void) { return 0; }'
	run "$CULPRIT" record --context -o "$db" -- ./a
	[ "$status" -ne 0 ]
	[[ "$output" == *"static"* ]]
}
