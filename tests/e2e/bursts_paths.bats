#!/usr/bin/env bats
# Bursts of paths: record --bursts --payload paths.
# bats file_tags=plain

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	need_namespaces
}

compile() { # NAME [OPTION...]: C on standard input
	local name=$1
	shift
	gcc -O2 -g -x c -o "$name" "$@" -
}

# Runs a program as it is and with its paths traced; the output must be the same.
trace() { # RATE [OPTION...] -- COMMAND...
	local rate=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -f "$db"
	"$@" >want
	"$CULPRIT" record --bursts="$rate" --no-objects --payload paths "${options[@]}" -q -o "$db" -- "$@" >got
	cmp want got
	"$CULPRIT" db check "$db"
	"$CULPRIT" bursts -i "$db" -n 100000000 --json >bursts
}

# Which paths there are in bursts, by their blocks, and how often.
shapes() {
	jq -r '.bursts[].events[] | "\(.begins) \(.ends) \(.blocks | join(","))"' bursts |
		sort | uniq -c | awk '{ print $2, $3, $4, $1 }' | sort
}

start_of() { # PROGRAM SYMBOL
	nm "$1" | awk -v name="$2" '$3 == name { sub(/^0+/, "", $1); print "0x" $1 }'
}

# Calls in the middle of paths, calls through pointers, recursion, a loop in a loop, a jump table; calls
# that come back twice.
mixed() { # [OPTION...]
	compile mixed "$@" <<-'END'
		#include <setjmp.h>
		#include <stdio.h>
		#include <stdlib.h>
		static volatile long cells[16];
		static jmp_buf back;
		__attribute__((noinline)) long leaf(long x) {
			if (x & 1)
				cells[x & 7]++;
			else
				cells[3] += x;
			return x;
		}
		__attribute__((noinline)) long tree(int depth, long at) {
			cells[at & 15] += depth;
			if (!depth)
				return leaf(at);
			if (at % 3 == 0)
				cells[5]++;
			return tree(depth - 1, at * 2) + (at & 4 ? tree(depth - 1, at * 2 + 1) : cells[at & 7]);
		}
		static int compare(const void *a, const void *b) {
			long x = *(const long *)a, y = *(const long *)b;
			return x < y ? -1 : x > y;
		}
		__attribute__((noinline)) long choose(long x) {
			switch (x % 6) {
			case 0: return leaf(x);
			case 1: cells[1] += x; return 2;
			case 2: cells[2] -= x; break;
			case 3: cells[3] ^= x; break;
			case 4: return x / 3;
			case 5: cells[4]++; cells[5]--; return x;
			}
			return leaf(x + 1) + 7;
		}
		int main(int argc, char **argv) {
			long sum = 0, sorted[40];
			for (int i = 0; i < atoi(argv[1]); i++) {
				for (int k = 0; k < i % 7; k++)
					sum += choose(i + k) ^ (k % 3 ? leaf(k) : sum);
				sum += tree(i % 6, i);
				for (int k = 0; k < 40; k++)
					sorted[k] = (k * 7919 + sum) & 1023;
				qsort(sorted, 40, sizeof *sorted, compare);
				sum += sorted[i % 40];
				if (JUMPS && !setjmp(back))
					longjmp(back, sum & 1 ? 1 : 2);
			}
			printf("%ld\n", sum);
			return 0;
		}
	END
}

@test "paths of a known program, one after the other" {
	compile known -fno-inline -fno-if-conversion -fno-if-conversion2 <<-'END'
		static volatile long left, right;
		void f(long i) { if (i & 1) left++; else right++; }
		int main(void) {
			for (long i = 0; i < 10; i++) {
				f(i);
				f(i / 2);
			}
			return 0;
		}
	END
	trace all --all-checks -- ./known
	f=$(start_of known f)
	# Even numbers take one way, odd ones the other; both begin at the entry, return, and go through
	# two blocks. What comes behind the last check is lost with the process: the last call.
	jq -e --arg f "$f" '[.bursts[].events[] | select(.blocks[0] == $f)] as $all |
		($all | length == 19) and
		all($all[]; .kind == "path" and .begins == "entry" and .ends == "return" and
			.address == null and (.blocks | length == 2)) and
		([$all[].value] | unique | length == 2) and
		([range(10) | ., (. / 2 | floor)][:19] | map(. % 2)) == [$all[] | if .value == $all[0].value then 0 else 1 end]' bursts
	# The loop around goes on where the path before ended.
	jq -e '[.bursts[].events[] | select(.begins == "loop" or .ends == "next")] |
		length >= 9 and . as $all | all(range(1; length); $all[. - 1].next == $all[.].blocks[0])' bursts
	"$CULPRIT" bursts -i "$db" 1 >text
	grep -q '^f$' text
	[ "$(grep -c "path .* entry ${f#0x} .* return$" text)" = 19 ]
}

@test "a whole trace has the paths that are counted, each as often" {
	# Where a call comes back a second time, counted paths go around that traced ones end at.
	mixed -DJUMPS=0
	trace all --all-checks -- ./mixed 200
	"$CULPRIT" record --paths --full -q -o counted -- ./mixed 200 >got
	cmp want got
	"$CULPRIT" paths -i counted --min-share 0 -n 1000000 --json |
		jq -r '.rows[] | "\(.begins) \(.ends) \(.blocks | join(",")) \(.count)"' | sort >counts
	shapes >traced
	[ "$(wc -l <traced)" -gt 30 ]
	# What comes behind the last check is lost with the process.
	diff counts traced | grep '^[<>]' >different || true
	[ "$(wc -l <different)" -le 4 ]
	! grep '^>.* [0-9]\{2,\}$' different
}

@test "paths in bursts are whole, wherever bursts begin" {
	mixed -DJUMPS=1
	trace all -- ./mixed 2000
	jq -r '.bursts[].events[] | "\(.begins) \(.ends) \(.blocks | join(","))"' bursts | sort -u >all
	for rate in 7:3 100:10 1000:50; do
		trace $rate -- ./mixed 2000
		jq -e '.bursts | length > 5' bursts
		jq -r '.bursts[].events[] | "\(.begins) \(.ends) \(.blocks | join(","))"' bursts | sort -u >some
		[ "$(wc -l <some)" -gt 15 ]
		[ "$(comm -13 all some | wc -l)" = 0 ]
	done
}

# No register is free across calls: the path's number is in a larger frame, also of a procedure whose
# very first instruction makes it.
@test "frames that are made larger for the number of a path" {
	compile large <<-'END'
		#include <stdio.h>
		static volatile long cells[16];
		__attribute__((noinline)) long step(long x) { cells[x & 15]++; return x; }
		__attribute__((noinline)) long deep(int depth, long a, long b, long c, long d, long e) {
			long f = a + b, g = b ^ c, h = c - d, i = d + e;
			if (!depth)
				return a;
			for (int k = 0; k < 3; k++) {
				a += step(f); b ^= step(g); c -= step(h); d += step(i);
				f += step(a) & 1 ? step(b) : c; g ^= step(d); h -= e; i += k;
			}
			return deep(depth - 1, f, g, h, i, a) + (b & 1 ? c : d) + deep(depth - 1, i, h, g, f, b);
		}
		static long (*volatile stepper)(long) = step;
		__attribute__((noinline)) long first(long a, int b, int c) {
			long x = stepper(a);
			if (c > 0)
				x ^= stepper(b);
			if (x & 4)
				cells[2] += stepper(c);
			return a - b;
		}
		long (*volatile pointer)(long, int, int) = first;
		int main(void) {
			long sum = 0;
			for (long i = 0; i < 200; i++)
				sum += pointer(i, i % 5, i % 3 - 1);
			printf("%ld %ld\n", sum, deep(7, 1, 2, 3, 4, 5));
			return 0;
		}
	END
	trace all -- ./large
	jq -r '.bursts[].events[] | "\(.begins) \(.ends) \(.blocks | join(","))"' bursts | sort -u >all
	for rate in 3:2 20:7; do
		trace $rate -- ./large
		jq -e '.bursts | length > 10' bursts
		jq -r '.bursts[].events[] | "\(.begins) \(.ends) \(.blocks | join(","))"' bursts | sort -u | comm -13 all - >unknown
		[ ! -s unknown ]
	done
}

# Tables of both copies, and a number that goes over with who leaves one for the other.
@test "paths through the jump table of an interpreter" {
	compile interpreter -fno-inline <<-'END'
		#include <stdio.h>
		static unsigned char code[24];
		static long a[8], b[8], c[8], d[8];
		long run(long turns) {
			long n = 0;
			for (long i = 0; n < turns; i = i == 23 ? 0 : i + 1) {
				switch (code[i]) {
				case 0: a[i & 7] += n; break;
				case 1: b[i & 7] -= n; break;
				case 2: c[i & 7] ^= n; break;
				case 3: d[i & 7] += i; break;
				case 4: a[i & 7] = b[i & 7]; break;
				case 5: c[i & 7] = d[i & 7]; break;
				case 6: n++; break;
				}
			}
			return a[0] + b[1] + c[2] + d[3];
		}
		int main(void) {
			for (int i = 0; i < 24; i++)
				code[i] = i * 5 % 7;
			printf("%ld\n", run(4000));
		}
	END
	trace 1000:50 -- ./interpreter
	# Once around is a path: 50 in a burst, of which 24 are different.
	jq -e '.bursts | length > 25 and all(.[1:-1][]; .length == 50 and (.events | map(.blocks) | unique | length > 6))' bursts
	jq -e '[.bursts[].events[]] | all(.blocks != null)' bursts
}

@test "loops that are left alone have no paths; others end there and begin behind" {
	compile bored -fno-tree-vectorize -fno-unroll-loops <<-'END'
		#include <stdio.h>
		static volatile long cells[8];
		__attribute__((noinline)) long sum(int n) {
			long s = n & 1 ? cells[1] : 3;
			for (int i = 0; i < n; i++)
				s += cells[i & 7];
			if (s & 1)
				cells[2]++;
			return s;
		}
		int main(void) {
			long s = 0;
			for (int i = 0; i < 50; i++)
				s += sum(20 + i);
			printf("%ld\n", s);
			return 0;
		}
	END
	f=$(start_of bored sum)
	trace all --all-checks -- ./bored
	jq -e '[.bursts[].events[] | select(.ends == "next")] | length > 1000' bursts
	trace all --checks all -- ./bored
	jq -e --arg f "$f" '[.bursts[].events[] | select(.blocks[0] == $f)] |
		length == 49 and all(.begins == "entry" and .ends == "next")' bursts
	jq -e '[.bursts[].events[] | select(.begins == "loop" and .ends == "return")] | length >= 49' bursts
	jq -e '[.bursts[].events[]] | length < 200' bursts
}

@test "threads, signals, children and exceptions" {
	g++ -O2 -x c++ -pthread -o many - <<-'END'
		#include <csignal>
		#include <cstdio>
		#include <stdexcept>
		#include <sys/time.h>
		#include <sys/wait.h>
		#include <thread>
		#include <unistd.h>
		#include <vector>
		static volatile long ticks[16];
		static void tick(int s) { for (int i = 0; i < 16; i++) if (i & s) ticks[i] += s; }
		__attribute__((noinline)) static long risky(long x) {
			if (x % 7 == 3)
				throw std::runtime_error("seven");
			return x % 2 ? x : x / 2;
		}
		static long work(long seed) {
			long sum = 0;
			for (long i = 0; i < 4000; i++)
				try {
					sum += risky(i + seed);
				} catch (const std::exception &) {
					sum ^= i;
				}
			return sum;
		}
		int main() {
			struct itimerval often = {{0, 700}, {0, 700}};
			signal(SIGALRM, tick);
			setitimer(ITIMER_REAL, &often, NULL);
			std::vector<std::thread> threads;
			long sums[16], sum = 0;
			for (int i = 0; i < 16; i++)
				threads.emplace_back([&sums, i] { sums[i] = work(i); });
			for (auto &t : threads)
				t.join();
			for (long s : sums)
				sum += s;
			int status, pid = fork();
			if (!pid)
				_exit(work(3) & 63);
			while (waitpid(pid, &status, 0) != pid) {}
			printf("%ld %d\n", sum, WEXITSTATUS(status));
		}
	END
	trace 100:20 -- ./many
	jq -e '[.bursts[].events[]] | length > 1000 and all(.blocks != null)' bursts
	# The unwinder has more checks than a burst: without it, bursts go on where exceptions land.
	trace 100:20 --libs none -- ./many
	jq -r '.bursts[] | "\(.process) \(.thread)"' bursts | sort -u >who
	[ "$(wc -l <who)" -ge 16 ]
	[ "$(cut -d' ' -f1 who | sort -u | wc -l)" = 2 ]
	jq -e '[.bursts[].events[]] | length > 1000 and all(.blocks != null)' bursts
	jq -e '[.bursts[].events[] | select(.begins == "entered")] | length > 10' bursts
}

@test "streams need references" {
	mixed -DJUMPS=1
	"$CULPRIT" record --bursts=all --payload paths --no-objects -q -o "$db" -- ./mixed 3 >/dev/null
	"$CULPRIT" streams -i "$db" --json | jq -e '.references == 0 and .streams == []'
	run "$CULPRIT" record --bursts --payload paths=x -- true
	[ "$status" = 2 ]
	[[ $output == *"paths takes nothing"* ]]
	run "$CULPRIT" record --bursts --payload trails -- true
	[ "$status" = 2 ]
	[[ $output == *"refs, calls, refs+calls, paths or values"* ]]
}
