#!/usr/bin/env bats
# Where samples fall and how fast cores are, stored with the event. Measured as an ordinary user, who
# has a cache of his own.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	need_root "becomes nobody"
	share_programs
	cp "$programs/known_edges" "$public"
	db=$public/own.db
}

teardown() {
	[ -z "${public:-}" ] || rm -rf "$public"
}

sample() { # SECONDS
	rm -f "$db"
	as_nobody "$public/culprit" record -q -e cpu-clock:u -F 1000 -o "$db" -- \
		"$public/known_edges" "$1" > places
}

skid() { # "INSTRUCTIONS SHARE CYCLES_PER_NS"
	sqlite3 "$db" "SELECT printf('%d %.2f %.2f', skid, skid_share, cycles_per_ns) FROM events"
}

# bats test_tags=plain
@test "who gives a rate waits for it only at the end of a long recording, once" {
	sample 0.3
	[ "$(skid)" = "0 0.00 0.00" ]
	[ ! -e "$public/.cache/culprit/calibration" ]
	sample 4.2
	grep -q ' skid:cpu-clock:u ' "$public/.cache/culprit/calibration" ||
		skip "the machine is too busy"
	measured=$(skid)
	awk '{ exit !($1 >= 0 && $1 <= 8 && $2 > 0.08 && $2 <= 1 && $3 > 0.1 && $3 < 20) }' \
		<<< "$measured"
	sample 0.3
	[ "$(skid)" = "$measured" ]
}
