#!/usr/bin/env bats
# Bursts of what programs touch in memory: record --bursts, bursts, streams.
# bats file_tags=plain

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
}

compile() { # NAME [OPTION...]: C on standard input
	local name=$1
	shift
	gcc -O2 -g -x c -o "$name" "$@" -
}

# A list of 20 nodes that is walked as often as the argument says.
walker() {
	compile walker <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		struct node { struct node *next; long value; };
		static struct node nodes[20];
		__attribute__((noinline)) long walk(struct node *n) {
			long sum = 0;
			for (; n; n = n->next) {
				sum += n->value;
				n->value ^= sum & 1;
			}
			return sum;
		}
		int main(int argc, char **argv) {
			long sum = 0;
			for (int i = 0; i < 20; i++)
				nodes[i] = (struct node){i < 19 ? &nodes[(i + 1) * 7 % 20] : 0, i};
			for (int i = 0; i < 19; i++)
				nodes[i * 7 % 20].next = &nodes[(i + 1) * 7 % 20];
			nodes[19 * 7 % 20].next = 0;
			for (int i = argc > 1 ? atoi(argv[1]) : 1; i; i--)
				sum += walk(nodes);
			printf("%ld\n", sum);
			return 0;
		}
	END
}

@test "a list that is walked is one stream, as often as it was walked" {
	need_namespaces
	walker
	"$CULPRIT" record --bursts=all --boring 0 -o "$db" -- ./walker 500 >got
	./walker 500 | cmp - got
	"$CULPRIT" db check "$db"
	"$CULPRIT" streams -i "$db" --length 20,100 --json >out
	jq -e '.streams | length == 1' out
	jq -e '.streams[0] | .length % 20 == 0 and .occurrences >= 498 and .occurrences <= 500' out
	jq -e '.streams[0].references | all(.what | startswith("walk+"))' out
	jq -e '.coverage > 0.98' out
	# Whoever sees the whole trace first finds the same.
	"$CULPRIT" streams -i "$db" --length 20,100 --offline --json | cmp - out
	"$CULPRIT" streams -i "$db" --raw | grep -q 'walk+0x'
}

@test "bursts are short, many, and do not change what programs do" {
	need_namespaces
	walker
	"$CULPRIT" record --bursts=1000:50 --boring 0 -o "$db" -- ./walker 20000 >got
	./walker 20000 | cmp - got
	"$CULPRIT" bursts -i "$db" --json -n 1000000 >out
	# A check each time around: 20,000 x 20, and one in 1,050 begins a burst.
	jq -e '.bursts | length > 300 and length < 500' out
	jq -e '[.bursts[1:][] | .length] | max <= 160 and min >= 40' out
	"$CULPRIT" bursts -i "$db" 2 | grep -q '^walk$'
	run "$CULPRIT" bursts -i "$db" 100000
	[ "$status" = 2 ]
	[[ $output == *"no burst 100000"* ]]
	"$CULPRIT" record --bursts=never -o "$db" -- ./walker 2000 2>err >/dev/null
	grep -q 'bursts: 0, with 0 references' err
}

# Stacks may lie elsewhere: by how far from the first that was touched there.
normalise() {
	perl -ane '$a = hex $F[1]; $base //= $a if $a >= 1 << 32;
		print "$F[0] ", $a >= 1 << 32 ? "stack" . ($a - $base) : $a, "\n"'
}

@test "a whole trace is what valgrind sees, reference for reference" {
	need_namespaces
	command -v valgrind || skip "no valgrind"
	compile touches -no-pie -fno-stack-protector <<-'END'
		static int table[64], sums[8];
		struct pair { long a; char b; short c; } pairs[16];
		__attribute__((noinline)) int mix(int *p, int n) {
			int local[8], sum = 0;
			for (int i = 0; i < 8; i++)
				local[i] = p[(i * n) & 63];
			for (int i = 0; i < 8; i++)
				sum += local[(i * 3) & 7];
			return sum;
		}
		__attribute__((noinline)) long tree(int depth, int at) {
			pairs[at & 15].a += depth;
			pairs[at & 15].b ^= at;
			if (!depth)
				return pairs[(at * 5) & 15].c++;
			return tree(depth - 1, at * 2) + tree(depth - 1, at * 2 + 1);
		}
		int main(void) {
			long sum = 0;
			for (int i = 0; i < 64; i++)
				table[i] = i * i;
			for (int i = 1; i < 40; i++)
				sums[i & 7] += mix(table, i);
			for (int i = 0; i < 8; i++)
				sum += sums[i] + tree(4, i);
			return sum & 1;
		}
	END
	./touches && status=0 || status=$?
	"$CULPRIT" record --bursts=all --boring 0 --all-checks -q -o "$db" -- ./touches || true
	objdump -d --no-show-raw-insn touches |
		awk '/^[0-9a-f]+ <(main|mix|tree)>:/ { on = 1 } /^$/ { on = 0 }
			on && $1 ~ /:$/ { sub(":", "", $1); print $1, $2 }' >code
	"$CULPRIT" bursts -i "$db" 1 --json |
		jq -r '.bursts[0].events[] | "\(.pc[2:]) \(.address[2:])"' |
		awk 'NR == FNR { mine[$1] = 1; next } $1 in mine' code - | normalise >got
	valgrind --tool=lackey --trace-mem=yes --log-file=lackey ./touches || true
	awk 'NR == FNR { if ($2 !~ /^(push|pop|call|ret|leave)/) mine[$1] = 1; next }
		/^I/ { split($2, part, ","); pc = part[1]; sub(/^0+/, "", pc); next }
		/^ [LSM]/ && pc in mine { split($2, part, ","); print pc, part[1] }' code lackey | normalise >want
	[ "$(wc -l <want)" -gt 1000 ]
	# What comes after the last check is lost with the process.
	head -n "$(wc -l <got)" want | diff got -
	[ $(($(wc -l <want) - $(wc -l <got))) -lt 60 ]
}

@test "runs are compared by what made their references" {
	need_namespaces
	walker
	for run in all 1000:400; do
		"$CULPRIT" record --bursts=$run --boring 0 -q -o "$run.db" -- ./walker 2000 >/dev/null
	done
	overlap() { "$CULPRIT" streams -i "$1" --compare "$2" --json | jq .overlap; }
	between "$(overlap all.db all.db)" 0.98 1
	between "$(overlap all.db 1000:400.db)" 0.8 1
	"$CULPRIT" record --bursts=20000:50 -q -o gzip.db -- gzip -c "$(command -v bash)" >/dev/null
	between "$(overlap all.db gzip.db)" 0 0.001
}

# The address of the jump table is in a register all the time; each copy of the code has its own.
@test "a burst that begins inside an interpreter sees all of it" {
	need_namespaces
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
	objdump -d interpreter | grep -q 'notrack jmp \*%\|jmp    \*%'
	"$CULPRIT" record --bursts=all --no-objects -o whole -- ./interpreter >/dev/null
	"$CULPRIT" record --bursts=1000:50 --no-objects -o "$db" -- ./interpreter >got
	./interpreter | cmp - got
	"$CULPRIT" streams -i "$db" --compare whole --json >out
	jq -e '.overlap > 0.5' out
	"$CULPRIT" bursts -i "$db" --json -n 1000 | jq -e '.bursts | length > 25'
}

@test "the same events in another order are told apart" {
	need_namespaces
	for order in 'i \& 1' 'i < 500'; do
		sed "s/ORDER/$order/" <<-'END' | compile ordered
			static volatile long left[8], right[8];
			__attribute__((noinline)) void f(void) { for (int i = 0; i < 6; i++) left[i]++; }
			__attribute__((noinline)) void g(void) { for (int i = 0; i < 6; i++) right[i]++; }
			int main(void) {
				for (int i = 0; i < 1000; i++)
					if (ORDER) f(); else g();
				return 0;
			}
		END
		rm -f "$db"
		"$CULPRIT" record --bursts=all --boring 0 -q -o "$db" -- ./ordered
		"$CULPRIT" streams -i "$db" --length 6,40 --json |
			jq '[.streams[] | select(.share > 0.2) | [.references[].what | split("+")[0]] | unique] | sort' >"got-${order:0:3}"
	done
	cat got-*
	jq -e '. == [["f","g"]]' 'got-i \'
	jq -e '. == [["f"],["g"]]' 'got-i <'
}

@test "threads, children, signals and jumps out of bursts" {
	need_namespaces
	compile many -pthread <<-'END'
		#include <pthread.h>
		#include <setjmp.h>
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/time.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static volatile long ticks[16];
		static __thread jmp_buf back;
		static void tick(int s) { for (int i = 0; i < 16; i++) ticks[i] += s; }
		__attribute__((noinline)) long touch(long *p, int n) {
			long sum = 0;
			for (int i = 0; i < n; i++) {
				p[i & 15] += i; p[(i * 3) & 15] ^= sum; sum += p[(i * 5) & 15]; p[(i * 7) & 15]++;
				if (i == 700)
					longjmp(back, 1);
			}
			return sum;
		}
		static void *work(void *arg) {
			long *p = calloc(16, sizeof *p), sum = 0;
			for (int i = 0; i < 300; i++)
				if (!setjmp(back))
					sum += touch(p, 600 + i % 3 * 100);
				else
					sum += 7;
			free(p);
			return (void *)sum;
		}
		int main(void) {
			struct itimerval often = {{0, 500}, {0, 500}};
			pthread_t t[64];
			void *r;
			signal(SIGALRM, tick);
			setitimer(ITIMER_REAL, &often, NULL);
			long sum = 0;
			for (int round = 0; round < 2; round++) {
				for (int i = 0; i < 64; i++)
					pthread_create(&t[i], NULL, work, NULL);
				for (int i = 0; i < 64; i++) {
					pthread_join(t[i], &r);
					sum += (long)r;
				}
			}
			for (int i = 0; i < 4; i++)
				if (!fork()) {
					sum += (long)work(NULL);
					_exit(sum & 63);
				}
			int s, all = 0;
			while (wait(&s) > 0 || all < 4)
				all += WEXITSTATUS(s) >= 0;
			printf("%ld\n", sum);
			return 0;
		}
	END
	./many >want
	"$CULPRIT" record --bursts=200:20 -o "$db" -- ./many >got
	cmp want got
	"$CULPRIT" db check "$db"
	"$CULPRIT" bursts -i "$db" --json -n 10000000 | jq -r '.bursts[] | "\(.process) \(.thread)"' | sort -u >who
	[ "$(wc -l <who)" -ge 30 ]
	[ "$(cut -d' ' -f1 who | sort -u | wc -l)" = 5 ]
}

@test "what is killed keeps its bursts" {
	need_namespaces
	compile killed <<-'END'
		#include <signal.h>
		static volatile long cells[64];
		int main(void) {
			for (int i = 0; i < 1000000; i++) {
				cells[i & 63]++; cells[i * 5 & 63]++; cells[i * 7 & 63]++;
			}
			raise(SIGKILL);
		}
	END
	"$CULPRIT" record --bursts=1000:100 -q -o "$db" -- ./killed || true
	"$CULPRIT" bursts -i "$db" --json -n 1000000 | jq -e '.bursts | length > 800 and length < 1000'
}

@test "bad options, no bursts: a line each" {
	run "$CULPRIT" record --bursts=10 -- true
	[ "$status" = 2 ]
	[[ $output == *"NCHECK:NINSTR"* ]]
	run "$CULPRIT" record --bursts --paths -- true
	[ "$status" = 2 ]
	"$CULPRIT" record -q -o "$db" -- true
	run "$CULPRIT" streams -i "$db"
	[ "$status" = 2 ]
	[[ $output == *"record --bursts"* ]]
}

# Who runs an edited copy by hand has a file of bursts that nobody prepared, or none, or another's.
@test "without its file an edited copy runs on, and says so once" {
	need_namespaces
	compile hands -pthread <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		static volatile long cells[64];
		static void *work(void *arg) {
			for (int i = 0; i < 20000; i++) {
				cells[i & 63]++; cells[i * 5 & 63]++; cells[i * 7 & 63]++;
			}
			return arg;
		}
		int main(void) {
			pthread_t t[8];
			for (int i = 0; i < 8; i++)
				pthread_create(&t[i], NULL, work, NULL);
			for (int i = 0; i < 8; i++)
				pthread_join(t[i], NULL);
			puts("done");
		}
	END
	"$CULPRIT" record --bursts=1000:50 --no-objects -q -o "$db" -- ./hands
	copy=$(grep -l hands "$XDG_CACHE_HOME"/culprit/edited/*/*/map)
	copy=${copy%/map}
	stands() {
		run --separate-stderr "$copy/image"
		[ "$status" = 0 ]
		[ "$output" = "done" ]
		[ "$(grep -c "^culprit: cannot count into $copy/counts (error 74)" <<<"$stderr")" = 1 ]
		[ "$(wc -l <<<"$stderr")" = 1 ]
	}
	: >"$copy/counts"
	stands
	truncate -s 131071 "$copy/counts"
	stands
	truncate -s 10000000 "$copy/counts"
	stands
	rm "$copy/counts"
	stands
	# And goes on to work where it is asked for.
	"$CULPRIT" record --bursts=1000:50 --no-objects -q -o "$db" -- ./hands 2>err
	! grep -q 'cannot count' err
}

# Loops that turn so fast that they count for themselves: alone, one in another, and with a call now and then.
turner() {
	compile turner <<-'END'
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/time.h>
		#define FUNCTION __attribute__((noinline, noclone))
		static long words[1000];
		static volatile long ticks, seen[64];
		FUNCTION long tight(const long *p, const long *end) {
			long s = 1;
			for (; p < end; p++)
				s = s * 3 ^ *p;
			return s;
		}
		FUNCTION long nested(const long *p, long n) {
			long s = 0;
			for (long i = 0; i < n; i++)
				for (const long *q = p; q < p + 50; q++)
					s ^= *q + i;
			return s;
		}
		FUNCTION long seldom(const long *p, const long *end) {
			long s = 1;
			for (; p < end; p++) {
				s ^= *p;
				if (__builtin_expect(*p == 100, 0))
					s += tight(p, p + 20);
			}
			return s;
		}
		static void tick(int signal) {
			for (int i = 0; i < 64; i++)
				seen[i] += signal;
			ticks++;
		}
		int main(int argc, char **argv) {
			struct itimerval often = {{0, 300}, {0, 300}};
			long s = 0;
			if (argc > 2)
				signal(SIGALRM, tick), setitimer(ITIMER_REAL, &often, NULL);
			for (int i = 0; i < 1000; i++)
				words[i] = i;
			for (int i = atoi(argv[1]); i; i--) {
				words[i % 1000] ^= i & 1;
				s += tight(words, words + 1000) + nested(words, 20) + seldom(words, words + 1000);
			}
			memset(&often, 0, sizeof often);
			setitimer(ITIMER_REAL, &often, NULL);
			printf("%ld %d\n", s, argc > 2 && !ticks);
			return 0;
		}
	END
}

@test "loops that count for themselves begin as many bursts, and end them" {
	need_namespaces
	turner
	"$CULPRIT" record --bursts=1000:50 --boring 0 -o "$db" -- ./turner 200 >got
	./turner 200 | cmp - got
	"$CULPRIT" bursts -i "$db" --json -n 1000000 >out
	# 3,020 turns in each of 200 rounds, and as many again in the outer loop of two.
	jq -e '.bursts | length > 560 and length < 600' out
	jq -e '[.bursts[1:][] | .length] | max <= 200 and min >= 40' out
}

@test "signals in loops that count for themselves lose no burst's end" {
	need_namespaces
	turner
	"$CULPRIT" record --bursts=1000:50 --boring 0 -o "$db" -- ./turner 20000 signals >got
	./turner 20000 signals | cmp - got
	"$CULPRIT" bursts -i "$db" --json -n 1000000 >out
	jq -e '.bursts | length > 50000 and length < 65000' out
	# Handlers' own loops have two references around.
	jq -e '[.bursts[] | .length] | max <= 500' out
}
