#!/usr/bin/env bats
# culprit record --exact: counts are true, add up, and are not called exact when they may be wrong.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

exact() { # [OPTION...] -- COMMAND...
	"$CULPRIT" record --exact -o "$db" "$@"
}

counts() { # [OPTION...]
	"$CULPRIT" export -f counts -i "$db" "$@"
}

# The count of the first block of a function, and how sure it is.
entries() { # FILE FUNCTION
	local start
	start=$(nm "$1" | awk -v f="$2" '$3 == f { print $1 }')
	counts --image "$(realpath "$1")" |
		awk -v s="$(printf '0x%x' "0x$start")" '$1 == "block" && $2 == s { print $4, $5 }'
}

program() { # NAME [FLAG...]: from standard input
	gcc -w -O2 -x c - -o "$@"
}

@test "as often as the source says, in loops, branches and switches" {
	program a <<-'END'
		#include <stdio.h>
		__attribute__((noinline)) int odd(int i) { return i * 3; }
		__attribute__((noinline)) int even(int i) { return i / 2; }
		__attribute__((noinline)) int deep(int n) { return n ? deep(n - 1) + odd(n) : 0; }
		__attribute__((noinline)) int kind(int i) {
			switch (i % 7) { case 0: return odd(i); case 1: return 5; case 2: return even(i);
				case 3: return i; case 4: return -i; case 5: return odd(i) + 1; }
			return 0;
		}
		int main(void) {
			int s = 0;
			for (int i = 0; i < 700; i++)
				s += kind(i) + (i & 1 ? odd(i) : even(i));
			printf("%d\n", s + deep(20));
		}
	END
	./a >want
	exact -- ./a >got
	cmp want got
	[ "$(entries a kind)" = "700 exact" ]
	[ "$(entries a odd)" = "$((100 + 100 + 350 + 20)) exact" ]
	[ "$(entries a even)" = "$((100 + 350)) exact" ]
	[ "$(entries a main)" = "1 exact" ]
	exact -q -- ./a >/dev/null
	[ "$(entries a kind)" = "1400 exact" ] # two runs together
	"$CULPRIT" db check -i "$db"
}

@test "loops that count by rax, also where flags are live behind them" {
	program a <<-'END'
		#include <stdio.h>
		long plain(long n), flags(long n), frame(long n);
		asm(".globl plain, flags, frame\n.type plain, @function\n.type flags, @function\n.type frame, @function\n"
			"plain: .cfi_startproc\nxor %eax, %eax\n1: add $3, %rax\ncmp %rdi, %rax\njb 1b\nret\n.cfi_endproc\n.size plain, . - plain\n"
			"flags: .cfi_startproc\nxor %eax, %eax\n2: add $1, %rax\ncmp %rdi, %rax\njb 2b\nsete %al\nmovzbl %al, %eax\nret\n"
			".cfi_endproc\n.size flags, . - flags\n"
			"frame: .cfi_startproc\npush %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp, 0\nxor %ebp, %ebp\n"
			"3: lea 2(%rbp), %rbp\ncmp %rdi, %rbp\njne 3b\nmov %rbp, %rax\npop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbp\n"
			"ret\n.cfi_endproc\n.size frame, . - frame\n");
		int main(void) { printf("%ld %ld %ld\n", plain(300) + plain(30), flags(50) + flags(7), frame(40)); }
	END
	exact -- ./a >got
	[ "$(cat got)" = "330 2 40" ]
	counts --image "$(realpath a)" | awk '$1 == "block" { print $4, $5 }' >all
	for n in 110 57 20; do grep -q "^$n exact$" all; done
}

@test "every block of gzip, as callgrind counts" {
	[ -x /usr/bin/gzip ] && command -v valgrind || skip "needs gzip and valgrind"
	seq 20000 >text
	exact -- /usr/bin/gzip -c text >got
	valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes --skip-plt=no \
		--compress-strings=no --compress-pos=no --callgrind-out-file=raw /usr/bin/gzip -c text >want
	cmp want got
	"$root/build/bench/exact_counts" raw 2>/dev/null | awk '$1 == "block" { print $2, $4 }' | sort >truth
	counts --image gzip | awk '$1 == "block" && $5 == "exact" { print $2, $4 }' | sort >ours
	[ "$(join truth ours | wc -l)" -gt 500 ]
	join truth ours | awk '$2 != $3 { print; bad = 1 } END { exit bad }'
	# What is not among them is code that nothing describes (_start and the like).
	[ "$(join -v 1 truth ours | awk '{ n += $2 } END { print n + 0 }')" -lt 100 ]
}

@test "an earlier run moves counters and changes no count" {
	program a <<-'END'
		__attribute__((noinline)) long mixes(const unsigned char *p, long n) {
			long a = 0, b = 0, c = 0;
			for (long i = 0; i < n; i++)
				if (p[i] < 3) a++; else if (p[i] < 250) b += a; else c ^= b;
			return a + b + c;
		}
		int main(void) {
			unsigned char t[1000]; long s = 0;
			for (int i = 0; i < 1000; i++) t[i] = i * i >> 3;
			for (int i = 0; i < 50; i++) s += mixes(t, 1000 - i);
			return s & 1;
		}
	END
	exact -- ./a || true
	counts --image "$(realpath a)" >first
	cp "$db" earlier.db && rm "$db"
	exact --refine earlier.db -- ./a || true
	counts --image "$(realpath a)" >second
	cmp first second
	grep -q "^block.* exact" second
	[ "$(find cache "$XDG_CACHE_HOME" -name '*refined*' 2>/dev/null | wc -l)" -gt 0 ]
	run --separate-stderr exact --refine nothing.db -- ./a
	[ "$status" != 0 ] && [[ $stderr == *nothing.db* ]]
}

@test "libraries are counted under their own names" {
	echo 'int twice(int i) { return i < 100 ? 2 * i : i * i - 5; }' | program libtwice.so -shared -fPIC
	program a -L. -ltwice -Wl,-rpath,"$dir" <<-'END'
		int twice(int);
		int main(void) { int s = 0; for (int i = 0; i < 50; i++) s += twice(i); return s != 2450; }
	END
	exact -- ./a
	[ "$(entries libtwice.so twice)" = "50 exact" ]
	rm "$db"
	exact --libs 'none*' -- ./a
	[ -z "$(entries libtwice.so twice)" ]
	[ "$(entries a main)" = "1 exact" ]
}

@test "the end of the process is accounted for: exit, abort, SIGKILL" {
	program a <<-'END'
		#include <signal.h>
		#include <stdlib.h>
		#include <unistd.h>
		__attribute__((noinline)) void step(volatile int *p) { ++*p; }
		__attribute__((noinline)) void last(int how) {
			if (how == 'e') exit(3);
			if (how == 'a') abort();
			kill(getpid(), SIGKILL);
		}
		__attribute__((noinline)) int middle(int how, volatile int *p) {
			for (int i = 0; i < 10; i++) step(p);
			last(how);
			for (int i = 0; i < 10; i++) step(p);
			return *p;
		}
		int main(int argc, char **argv) { volatile int n = 0; return middle(argv[1][0], &n) + 1; }
	END
	for how in exit abort kill; do
		rm -f "$db"
		exact -- ./a "$how"
		echo "$how: $(entries a step)"
		[[ $(entries a step) == "10 "* ]]
		# A signal may have ended any procedure that calls nobody.
		[ "$(entries a step)" = "10 exact" ] || [ $how = kill ]
		[ "$(entries a last)" = "1 exact" ] || [ $how = kill ]
	done
	run --separate-stderr exact -- ./a exit
	[[ $stderr == *"exited with 3"* ]]
}

@test "a longjmp and a fork do not make wrong counts exact" {
	program a <<-'END'
		#include <setjmp.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static jmp_buf where;
		__attribute__((noinline)) void jump(int i) { if (i % 3 == 0) longjmp(where, 1); }
		__attribute__((noinline)) int try(int i) { if (setjmp(where)) return 1; jump(i); return 0; }
		int main(int argc, char **argv) {
			int n = 0;
			for (int i = 0; i < 30; i++) n += try(i);
			if (argc > 1 && !fork()) _exit(n);
			wait(0);
			return n != 10;
		}
	END
	exact -- ./a
	[ "$(entries a try)" = "30 exact" ]
	[ "$(entries a jump)" = "30 exact" ]
	rm "$db"
	run --separate-stderr exact -- ./a fork
	[[ $stderr == *"0 threads and 1 processes"*"--atomic"* ]]
	! counts | grep -q exact
	rm "$db"
	exact --atomic -- ./a fork
	[ "$(entries a try)" = "30 exact" ]
}

@test "threads: nothing is exact without --atomic, all with it" {
	program a -pthread <<-'END'
		#include <pthread.h>
		__attribute__((noinline)) unsigned step(unsigned x) { return x & 1 ? 3 * x + 1 : x / 2; }
		static void *work(void *p) {
			for (unsigned i = 0; i < 100000; i++) *(unsigned *)p += step(i);
			return p;
		}
		int main(void) {
			pthread_t t[4];
			unsigned s[4] = {0};
			for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, &s[i]);
			for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
		}
	END
	run --separate-stderr exact -- ./a
	[[ $stderr == *"4 threads"*"--atomic"* ]]
	! counts | grep -q exact
	rm "$db"
	exact --atomic -- ./a
	[ "$(entries a step)" = "400000 exact" ]
}

@test "an ordinary user may" {
	need_root "becomes another user"
	share_programs
	as_nobody unshare -Um true || skip "needs user namespaces"
	cp /usr/bin/true "$public/true"
	as_nobody env XDG_CACHE_HOME="$public/cache" "$public/culprit" record --exact -o "$public/a.db" -- \
		"$public/true" 2>said
	cat said
	[[ $(cat said) == *"procedures of"* ]]
	rm -rf "$public"
}

@test "a copy made by hand counts beside itself" {
	echo 'int main(void) { return 0; }' | program a
	"$CULPRIT" edit --exact a -o copy
	(cd / && "$dir/copy" && "$dir/copy")
	[ -s copy.counts ]
	"$CULPRIT" record --counted copy -o "$db"
	[ "$(entries a main)" = "2 exact" ]
	rm copy.counts
	run "$CULPRIT" record --counted copy -o "$db"
	fails_with 2 "nothing was counted yet"
	mkdir copy.counts # cannot be counted into
	./copy 2>said
	[ "$(wc -l <said)" = 1 ]
	grep -q "culprit: cannot count into $dir/copy.counts" said
}

@test "a copy knows how its processes ended" {
	program a <<-'END'
		#include <setjmp.h>
		#include <signal.h>
		#include <unistd.h>
		static jmp_buf where;
		__attribute__((noinline)) int leaf(int i) { return i * 3; }
		__attribute__((noinline)) void jump(int i) { if (i % 3 == 0) longjmp(where, 1); }
		static void (*volatile pointer)(int) = jump;
		__attribute__((noinline)) int try(int i) {
			if (setjmp(where)) return leaf(i);
			pointer(i); pointer(i + 1);
			return leaf(i);
		}
		int main(int argc, char **argv) {
			int n = 0;
			for (int i = 0; i < 30; i++) n += try(i);
			if (argc == 1) return n == 0;
			if (argv[1][0] == '_') _exit(n == 0);
			for (;;) n += leaf(n);
		}
	END
	for how in "" _exit; do
		"$CULPRIT" edit --exact a -o copy
		./copy $how
		"$CULPRIT" record --counted copy -o "$db"
		[ "$(entries a leaf)" = "30 exact" ]
		rm -f copy.counts "$db"
	done
	./copy loop &
	until [ -s copy.counts ]; do sleep 0.02; done
	sleep 0.05
	kill -KILL $! && { wait $! || true; }
	"$CULPRIT" record --counted copy -o "$db"
	[[ $(entries a leaf) != *exact ]]
}

# bats test_tags=plain
@test "in a folder that is no mount point and became the root" {
	need_root "changes the root"
	mkdir -p root/tmp root/dev/shm
	program root/b <<<'int main(void) { return 0; }'
	for file in "$CULPRIT" root/b; do
		ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
			cp --parents -Lu "$library" root
		done
	done
	cp "$CULPRIT" root/culprit
	env XDG_CACHE_HOME=/cache chroot root /culprit record --exact -o /db -- /b
	db=root/db
	counts | grep -q '^procedure .* exact'
	! grep -q "$dir/root" /proc/self/mounts
}

@test "nonsense is refused" {
	run "$CULPRIT" record --exact -a
	[ "$status" = 2 ] && [[ $output == *"needs a command"* ]]
	run "$CULPRIT" record --exact -a -- true
	[ "$status" = 2 ] && [[ $output == *"leave out -a"* ]]
	run "$CULPRIT" record --atomic -- true
	[ "$status" = 2 ] && [[ $output == *"go with --exact"* ]]
	run "$CULPRIT" record --exact -- no-such-command
	fails_with 2 "no such command"
}
