#!/usr/bin/env bats
# culprit edit: exceptions, walks of the stack, jumps out of it and debuggers, on edited frames.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	sources=$root/tests/e2e/programs/edit
}

# Edits ./NAME and runs both: output, errors and exit status must be the same.
same() { # NAME [EDIT_OPTION...]
	local name=$1 before after
	shift
	"$CULPRIT" edit --strict "$@" -o edited "$name"
	before=0 after=0
	"./$name" >before.txt 2>before.err || before=$?
	./edited >after.txt 2>after.err || after=$?
	echo "$name $*: exit status $before before, $after after"
	diff before.txt after.txt
	[ "$before" = "$after" ]
}

unwinds() { # COMPILER OPTION...
	"$@" -w -fnon-call-exceptions -pthread -o unwinds "$sources/unwinds.cc"
	same unwinds
}

@test "exceptions, walks, jumps and cancelled threads, built for any address" {
	unwinds g++ -O0
	unwinds g++ -O2
	grep -q 'thread exited' after.txt # all of it ran
	unwinds g++ -O2 -ffunction-sections -Wl,--gc-sections -s
}

@test "exceptions in files at fixed addresses, and in static ones" {
	unwinds g++ -Os -no-pie -fno-pie
	unwinds g++ -O1 -mcmodel=large
	unwinds g++ -O2 -static
	unwinds g++ -O2 -static-pie
}

@test "exceptions as clang compiles them" {
	command -v clang++ || skip "no clang++"
	unwinds clang++ -O2
}

# bats test_tags=plain
@test "the stack can be walked from every instruction" {
	for options in "-O0" "-O2" "-O3 -no-pie -fno-omit-frame-pointer"; do
		# shellcheck disable=SC2086
		gcc $options -o steps "$sources/steps.c"
		same steps
		grep -q '^lost 0 of many' after.txt
	done
}

# bats test_tags=plain
@test "the stack can be walked from every instruction of code that was added" {
	gcc -O2 -o steps "$sources/steps.c"
	same steps --exact
	grep -q '^lost 0 of many' after.txt
	gcc -O0 -no-pie -o steps "$sources/steps.c"
	same steps --exact
	grep -q '^lost 0 of many' after.txt
	g++ -O2 -w -fnon-call-exceptions -pthread -o unwinds "$sources/unwinds.cc"
	same unwinds --exact
}

@test "panics of Rust" {
	command -v rustc || skip "no rustc"
	rustc -O -o panics "$sources/panics.rs" || skip "rustc does not work here"
	same panics
	[ "$(grep -c panics after.txt)" = 3 ]
}

# An edited library under a program that is not edited, which catches what it throws.
@test "exceptions through edited libstdc++" {
	g++ -O2 -w -fnon-call-exceptions -pthread -o unwinds "$sources/unwinds.cc"
	library=$(ldd unwinds | awk '$1 == "libstdc++.so.6" { print $3 }')
	./unwinds >before.txt
	mkdir edited
	"$CULPRIT" edit --strict -o edited/libstdc++.so.6 "$library"
	LD_LIBRARY_PATH=edited ./unwinds >after.txt
	diff before.txt after.txt
}

# The names of the frames, without their numbers and addresses.
frames() { # PROGRAM
	gdb -batch -nx -ex run -ex bt "$1" 2>/dev/null </dev/null |
		sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\?\([^ ]*\).*/\2/p'
}

# bats test_tags=plain
@test "gdb shows the same frames" {
	command -v gdb || skip "no gdb"
	cat >crash.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) int deep(volatile int *n)
		{
			if (--*n == 0)
				abort();
			return deep(n) + *n;
		}
		__attribute__((noinline)) int middle(int n)
		{
			volatile int room[20] = {n};
			return deep(room) + 1;
		}
		int main(int argc, char **argv)
		{
			(void)argv;
			return middle(argc + 8) + 1;
		}
	END
	for options in "-O0" "-O2" "-O2 -no-pie"; do
		# shellcheck disable=SC2086
		gcc $options -o crash crash.c
		"$CULPRIT" edit --strict -o edited crash
		frames ./crash >before.txt
		frames ./edited >after.txt
		diff before.txt after.txt
		grep -q '^deep$' after.txt
		[ "$(tail -n 1 after.txt)" = main ]
	done
}

@test "eu-stack walks a program that counts" {
	command -v eu-stack || skip "needs elfutils"
	gcc -w -O2 -x c - -o waits <<-'END'
		#include <unistd.h>
		__attribute__((noipa)) int deep(int n) { if (n) return deep(n - 1) + 1; return pause(); }
		int main(void) { return deep(3) * 2; }
	END
	for file in waits copy; do
		[ "$file" = waits ] || "$CULPRIT" edit --exact waits -o copy
		"./$file" &
		pid=$!
		until [[ $(cat "/proc/$pid/stat") == *"($file) S"* ]]; do sleep 0.05; done
		eu-stack -p "$pid" 2>&1 | awk '/^#/ { print $3 }' >"$file.stack" || true
		kill "$pid"
		wait "$pid" || true
	done
	diff waits.stack copy.stack
	[ "$(grep -c deep copy.stack)" -ge 1 ]
	grep -q main copy.stack
}
