#!/bin/bash
# Whether contexts are right: how often procedures of the twelve programs were entered, counted exactly and
# summed over all calling contexts, in two runs of a job. What differs is not the same in two runs
# of the program either (lua seeds its hashing by time and addresses, povray has threads), or is wrong.
# PROGRAMS: see recordings.sh.
. "$(dirname "$0")/lib.sh"
options "$@"
make -s -C "$root" build/bench/context_sums || exit 1
. "$here/recordings.sh"
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$programs/cache}

header "program" "procedures" "entries, exact" "entries, contexts" "contexts" "procedures that differ" "not called exact"
for name in "${names[@]}"; do
	for way in exact context; do
		"$here/program" "$name" "$culprit" record -q --$way -o "$work/$name.$way.db" -- >"$work/out" ||
			die "$name: $(tail -1 "$inputs/$name.err")"
	done
	"$programs/context_sums" "$work/$name.exact.db" "$work/$name.context.db" >"$work/sums" || exit 1
	# shellcheck disable=SC2046
	row "$name" $(grep -o '[0-9]\+' "$work/sums")
	rm "$work/$name".*.db
done
