#!/usr/bin/env bats
# Bursts kept as they went: a sample of them, in the database beside the edges.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
}

# Bursts that the walks in the database stand for.
walks() {
	sqlite3 "$db" "SELECT coalesce(sum(samples), 0) FROM profiles JOIN names ON names.id = type
		WHERE text = 'walk'"
}

# Fails unless walks of the program lead where its code leads.
followed() { # PROGRAM LEAST
	local right wrong left
	read -r right wrong left <<< "$("${CULPRIT%/culprit}/tests/fixtures/follow_walks" "$db" "$1")"
	echo "$right right, $wrong wrong, $left left the image"
	[ "$wrong" = 0 ]
	[ "$right" -gt "$2" ]
}

@test "a recording keeps walks, which come along in a merge" {
	need_root "the interpreter needs BPF"
	record -- "$programs/known_edges" 2 > places
	before=$(walks)
	echo "$before walks"
	[ "$before" -gt 100 ]
	followed "$programs/known_edges" 100
	"$CULPRIT" db check "$db"
	"$CULPRIT" db merge -o "$dir/both.db" "$db"
	db=$dir/both.db
	[ "$(walks)" = "$before" ]
	"$CULPRIT" db check "$db"
}

# bats test_tags=plain
@test "with --values there are walks too, with --no-edges and --no-bpf none" {
	need_root "the interpreter needs BPF"
	record --values -- "$programs/known_edges" 1 > places
	[ "$(walks)" -gt 100 ]
	followed "$programs/known_edges" 100
	"$CULPRIT" db check "$db"
	rm "$db"
	record --no-edges -- "$programs/known_edges" 0.5 > places
	[ "$(walks)" = 0 ]
	rm "$db"
	record --no-bpf -- "$programs/known_edges" 0.5 > places
	[ "$(walks)" = 0 ]
}
