#!/usr/bin/env bats
# Debug information of edited programs: it speaks of the code where it is now.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	cat >twice.h <<-'END'
		static inline __attribute__((always_inline)) int twice(int x)
		{
			int y = x + 1;
			return 2 * y;
		}
	END
	cat >a.c <<-'END'
		#include "twice.h"
		#include <stdio.h>
		struct pair { int a, b; };
		static volatile int sink;
		__attribute__((noinline)) int work(struct pair *p, int n)
		{
			int sum = 0;
			for (int i = 0; i < n; i++) {
				int local = p->a * i;
				if (local % 3)
					sum += local;
				else
					sum += twice(p->b);
				sink = sum;
			}
			return sum;
		}
		__attribute__((noinline)) static int deep(int d)
		{
			struct pair p = {d, d + 1};
			if (d)
				return deep(d - 1) + work(&p, d);
			return work(&p, 3);
		}
		int main(int argc, char **argv)
		{
			(void)argv;
			printf("%d\n", deep(argc + 1));
			return 0;
		}
	END
}

# What a debugger shows, without addresses; clang gives main's arguments a place that was used again.
session() { # PROGRAM
	gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set width 0' -ex 'break a.c:14' -ex run -ex bt \
		-ex 'info locals' -ex up -ex 'info locals' -ex 'print p' -ex delete -ex 'break twice' -ex continue \
		-ex 'bt 2' -ex next -ex next -ex 'list' "$1" 2>/dev/null </dev/null |
		sed -E '/^Breakpoint [0-9]+ at|libthread_db|^\[Inferior/d; s/0x[0-9a-f]+/ADDRESS/g; s/argc=[-0-9]+/argc=N/; s/^Breakpoint [0-9.]+/Breakpoint/'
}

# bats test_tags=plain
@test "gdb shows lines, frames, inlined functions and variables as in the original" {
	command -v gdb >/dev/null || skip "no gdb"
	for compiler in "gcc -O2 -g" "clang -O2 -g"; do
		$compiler a.c -o a
		"$CULPRIT" edit a -o b
		[ "$(./b)" = "$(./a)" ]
		session ./a >want
		grep -q "deep (d=.*) at a.c:" want
		session ./b >got
		diff want got || { echo "$compiler"; false; }
	done
}

places() { # PROGRAM ADDRESS SIZE: function, file and line of every instruction
	objdump -d --no-show-raw-insn --start-address="$2" --stop-address=$(($2 + $3)) "$1" |
		sed -n 's/^ *\([0-9a-f]*\):\t[^n].*/0x\1/p' | addr2line -fi -e "$1" | sed 's/ (disc.*//'
}

extent() { # PROGRAM FUNCTION first|last: its address and size
	nm -S "$1" | sort | awk -v f="$2" '$4 == f { print "0x" $1, "0x" $2 }' | { [ "$3" = first ] && head -n 1 || tail -n 1; }
}

@test "every instruction has the line it had" {
	for flags in "-O2 -g" "-O1 -gdwarf-4 -gz"; do
		gcc $flags a.c -o a
		"$CULPRIT" edit a -o b
		for f in work deep; do
			places a $(extent a $f first) >want
			places b $(extent b $f last) >got
			diff want got || { echo "$flags: $f"; false; }
		done
		grep -q "twice.h:3\|twice.h:4" <(places b $(extent b work last))
	done
	readelf --debug-dump=info,decodedline,aranges,Ranges,loc b 2>err >/dev/null
	[ "$(grep -vc "adjacent view lists" err)" = 0 ]
}

# bats test_tags=plain
@test "code that was added has the line of where it is" {
	gcc -O2 -g a.c -o a
	"$CULPRIT" edit --exact a -o b
	places b $(extent b work last) >got
	[ "$(grep -c '??' got)" = 0 ]
	[ "$(grep -c "/a.c:" got)" -gt "$(places a $(extent a work first) | grep -c "/a.c:")" ]
}

# bats test_tags=plain
@test "culprit's own reports show lines of edited programs" {
	gcc -O2 -g a.c -o a
	"$CULPRIT" edit a -o b
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" elf "$db" ./b "$(extent b main last | sed 's/ .*//')=5"
	top --by line | jq -e '.rows[0] | .samples == 5 and (.file | endswith("/a.c")) and .line == 26'
}

@test "what is not understood stays as it was" {
	gcc -O2 -g -gsplit-dwarf a.c -o a
	run "$CULPRIT" edit a -o b
	[ "$status" = 0 ] && [[ $output == *"debug information is split (-gsplit-dwarf) and is left"* ]]
	[ "$(./b)" = "$(./a)" ]
	"$CULPRIT" edit --report a | grep -q "debug information is split (-gsplit-dwarf) and is left"
	[ "$("$CULPRIT" edit --report --json a -o c | jq -r .debug_information)" = "is split (-gsplit-dwarf)" ]
	for section in .debug_info .debug_line .debug_addr; do
		objcopy -O binary --only-section=$section --set-section-flags $section=alloc a old
		objcopy -O binary --only-section=$section --set-section-flags $section=alloc b new
		cmp old new
	done
}
