#!/usr/bin/env bats
# The daemon: its life, its database under readers, faults and expiry.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	need_root "the daemon samples the whole machine"
	common_setup
}

teardown() {
	[ -z "${db:-}" ] || "$CULPRIT" daemon stop --db "$db" >/dev/null 2>&1 || true
	[ -z "${target:-}" ] || kill "$target" 2>/dev/null || true
	! mountpoint -q "$BATS_TEST_TMPDIR/small" || umount -l "$BATS_TEST_TMPDIR/small"
}

start() { # [OPTION...]
	# Descriptor 3 is bats's own: whoever keeps it open keeps bats waiting.
	"$CULPRIT" daemon start --db "$db" -e cpu-clock -F 500 --drain 0.2 "$@" 3>&-
}

status_of() { # JQ
	"$CULPRIT" daemon status --db "$db" --json | jq -r "$1"
}

epochs() { # JQ
	"$CULPRIT" db ls -i "$db" --json | jq -r ".epochs | $1"
}

@test "start, status, flush, epoch, stop" {
	"$programs/shares" 30 3>&- &
	target=$!
	start
	[ "$(status_of .running)" = true ]
	kill -0 "$(status_of .pid)"
	between "$(status_of .rate)" 499 501
	sleep 1
	"$CULPRIT" daemon flush --db "$db"
	between "$(percent '.procedure == "heavy"' --comm shares)" 50 90
	[ "$(epochs length)" = 1 ]
	[ "$(epochs '.[0].ended')" = null ]
	"$CULPRIT" daemon epoch --db "$db"
	[ "$(epochs length)" = 2 ]
	[ "$(epochs '.[0].ended')" != null ]
	pid=$(status_of .pid)
	"$CULPRIT" daemon stop --db "$db"
	await eval "! kill -0 $pid 2>/dev/null"
	run "$CULPRIT" daemon status --db "$db" --json
	[ "$status" = 1 ]
	[ "$(jq -r .running <<<"$output")" = false ]
	[ "$(epochs '[.[] | select(.ended == null)] | length')" = 0 ]
	"$CULPRIT" db check "$db"
}

@test "call paths of all programs, and how well they are known" {
	# Again and again: one that takes longer has the daemon see whichever caller is at work.
	bash -c 'while :; do "$0" 0.3; done' "$programs/callers" 3>&- &
	target=$!
	start -g
	sleep 1.5
	"$CULPRIT" daemon flush --db "$db"
	"$CULPRIT" daemon status --db "$db" --json |
		jq -e '.stacks > 0 and .heights > 0 and .paths_unique + .paths_ranked + .paths_walked > 100 and .paths_unknown_share >= 0 and .map_bytes > 0'
	"$CULPRIT" daemon status --db "$db" | grep -q "stacks taken"
	"$CULPRIT" calls -i "$db" --comm callers --json |
		jq -e '[.contexts[] | select(.path[-3:] == ["main", "first", "worker"]) | .share] | add > 0.3'
}

@test "its own cost is a row like any other" {
	start
	sleep 1
	"$CULPRIT" daemon flush --db "$db"
	"$CULPRIT" daemon status --db "$db" --json |
		jq -e '.rss > 0 and .maps > 0 and .samples > 0 and .budget >= 0 and .cost >= 0'
	[ "$(stat -c %a "$db")" = 600 ]
}

@test "only one daemon for a database" {
	start
	run start
	fails_with 3 "runs already"
	[ "$(status_of .running)" = true ]
}

@test "stop, flush and epoch without a daemon" {
	for what in stop flush epoch; do
		run "$CULPRIT" daemon $what --db "$db"
		[ "$status" != 0 ]
		[ "$(wc -l <<<"$output")" = 1 ]
	done
}

@test "in the foreground, ended by SIGTERM, everything is written" {
	"$programs/shares" 30 3>&- &
	target=$!
	"$CULPRIT" daemon start --foreground --db "$db" -e cpu-clock -F 500 2>said 3>&- &
	daemon=$!
	await eval '[ "$(status_of .running)" = true ]'
	sleep 1
	kill -TERM $daemon
	wait $daemon
	between "$(percent '.procedure == "heavy"' --comm shares)" 50 90
	[ "$(epochs '.[0].ended')" != null ]
}

# bats test_tags=plain
@test "kill -9 at any moment leaves a sound database, and the next daemon goes on" {
	"$programs/forker" 30 3>&- >/dev/null &
	target=$!
	before=0
	for delay in 0.31 0.47 0.59 0.73 0.88 1.02; do
		start --flush 0.1
		sleep $delay
		kill -9 "$(status_of .pid)"
		await eval '[ "$(status_of .running)" = false ]'
		"$CULPRIT" db check "$db"
		now=$(epochs '[.[].samples] | add // 0')
		[ "$now" -ge "$before" ]
		before=$now
	done
	[ "$before" -gt 0 ]
	start
	"$CULPRIT" daemon stop --db "$db"
	"$CULPRIT" db check "$db"
}

@test "two readers while the daemon writes" {
	"$programs/forker" 30 3>&- >/dev/null &
	target=$!
	start --flush 0.1
	await eval '[ "$(epochs "[.[].samples] | add // 0")" -gt 0 ]'
	for reader in 1 2; do
		for i in $(seq 10); do
			top | jq -e '.events[0] | .samples == .attributed + .unknown' >/dev/null || exit 1
			"$CULPRIT" db check "$db" >/dev/null || exit 1
		done 3>&- &
		readers+=($!)
	done
	for pid in "${readers[@]}"; do
		wait "$pid"
	done
	[ "$(status_of .failed_flushes)" = 0 ]
}

@test "a reader sees samples grow" {
	start --flush 0.2
	await eval '[ "$(epochs "[.[].samples] | add // 0")" -gt 0 ]'
	first=$(epochs '[.[].samples] | add')
	await eval '[ "$(epochs "[.[].samples] | add")" -gt '"$first ]"
}

@test "expire removes what is old" {
	start
	sleep 0.5
	"$CULPRIT" daemon epoch --db "$db"
	sleep 0.5
	"$CULPRIT" daemon stop --db "$db"
	[ "$(epochs length)" = 2 ]
	cut=$(epochs '.[1].started')
	"$CULPRIT" db expire -i "$db" --before "$cut"
	[ "$(epochs length)" = 1 ]
	[ "$(epochs '.[0].samples')" -gt 0 ]
	"$CULPRIT" db check "$db"
}

@test "a full disk is survived and reported" {
	mkdir small
	db=$dir/small/test.db
	mount -t tmpfs -o size=3m none small
	start --flush 0.2
	await eval '[ "$(epochs "[.[].samples] | add // 0")" -gt 0 ]'
	dd if=/dev/zero of=small/filler bs=4k status=none || true
	await eval '[ "$(status_of .failed_flushes)" -gt 0 ]'
	[ "$(status_of .running)" = true ]
	rm small/filler
	flushed=$(status_of .flushes)
	await eval '[ "$(status_of .flushes)" -gt '"$flushed ]"
	"$CULPRIT" daemon stop --db "$db"
	"$CULPRIT" db check "$db"
}
