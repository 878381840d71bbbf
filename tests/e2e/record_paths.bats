#!/usr/bin/env bats
# culprit record --paths: the sum of all paths over every block is what record --exact counts there.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

program() { # NAME [FLAG...]: from standard input
	gcc -w -O2 -x c - -o "$@"
}

# Blocks of a file that ran, with their counts: as the sum of paths, and as counted.
path_sums() { # DATABASE FILE
	"$CULPRIT" paths -i "$1" --image "$(realpath "$2")" --min-share 0 --json |
		jq -r '.rows[] | .count as $c | .blocks[] | "\(.) \($c)"' |
		awk '{ n[$1] += $2 } END { for (b in n) print b, n[b] }' | sort
}

exact_counts() { # DATABASE FILE
	"$CULPRIT" export -f counts -i "$1" --image "$(realpath "$2")" |
		awk '$1 == "block" && $4 { print $2, $4 }' | sort
}

# Runs a command twice, and writes the blocks of a file that differ: start, exact, paths.
differing() { # FILE OPTIONS COMMAND...
	local file=$1 options=$2
	shift 2
	rm -f x.db p.db
	"$CULPRIT" record -q --exact $(grep -o -- --atomic <<<"$options") -o x.db --libs none -- "$@" >exact.out
	"$CULPRIT" record -q --paths $options -o p.db --libs none -- "$@" >paths.out
	cmp exact.out paths.out
	exact_counts x.db "$file" >exact.txt
	path_sums p.db "$file" >paths.txt
	[ -s exact.txt ]
	join -a 1 -a 2 -e 0 -o 0,1.2,2.2 exact.txt paths.txt | awk '$2 != $3'
}

# Lines whose block lies in one of these functions of ./a.
inside() { # FUNCTION...
	local line name
	while read -r line; do
		for name; do
			set -- $(nm -S a | awk -v f="$name" '$4 == f { print "0x" $1, "0x" $2 }') "$@"
			((${line%% *} >= $1 && ${line%% *} < $1 + $2)) && echo "$line"
			shift 2
		done
	done
}

mixed() {
	program a <<-'END'
		#include <setjmp.h>
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		static jmp_buf out;
		static volatile int signals;
		__attribute__((noinline)) int kind(int i) {
			switch (i % 7) { case 0: return i * 3; case 1: return 5; case 2: return i / 2;
				case 3: return i; case 4: return -i; case 5: return i + 1; }
			return 0;
		}
		#define BIT(n) if (i & 1 << n) __asm__ volatile("xor $" #n ", %0" : "+r"(s) : : "cc")
		__attribute__((noinline)) int many(unsigned i) {
			int s = kind(i);
			BIT(0); BIT(1); BIT(2); BIT(3); BIT(4); BIT(5); BIT(6); BIT(7);
			BIT(8); BIT(9); BIT(10); BIT(11); BIT(12); BIT(13); BIT(14);
			return s;
		}
		__attribute__((noinline)) int deep(int n) {
			if (n == 3) longjmp(out, n);
			return deep(n - 1) + kind(n);
		}
		__attribute__((noinline)) int jumps(int n) {
			volatile int turns = 0;
			int r = setjmp(out);
			if (turns++ < n) { if (turns & 1) deep(6); else longjmp(out, 1); }
			return r + turns;
		}
		static void handler(int s) { signals += kind(signals); }
		static int compare(const void *a, const void *b) {
			int x = *(const int *)a, y = *(const int *)b;
			return x < y ? -1 : x > y;
		}
		int main(void) {
			static int list[300];
			int s = 0;
			signal(SIGUSR1, handler);
			for (int i = 0; i < 3000; i++) {
				s += kind(i) + many(i * 2654435761u >> 17);
				if (i % 100 == 0) raise(SIGUSR1);
			}
			for (int i = 0; i < 300; i++) list[i] = i * 7919 % 301;
			qsort(list, 300, sizeof *list, compare);
			for (int i = 0, j = 9; i < 50; i += j > 20 ? 3 : 1, j ^= i) s += j;
			printf("%d %d %d %d\n", s, jumps(20), signals, list[7]);
			exit(0);
		}
	END
}

@test "sums are exact: switches, loops, longjmp, signals, callbacks" {
	mixed
	differing a "" ./a >differ
	# Only activations that longjmp left have paths that never ended.
	inside deep jumps <differ >known
	cmp known differ
	awk '$2 <= $3 { bad = 1 } END { exit bad }' differ
}

@test "loops of one block, whose turns are counted in registers that are in use" {
	program a -fno-tree-vectorize -fno-unroll-loops <<-'END'
		#include <stdio.h>
		#define ALONE __attribute__((noipa))
		ALONE long few(const long *p, long n) { long s = 0; do s = s * 3 ^ *p++; while (--n > 0); return s; }
		ALONE long entries(const long *p, long n) {
			long s = n & 1 ? n * 5 : n + 1;
			if (n & 2) s ^= *p;
			do s = s * 3 + *p++; while (--n > 0);
			return s & 4 ? s : -s;
		}
		/* Nearly all registers are in use behind the loop, and not in it. */
		ALONE long busy(const long *p, long a, long b, long c, long d, long e) {
			long f = p[0], g = p[1], h = p[2], i = p[3], j = p[4], k = p[5], s = 0, n = f & 7;
			do s = s * 3 ^ *p++; while (--n > 0);
			return s ^ a + 2 * b + 3 * c ^ 4 * d + 5 * e ^ f * g + h * i ^ j * k + a * g ^ b * h ^ c * i ^ d * j ^ e * k;
		}
		ALONE long twice(const long *p, long n, long m) {
			long s = 0, t = 1;
			do s = s * 3 ^ *p++; while (--n > 0);
			do t = t * 7 ^ *p--; while (--m > 0);
			return s - t;
		}
		int main(void) {
			long list[64], s = 0;
			for (int i = 0; i < 64; i++) list[i] = i * 7919 % 61;
			for (int i = 0; i < 4000; i++)
				s += few(list, i % 5) + entries(list + i % 8, i % 9) + busy(list + i % 40, i, s, 3, i ^ s, 5) + twice(list + 8, 1 + i % 4, 1 + i % 3);
			printf("%ld\n", s);
			return 0;
		}
	END
	for options in "" --atomic; do
		differing a "$options" ./a >differ
		[ ! -s differ ]
	done
	"$CULPRIT" record -q --paths --refine p.db -o r.db --libs none -- ./a >refined.out
	cmp exact.out refined.out
	path_sums r.db a | cmp exact.txt -
	"$CULPRIT" record -q --paths --context -o c.db --libs none -- ./a >context.out
	cmp exact.out context.out
	path_sums c.db a | join -a 1 -a 2 -e 0 -o 0,1.2,2.2 exact.txt - | awk '$2 != $3' >differ
	inside few entries busy twice main <differ >wrong
	[ ! -s wrong ]
}

@test "whole paths: the same sums, from a table" {
	mixed
	differing a --full ./a >full
	differing a "" ./a >differ
	cmp full differ
	"$CULPRIT" paths -i p.db many --procedures --json | jq -e '.procedures[0] | .counted == "array" and .cuts > 0'
	"$CULPRIT" record -q --paths --full -o f.db --libs none -- ./a >/dev/null
	"$CULPRIT" paths -i f.db many --min-share 0 --json |
		jq -e '[.rows[].count] | add == 3000 and length > 1000'
	"$CULPRIT" paths -i f.db many --procedures --json |
		jq -e '.procedures[0] | .potential == 32768 and .counted == "hash" and .cuts == 0'
}

@test "so many blocks that an array has room for each, but not for 4,096 paths: no table" {
	{
		echo 'long f(long x) { volatile long y = 0;'
		seq 2500 | sed 's/.*/if (x % & == 1) y += &;/'
		echo 'return y; } int main(void) { long s = 0; for (int i = 0; i < 50; i++) s += f(i); return s == 1; }'
	} | program a
	differing a "" ./a >differ
	[ ! -s differ ]
	"$CULPRIT" paths -i p.db f --procedures --json |
		jq -e '.procedures[0] | .counted == "array" and .cuts > 0 and .potential > 4096'
}

@test "refined by an earlier run: the same sums" {
	mixed
	"$CULPRIT" record -q --exact -o x.db --libs none -- ./a >/dev/null
	"$CULPRIT" record -q --paths -o p.db --libs none -- ./a >/dev/null
	path_sums p.db a >before
	for db in x.db p.db; do
		rm -f r.db
		"$CULPRIT" record -q --paths --refine "$db" -o r.db --libs none -- ./a >/dev/null
		# Loops that turn often begin paths of their own, so what longjmp left may differ.
		path_sums r.db a | join -a 1 -a 2 -e 0 -o 0,1.2,2.2 before - | awk '$2 != $3' >differ
		inside deep jumps <differ >known
		cmp known differ
	done
	run "$CULPRIT" record --paths --refine none.db -o r.db -- ./a
	[ "$status" -ne 0 ]
	[[ $output == *none.db* ]]
	run "$CULPRIT" record --paths --full --refine p.db -o r.db -- ./a
	[ "$status" = 2 ]
	[[ $output == *"counts all paths"* ]]
}

@test "measured: callees are left out, and the sums stay" {
	program a <<-'END'
		#include <stdio.h>
		__attribute__((noinline)) int leaf(int turns) {
			for (volatile int i = 0; i < turns; i++);
			return turns;
		}
		__attribute__((noinline)) int calls(int i) { return (i & 1 ? leaf(50000) : leaf(500)) + 1; }
		int main(void) {
			int s = 0;
			for (int i = 0; i < 100; i++) s += calls(i);
			printf("%d\n", s);
			return 0;
		}
	END
	differing a "--metric tsc" ./a >differ
	[ ! -s differ ]
	"$CULPRIT" paths -i p.db --min-share 0 --metric tsc --json | jq -e '
		def sum(f): [.rows[] | select(.procedure == f) | .metrics.tsc] | add;
		sum("leaf") > 20 * sum("calls") and sum("calls") > 0'
	rm p.db
	run -0 "$CULPRIT" record --paths --metric tsc -o p.db --libs none -- ./a
	[[ $output == *"ticks of measuring"* ]]
	run "$CULPRIT" record --paths --metric misses -o p.db -- ./a
	fails_with 2 "event misses: nobody knows it"
}

faulting() {
	program a -pthread <<-'END'
		#define _GNU_SOURCE
		#include <pthread.h>
		#include <stdio.h>
		#include <sys/mman.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static char *fresh(void) {
			char *p = mmap(0, 40 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(p, 40 * 4096, MADV_NOHUGEPAGE);
			return p;
		}
		__attribute__((noinline)) void touch(volatile char *p, int n) {
			for (int i = 0; i < n; i++) p[i * 4096] = 1;
		}
		__attribute__((noinline)) int idle(int n) { int s = 0; for (int i = 0; i < n; i++) s ^= i; return s; }
		__attribute__((noinline)) int work(int n) { touch(fresh(), n); return idle(n); }
		static void *thread(void *arg) { work(30); return arg; }
		int main(void) {
			pthread_t t;
			int s = work(10) + work(20);
			pthread_create(&t, 0, thread, 0);
			pthread_join(t, 0);
			for (int fd = 3; fd < 2000; fd++) close(fd);
			s += work(10);
			fflush(stdout);
			if (!fork()) { work(40); _exit(0); }
			wait(0);
			printf("%d\n", s);
			return 0;
		}
	END
}

# A child may also fault where it writes to what it shares with its parent.
# bats test_tags=plain
@test "an event: by path, in threads, children, and after files were closed" {
	faulting
	for options in "--metric page-faults --metric tsc" "--full --metric page-faults"; do
		rm -f p.db
		"$CULPRIT" record -q --paths $options -o p.db --libs none -- ./a
		"$CULPRIT" paths -i p.db --min-share 0 --json | jq -e '
			def sum(f): [.rows[] | select(.procedure == f) | .metrics["page-faults"]] | add;
			.metric == "page-faults" and sum("touch") >= 110 and sum("touch") <= 114 and sum("idle") <= 2
			and .totals.readings > 100'
	done
	rm -f p.db
	"$CULPRIT" record -q --context --metric tsc --metric page-faults -o p.db --libs none -- ./a
	"$CULPRIT" calls -i p.db --min-share 0 -n 1000 --json | jq -e '
		def sum(f): [.contexts[] | select(.path[-1] == f) | .metrics["page-faults"]] | add;
		.metric == "page-faults" and sum("touch") >= 110 and sum("touch") <= 114 and sum("idle") <= 2
		and ([.contexts[].metrics.tsc // 0] | max < 36e12)'
}

@test "what cannot be measured is refused before the command runs" {
	program a <<<'int main(void) { return 0; }'
	run "$CULPRIT" record --paths --metric tsc --metric tsc -o p.db -- ./a
	fails_with 2 "metric tsc: is named twice"
	run "$CULPRIT" record --paths --metric tsc --metric cs --metric task-clock -o p.db -- ./a
	[ "$status" = 2 ]
	"$CULPRIT" doctor --events | grep -qx cycles ||
		{ run "$CULPRIT" record --context --metric cycles -o p.db -- ./a &&
		fails_with 3 "metric cycles: this machine does not have the counter"; }
	program b -static <<<'int main(void) { return 0; }'
	run "$CULPRIT" record --paths --metric page-faults -o p.db -- ./b
	[ "$status" -ne 0 ]
	[[ $output == *"static"* ]]
}

@test "sums are exact: every block of gzip" {
	seq 3000 >text
	differing /usr/bin/gzip "" /usr/bin/gzip -9 -n -c text >differ
	[ ! -s differ ]
	[ "$(wc -l <paths.txt)" -gt 300 ]
}

@test "sums are exact: threads and children that count at once" {
	program a -pthread <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <sys/wait.h>
		#include <unistd.h>
		__attribute__((noinline)) int work(int i) { return i % 3 ? i % 5 ? i : -i : i * 2; }
		static void *run(void *p) {
			long s = 0;
			for (int i = 0; i < 20000; i++) s += work(i);
			return (void *)s;
		}
		int main(void) {
			pthread_t t[4];
			pid_t child = fork();
			for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, run, NULL);
			for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
			if (child) { wait(NULL); puts("done"); }
			return 0;
		}
	END
	differing a --atomic ./a >differ
	[ ! -s differ ]
	"$CULPRIT" paths -i p.db work --min-share 0 --json | jq -e '[.rows[].count] | add == 160000'
	rm -f p.db
	run -0 "$CULPRIT" record --paths -o p.db --libs none -- ./a
	[[ $output == *--atomic* ]]
}

@test "exceptions: what they leave is all that is missing" {
	g++ -w -O2 -x c++ - -o a <<-'END'
		#include <cstdio>
		struct guard { int *n; ~guard() { ++*n; } };
		__attribute__((noinline)) int thrower(int i) { if (i % 5 == 2) throw i; return i & 1 ? 3 : i; }
		__attribute__((noinline)) int passes(int i, int *n) { guard g{n}; return thrower(i) + 1; }
		__attribute__((noinline)) int catches(int i, int *n) {
			try { return passes(i, n); } catch (int k) { return k > 50 ? -1 : 1; }
		}
		int main() {
			int n = 0, s = 0;
			for (int i = 0; i < 100; i++) s += catches(i, &n);
			printf("%d %d\n", s, n);
		}
	END
	differing a "" ./a >differ
	# An exception leaves thrower, passes and catches once each; landing pads begin new paths.
	awk '$2 < $3 || $2 - $3 > 20 { bad = 1 } END { exit bad }' differ
	main=$(nm a | sed -n 's/^0*\([0-9a-f]*\) T main$/0x\1/p')
	[ -n "$main" ]
	! grep -q "^$main " differ
}
