#!/usr/bin/env bats
# culprit record --exact and --paths --per-thread: threads count at once and lose nothing.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

by_thread() { # [OPTION...] -- COMMAND...
	"$CULPRIT" record --exact --per-thread -o "$db" "$@"
}

# The count of the first block of a function, and how sure it is.
entries() { # FILE FUNCTION
	local start
	start=$(nm "$1" | awk -v f="$2" '$3 == f { print $1 }')
	"$CULPRIT" export -f counts -i "$db" --image "$(realpath "$1")" |
		awk -v s="$(printf '0x%x' "0x$start")" '$1 == "block" && $2 == s { print $4, $5 }'
}

program() { # NAME [FLAG...]: from standard input
	gcc -w -O2 -pthread -x c - -o "$@"
}

@test "threads that are joined, detached, cancelled, or end in the middle" {
	program a <<-'END'
		#include <pthread.h>
		#include <semaphore.h>
		#include <stdio.h>
		#include <unistd.h>
		static sem_t done;
		static pthread_barrier_t all;
		__attribute__((noinline)) unsigned step(unsigned x) { __asm__ volatile(""); return x & 1 ? 3 * x + 1 : x / 2; }
		__attribute__((noinline)) void run(unsigned *s) {
			for (unsigned i = 0; i < 20000; i++) *s += step(i);
		}
		static void *work(void *p) {
			unsigned s = 0;
			pthread_barrier_wait(&all);
			run(&s);
			if ((long)p == 1) sem_post(&done);
			if ((long)p == 2) pthread_exit(0);
			if ((long)p == 3) for (;;) pause();
			return 0;
		}
		int main(void) {
			pthread_t t[64];
			sem_init(&done, 0, 0);
			pthread_barrier_init(&all, 0, 64);
			for (long i = 0; i < 64; i++) pthread_create(&t[i], 0, work, (void *)(i % 4));
			for (long i = 0; i < 64; i++)
				if (i % 4 == 1) pthread_detach(t[i]);
			for (int i = 0; i < 16; i++) sem_wait(&done);
			for (long i = 0; i < 64; i++) {
				if (i % 4 == 3) { usleep(1000); pthread_cancel(t[i]); }
				if (i % 4 != 1) pthread_join(t[i], 0);
			}
			puts("done");
		}
	END
	[ "$(by_thread -- ./a)" = "done" ]
	[ "$(entries a step)" = "1280000 exact" ]
	[ "$(entries a run)" = "64 exact" ]
}

@test "paths by thread: in arrays, a table, turns of loops and measured" {
	program a -fno-unroll-loops -fno-tree-vectorize <<-'END'
		#include <pthread.h>
		static pthread_barrier_t all;
		#define ALONE __attribute__((noipa))
		#define BIT(n) if (i & 1 << n) __asm__ volatile("xor $" #n ", %0" : "+r"(s) : : "cc")
		ALONE int many(unsigned i) {
			int s = i;
			BIT(0); BIT(1); BIT(2); BIT(3); BIT(4); BIT(5); BIT(6); BIT(7); BIT(8); BIT(9); BIT(10); BIT(11); BIT(12);
			return s;
		}
		ALONE unsigned turns(unsigned n) { unsigned s = 1; do s = s * 3 ^ n; while (--n > 0); return s; }
		ALONE unsigned step(unsigned x) { return x & 1 ? many(x) : x % 3 ? turns(x % 5 + 1) : x / 2; }
		static void *work(void *p) {
			unsigned s = 0;
			pthread_barrier_wait(&all);
			for (unsigned i = 0; i < 6000; i++) s += step(i);
			return (void *)(long)s;
		}
		int main(void) {
			pthread_t t[16];
			pthread_barrier_init(&all, 0, 16);
			for (int i = 0; i < 16; i++) pthread_create(&t[i], 0, work, 0);
			for (int i = 0; i < 16; i++) pthread_join(t[i], 0);
		}
	END
	for options in "" --full "--metric tsc" --atomic; do
		rm -f "$db"
		"$CULPRIT" record -q --paths --per-thread $options --libs none -o "$db" -- ./a
		"$CULPRIT" paths -i "$db" --min-share 0 --json | jq -e '
			def times(f): [.rows[] | select(.procedure == f and .begins == "entry") | .count] | add;
			times("step") == 96000 and times("many") == 48000 and times("turns") == 32000
			and ([.rows[] | select(.procedure == "turns") | .count * (.blocks | length)] | add) > 64000'
	done
	"$CULPRIT" edit --paths --per-thread a -o copy
	./copy && ./copy
	"$CULPRIT" record -q --paths --counted copy -o counted.db
	"$CULPRIT" paths -i counted.db step --min-share 0 --json | jq -e '[.rows[].count] | add == 192000'
}

@test "thousands of threads, one after the other, share what they count into" {
	program a <<-'END'
		#include <pthread.h>
		static volatile int sum;
		__attribute__((noipa)) void *work(void *p) { sum = (long)p * 3 + 1; return p; }
		int main(void) {
			pthread_t t[8];
			for (int i = 0; i < 500; i++) {
				for (int k = 0; k < 8; k++) pthread_create(&t[k], 0, work, 0);
				for (int k = 0; k < 8; k++) pthread_join(t[k], 0);
			}
		}
	END
	"$CULPRIT" edit --exact --per-thread a -o copy
	./copy
	[ "$(stat -c %s copy.counts)" -le $((4096 + 8192 + 40 * 4096)) ]
	"$CULPRIT" record --counted copy -o "$db" 2>said
	! grep -q "threads" said
	[ "$(entries a work)" = "4000 exact" ]
}

@test "libraries that are loaded later, and threads that others start" {
	program lib.so -shared -fPIC <<-'END'
		__attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x * 3; }
		int outer(int n) { int s = 0; for (int i = 0; i < n; i++) s += inner(i); return s; }
	END
	program starter.so -shared -fPIC <<-'END'
		#include <pthread.h>
		void start_all(void *(*f)(void *), int n) {
			pthread_t t[64];
			for (int i = 0; i < n; i++) pthread_create(&t[i], 0, f, 0);
			for (int i = 0; i < n; i++) pthread_join(t[i], 0);
		}
	END
	program a -x none ./starter.so -ldl <<-'END'
		#include <dlfcn.h>
		extern void start_all(void *(*)(void *), int);
		static int (*outer)(int);
		static void *work(void *p) { outer(50000); return p; }
		int main(void) {
			for (int i = 0; i < 3; i++) {
				void *lib = dlopen("./lib.so", RTLD_NOW);
				outer = (int (*)(int))dlsym(lib, "outer");
				start_all(work, 8);
				dlclose(lib);
			}
		}
	END
	by_thread --libs "$dir/lib.so" --libs starter.so -- ./a
	[ "$(entries lib.so inner)" = "1200000 exact" ]
	[ "$(entries a work)" = "24 exact" ]
}

@test "children of fork count with their parents: --atomic makes it exact" {
	program a <<-'END'
		#include <pthread.h>
		#include <sys/wait.h>
		#include <unistd.h>
		__attribute__((noinline)) unsigned step(unsigned x) { __asm__ volatile(""); return x & 1 ? 3 * x + 1 : x / 2; }
		static void *work(void *p) {
			unsigned s = 0;
			for (unsigned i = 0; i < 50000; i++) s += step(i);
			return (void *)(long)s;
		}
		int main(void) {
			pthread_t t[4];
			fork();
			for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
			work(0);
			for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
			wait(0);
		}
	END
	run --separate-stderr by_thread -- ./a
	[[ $stderr == *"1 processes"*"--atomic"* ]]
	rm "$db"
	by_thread --atomic -- ./a
	[ "$(entries a step)" = "500000 exact" ]
}

@test "programs without glibc's threads are refused, with the reason" {
	echo 'int main(void) { return 0; }' | program a -static
	run "$CULPRIT" edit --exact --per-thread a -o copy
	fails_with 3 "it is static"
	[ ! -e copy ]
	run "$CULPRIT" edit --null --per-thread a -o copy
	[ "$status" = 2 ]
	[[ $output == *"--per-thread goes with --exact"* ]]
	run "$CULPRIT" record --per-thread -- true
	[ "$status" = 2 ]
}

# bats test_tags=plain
@test "stacks are walked from every instruction of the run time" {
	command -v gdb || skip "needs gdb"
	program a <<-'END'
		#include <pthread.h>
		static volatile int sum;
		__attribute__((noipa)) void *work(void *p) { sum = (long)p * 3 + 1; return p; }
		__attribute__((noipa)) void *thread(void *p) { work(p); sum++; return p; }
		int main(void) {
			pthread_t t;
			pthread_create(&t, 0, thread, 0);
			pthread_join(t, 0);
		}
	END
	"$CULPRIT" edit --exact --per-thread a -o copy
	target=$(objdump -d -j .text.edited copy | awk '/^[0-9a-f]+ <thread>:/ { inside = 1 }
		inside && /call.*culprit_runtime/ { print $(NF - 1); exit }')
	cat >walk.py <<-END
		import gdb
		def names():
		    f, out = gdb.newest_frame(), []
		    while f:
		        out.append(f.name())
		        f = f.older()
		    return out
		gdb.execute("break main")
		gdb.execute("run")
		main = int(gdb.parse_and_eval("(long)&culprit_runtime"))
		at = main + 0x$target - 0x$(nm copy | awk '$3 == "culprit_runtime" { print $1 }')
		gdb.execute("delete 1")
		gdb.execute("break *%d" % at)
		gdb.execute("continue")
		want, back = names(), gdb.newest_frame().older().pc()
		steps = 0
		while gdb.newest_frame().pc() != back:
		    if names()[-len(want) + 1:] != want[1:]:
		        print("lost at", hex(gdb.newest_frame().pc() - main), names())
		        break
		    gdb.execute("stepi", to_string=True)
		    steps += 1
		print("walked", steps, "as", want[:2])
	END
	gdb -batch -nx -x walk.py ./copy >said 2>&1
	tail -3 said
	! grep "lost at" said
	grep -Eq "walked [0-9]{3,} as \['culprit_runtime', 'thread'\]" said
}
