#!/usr/bin/env bats
# Which way branches go, seen by the interpreter in the sampling interrupt, on programs that know it;
# and that nobody it looks at can tell.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
}

teardown() {
	[ -z "${public:-}" ] || rm -rf "$public"
}

counts() { # [OPTION...]
	"$CULPRIT" export -f edges -i "$db" "$@"
}

# Profiles of a type in the database.
profiles() { # TYPE
	sqlite3 "$db" "SELECT count(*) FROM profiles JOIN names ON names.id = type WHERE text = '$1'"
}

# What they are worth together: samples, edges.
weight() { # TYPE
	sqlite3 "$db" "SELECT coalesce(sum(samples), 0) FROM profiles JOIN names ON names.id = type WHERE text = '$1'"
}

need_edges() {
	need_root "the interpreter needs BPF"
}

# Fails unless the share of the branch's edges that were taken lies within five standard errors of
# the truth, and there are enough of them for that to mean something.
probability() { # PROCEDURE TRUTH
	local from taken fell
	read -r from taken fell <<< "$(sed -n "s/^$1 //p" places)"
	counts --proc "$1" | awk -v from="$from" -v taken="$taken" -v fell="$fell" -v p="$2" '
		$1 == "edge" && $2 == from && $3 == taken { t += $4; next }
		$1 == "edge" && $2 == from && $3 == fell { f += $4; next }
		$1 == "edge" && $2 == from { wrong += $4 }
		END {
			n = t + f
			if (wrong || n < 200) { print "wrong: " wrong + 0 ", right: " n; exit 1 }
			d = t / n - p
			print t " of " n ", should be " p ": off by " d / sqrt(p * (1 - p) / n) " sigma"
			exit d * d > 25 * p * (1 - p) / n
		}'
}

# bats test_tags=plain
@test "branches taken in a quarter, half and nine tenths of the cases" {
	need_edges
	record -- "$programs/known_edges" 3 > places
	probability quarter 0.25
	probability half 0.5
	probability most 0.9
	[ "$(profiles edge)" -gt 0 ]
	[ "$(profiles value)" = 0 ]
	"$CULPRIT" db check "$db"
}

# bats test_tags=plain
@test "edges are of the procedure: the loop goes back as often as it is gone through" {
	need_edges
	record -- "$programs/known_edges" 2 > places
	counts --proc half > half
	# The branch and the loop's own end; and the return, which is rare.
	[ "$(awk '$1 == "edge" && $4 > 20 { print $2 }' half | sort -u | wc -l)" = 2 ]
	from=$(awk '$1 == "half" { print $2 }' places)
	awk -v from="$from" '$1 == "edge" { if ($2 == from) a += $4; else b += $4 }
		END { print a, b; exit !(a > 100 && b / a > 0.85 && b / a < 1.15) }' half
}

@test "--values stores values, and the same edges" {
	need_edges
	record --values -- "$programs/known_edges" 2 > places
	[ "$(profiles value)" -gt 0 ]
	probability quarter 0.25
	probability most 0.9
	"$CULPRIT" db check "$db"
}

@test "--no-edges stores none" {
	record --no-edges -- "$programs/known_edges" 0.5 > places
	[ "$(profiles pc)" -gt 0 ]
	[ "$(profiles edge)" = 0 ]
	[ "$(profiles value)" = 0 ]
	"$CULPRIT" db check "$db"
	run --separate-stderr counts
	[ "$status" = 0 ]
	[ "$stderr" = "culprit: no edge samples in what was selected" ]
}

@test "without BPF there are samples and no edges, and nothing is said" {
	run --separate-stderr "$CULPRIT" record -q --no-bpf -e cpu-clock -F 2000 -o "$db" -- \
		"$programs/known_edges" 0.5
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	[ "$(profiles pc)" -gt 0 ]
	[ "$(profiles edge)" = 0 ]
	"$CULPRIT" db check "$db"
}

@test "values without BPF: one line says why, the rest is recorded" {
	run --separate-stderr record --values --no-bpf -- "$programs/known_edges" 0.5
	[ "$status" = 0 ]
	echo "$stderr"
	[ "$(grep -c 'no values: .*BPF' <<< "$stderr")" = 1 ]
	[ "$(wc -l <<< "$stderr")" = 2 ] # this, and the accounting
	[ "$(profiles pc)" -gt 0 ]
	[ "$(profiles value)" = 0 ]
}

@test "an ordinary user: samples and no edges; asked for values it says why" {
	need_root "becomes nobody"
	share_programs
	cp "$programs/known_edges" "$public"
	chmod 755 "$public/known_edges"
	db=$public/own.db
	run --separate-stderr as_nobody "$public/culprit" record -q -e cpu-clock:u -F 2000 -o "$db" -- \
		"$public/known_edges" 0.5
	[ "$status" = 0 ]
	[[ $stderr != *interpret* ]]
	[ "$(profiles pc)" -gt 0 ]
	[ "$(profiles edge)" = 0 ]
	run --separate-stderr as_nobody "$public/culprit" record --values -e cpu-clock:u -F 2000 \
		-o "$public/more.db" -- "$public/known_edges" 0.3
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$(grep -c 'no values: ' <<< "$stderr")" = 1 ]
	[[ $stderr == *CAP_BPF* ]]
}

# ---- who is looked at ----

# The program's output is the same with and without being sampled, values and all.
undisturbed() { # MODE
	"$programs/device_mapper" "$1" > alone
	"$CULPRIT" record --values -q -e cpu-clock -F 5000 -o "$db" -- "$programs/device_mapper" "$1" \
		> watched
	diff alone watched
	[ "$(profiles pc)" -gt 0 ]
	"$CULPRIT" db check "$db"
}

kernel_complaints() {
	dmesg 2>/dev/null | grep -cE 'BUG|Oops|WARNING:|general protection|Bad page|unable to handle' || true
}

@test "a program that reads memory of the kernel's: its loads are unknown" {
	need_edges
	before=$(kernel_complaints)
	undisturbed ring
	# The load has addresses, and no value was ever seen.
	"$CULPRIT" values -i "$db" --json --kind address load_ring > addresses
	jq -e '[.rows[].samples] | add > 100' addresses
	load=$(jq -r '[.rows[]] | max_by(.samples) | .address' addresses)
	"$CULPRIT" values -i "$db" --json --kind result load_ring > results
	jq -e --arg at "$load" '[.rows[] | select(.address == $at)] | length == 0' results
	[ "$(kernel_complaints)" = "$before" ]
}

# bats test_tags=plain
@test "programs that map, unmap, fork, execute others and have threads run as ever" {
	need_edges
	before=$(kernel_complaints)
	for mode in unmap fork exec threads; do
		undisturbed $mode
		rm -f "$db"*
	done
	[ "$(kernel_complaints)" = "$before" ]
}

@test "32-bit code is not taken for 64-bit code" {
	need_edges
	"$CULPRIT" record -q -F 2000 --edges 5% -o "$db" -- "$programs/held" narrow 1
	[ "$(weight pc)" -gt 500 ]
	[ "$(weight edge)" -lt 500 ] # of what it does before and after; else there were thousands
}
