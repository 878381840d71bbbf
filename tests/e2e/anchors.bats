#!/usr/bin/env bats
# Pairs of samples in a row: how often loops go round, from what two samples show, on programs that
# count for themselves.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	rate=${CULPRIT%/culprit}/tests/fixtures/anchor_rate
}

anchors() {
	sqlite3 "$db" "SELECT coalesce(sum(samples), 0) FROM profiles JOIN names ON names.id = type
		WHERE text = 'anchor'"
}

# Fails unless the loop's rate by its anchors is within TOLERANCE of what it says itself.
agrees() { # PROCEDURE TOLERANCE LEAST_PAIRS
	local number stride times seconds found used all
	read -r number stride times seconds <<<"$(sed -n "s/^$1 //p" loops)"
	read -r found used all <<<"$("$rate" "$db" "$1" "$number" "$stride")"
	echo "$1: $found/s by $used of $all pairs, in truth $times in $seconds s"
	[ "$used" -ge "$3" ]
	[ $((used * 10)) -ge $((all * 8)) ]
	awk -v f="$found" -v n="$times" -v s="$seconds" -v t="$2" 'BEGIN {
		r = f / (n / s); print "measured / exact", r; exit !(r > 1 - t && r < 1 + t) }'
}

# bats test_tags=plain
@test "iterations of three loops, to a few per cent" {
	need_root "pairs need BPF"
	record -- "$programs/counted_loops" 3 > loops
	agrees chain 0.08 40
	agrees look 0.12 40
	agrees divide 0.08 40
	"$CULPRIT" db check "$db"
}

@test "the accounting names pairs, and they come along in a merge" {
	need_root "pairs need BPF"
	run --separate-stderr record -- "$programs/counted_loops" 1
	[ "$status" = 0 ]
	echo "$stderr"
	[[ $stderr =~ \;\ ([0-9]+)\ pairs\ seen,\ ([0-9]+)\ kept,\ 0\ dropped ]]
	[ "${BASH_REMATCH[2]}" -gt 20 ]
	[ "${BASH_REMATCH[2]}" -le "${BASH_REMATCH[1]}" ]
	before=$(anchors)
	[ "$before" -gt 20 ]
	"$CULPRIT" db merge -o "$dir/both.db" "$db"
	db=$dir/both.db
	[ "$(anchors)" = "$before" ]
	"$CULPRIT" db check "$db"
}

@test "--no-edges and --no-bpf keep none" {
	record --no-edges -- "$programs/counted_loops" 0.5 > loops
	[ "$(anchors)" = 0 ]
	record --no-bpf -- "$programs/counted_loops" 0.5 > loops
	[ "$(anchors)" = 0 ]
}

@test "the daemon counts them" {
	need_root "samples the machine"
	"$programs/counted_loops" 20 3>&- > loops &
	target=$!
	"$CULPRIT" daemon start --db "$db" -e cpu-clock -F 2000 --drain 0.2 3>&-
	sleep 1.5
	"$CULPRIT" daemon flush --db "$db"
	"$CULPRIT" daemon status --db "$db" --json > status
	"$CULPRIT" daemon stop --db "$db"
	kill $target
	cat status
	jq -e '.anchors_seen > 20 and .anchors_kept > 20 and .anchors_kept <= .anchors_seen' status
	jq -e '.anchors_begun >= .anchors_seen + .anchors_lapsed + .anchors_dropped' status
	[ "$(anchors)" -gt 20 ]
	"$CULPRIT" db check "$db"
}
