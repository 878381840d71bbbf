#!/usr/bin/env bats
# Samples values inside programs, by upcalls, and checks that these notice nothing.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	build=$(dirname "$CULPRIT")
	runner=$build/tests/upcall/runner
	[ -x "$runner" ] || skip "the runner is not built"
	upcall -- true
	[ "$(count refused)" = 0 ] || skip "this kernel sends no signals from events"
}

# Runs a command under the library; what was found is in out.
upcall() { # [RUNNER_OPTION...] -- COMMAND...
	"$runner" -l "$root/build/culprit-upcall.so" -o "$dir/out" "$@"
}

count() {
	awk -v name="$1" '$1 == "count" && $2 == name { print $3 }' "$dir/out"
}

plugin() {
	echo "$root/build/plugins/$1.so"
}

# Per cent of the values of KIND at address AT whose text matches PATTERN.
share() { # KIND AT PATTERN
	awk -v kind="$1" -v at="$2" -v pattern="$3" '
		$1 == kind && $2 == at { n++; if ($7 ~ pattern) k++ }
		END { printf "%d\n", n ? 100 * k / n : -1 }' "$dir/out"
}

# ---- programs that use signals themselves ----

undisturbed() { # MODE
	upcall -t 50000 -n -p "$(plugin latency)" -- "$programs/upcall_signals" "$1" >said
	[ "$(cat said)" = ok ]
	[ "$(count bursts)" -gt 0 ]
	[ "$(count damaged)" = 0 ]
}

@test "handlers of SIGTRAP, by breakpoints and by raise" {
	undisturbed handlers
}

# bats test_tags=plain
@test "handlers of SIGSEGV that jump" {
	undisturbed segv
}

# bats test_tags=plain
@test "handlers of SIGBUS on a stack of their own" {
	undisturbed bus
}

# bats test_tags=plain
@test "signal stacks that are as small as can be" {
	undisturbed altstack
}

# bats test_tags=plain
@test "stacks too small for a signal, as Go has them" {
	undisturbed coroutines
}

# bats test_tags=plain
@test "signals that are blocked" {
	undisturbed masks
}

# bats test_tags=plain
@test "jumps out of handlers" {
	undisturbed jumps
}

@test "threads that come and go" {
	undisturbed threads
	between "$(count rings)" 2 64 # 320 threads, of which few at once
}

# bats test_tags=plain
@test "memory that other threads unmap" {
	undisturbed unmaps
}

@test "children by fork are sampled too" {
	undisturbed forks
	[ "$(count processes)" = 101 ]
}

# bats test_tags=plain
@test "children by vfork, posix_spawn and system" {
	undisturbed spawns
}

# bats test_tags=plain
@test "exec with all signals blocked" {
	undisturbed exec_blocked
}

# bats test_tags=plain
@test "programs that close all files and reuse the numbers" {
	undisturbed closes
}

# bats test_tags=plain
@test "a sandbox that allows next to no system call" {
	undisturbed sandbox
	[ "$(count barred)" -gt 0 ]
	undisturbed filter
	[ "$(count barred)" = 0 ]
	[ "$(count bursts)" -gt 1000 ]
}

@test "no file is open that the program did not open" {
	sh -c 'ls /proc/$$/fd' >before
	upcall -- sh -c 'ls /proc/$$/fd' >after
	diff before after
}

dies() { # MODE STATUS
	run upcall -t 50000 -- "$programs/upcall_signals" "$1"
	echo "status $status"
	[ "$status" = "$2" ]
}

@test "deaths are what they were" {
	dies die_segv 139
	dies die_trap 133
	dies die_kill 139
}

@test "threads drop nothing at the usual rate" {
	upcall -- "$programs/threads" 0.5
	[ "$(count dropped)" = 0 ]
	[ "$(awk '$1 == "result" { print $6 }' out | sort -u | wc -l)" -ge 2 ]
}

# ---- stock programs ----

# bats test_tags=plain
@test "bash with pipes and subshells" {
	upcall -t 100000 -- bash -c 'for i in $(seq 50); do x=$(echo $i | cat); done; echo $x' >said
	[ "$(cat said)" = 50 ]
	[ "$(count processes)" -gt 100 ]
}

# bats test_tags=plain
@test "perl with handlers" {
	command -v perl || skip "no perl"
	upcall -t 50000 -- perl -e '$SIG{TRAP} = sub { $n++ }; $SIG{ALRM} = sub { $a++; alarm 0 };
		alarm 1; $x += sqrt $_ for 1 .. 300000; kill TRAP => $$;
		select undef, undef, undef, 1.2;
		print "$n $a\n"' >said
	[ "$(cat said)" = "1 1" ]
}

# bats test_tags=plain
@test "python's own tests of signals" {
	python3 -c 'import test.test_signal' 2>/dev/null || skip "python's tests are not installed"
	tests=(python3 -m test test_signal -m PosixTests -m PendingSignalsTests -m StressTest)
	upcall -t 100000 -n -p "$(plugin latency)" -- "${tests[@]}" || {
		"${tests[@]}" || skip "they fail here anyhow"
		return 1
	}
	[ "$(count bursts)" -gt 100 ]
}

# ---- values and plug-ins ----

@test "values, addresses, strides and edges" {
	upcall -- "$programs/plugin_loads" blocked 0.3 >at
	[ "$(grep -c "^address $(cat at) " out)" -gt 20 ]
	[ "$(grep "^stride $(cat at) " out | awk '{ print $3 }' | sort -u)" = 0x0 ]
	[ "$(grep "^result $(cat at) " out | awk '{ print $3 }' | sort -u)" = 0x1000000 ]
	grep -q '^edge ' out
}

# bats test_tags=plain
@test "latencies: near loads are near, far loads are far" {
	upcall -n -p "$(plugin latency)" -- "$programs/plugin_loads" near 0.4 >at
	between "$(share latency "$(cat at)" '^(L1|L2|L3)')" 80 100
	upcall -n -p "$(plugin latency)" -- "$programs/plugin_loads" far 0.4 >at
	between "$(share latency "$(cat at)" '^(memory|longer)')" 70 100
}

# bats test_tags=plain
@test "conflicts: blocked loads, forwarded ones, aliases" {
	upcall -n -p "$(plugin conflicts)" -- "$programs/plugin_loads" blocked 0.3 >at
	[ "$(share conflict "$(cat at)" '^blocked_by_the_store_at_-0x4$')" = 100 ]
	upcall -n -p "$(plugin conflicts)" -- "$programs/plugin_loads" forwarded 0.3 >at
	[ "$(share conflict "$(cat at)" .)" = -1 ]
	upcall -n -p "$(plugin conflicts)" -- "$programs/plugin_loads" alias 0.3 >at
	[ "$(share conflict "$(cat at)" '^4K_alias_of_the_store_at_-0x4$')" = 100 ]
}

# bats test_tags=plain
@test "operands: denormals, NaNs, integers" {
	for case in denormal:denormal nan:NaN integer:42; do
		upcall -n -p "$(plugin floats)" -- "$programs/plugin_loads" "${case%:*}" 0.3 >at
		[ "$(share float "$(cat at)" "^${case#*:}\$")" = 50 ]
		[ "$(share float "$(cat at)" '^1.5$')" = 50 ]
	done
}

@test "a plug-in that is none" {
	run upcall -p /etc/hostname -- true
	[ "$status" = 2 ]
	[[ $output == *"cannot be loaded as a plug-in"* ]]
}

@test "record and values, from the library to the advice" {
	"$CULPRIT" record --values=upcall --plugin floats --plugin latency -o "$db" -- \
		"$programs/plugin_loads" denormal 0.6
	run "$CULPRIT" values -i "$db" add
	echo "$output"
	[[ $output == *"denormal 50.0%"* ]]
	[[ $output == *"flush them to zero"* ]]
	[[ $output == *"latency (%"*"cycles"* ]]
}
