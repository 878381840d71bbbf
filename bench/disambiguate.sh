#!/bin/bash
# Call paths that heights of the stack confuse (edit --disambiguate): how much of the samples and of the different
# paths is alone with its function and height, in the plain programs; what the paper's random search and ours make of
# it, by the same paths; and what is so in the copy, by stacks of its own. Nobody asks for return addresses here: that
# is the paper's setting, two registers. -n: runs that paths are learned from, and as many of the copy. PROGRAMS: see
# recordings.sh. Then how much of `record -g` is named as the likeliest of several, as it is used.
. "$(dirname "$0")/lib.sh"
rounds=3 rate=2000
options "$@"
make -s -C "$root" build/bench/ambiguity || exit 1
. "$here/recordings.sh"

# All stacks of some runs, with a copy in the file's place or without.
learn() { # NAME DATABASE [COPY FILE]
	rm -f "$2"
	for ((i = 0; i < rounds; i++)); do
		"$root/tools/bind" "${@:3}" -- "$here/program" "$1" "$culprit" record -q --call-graph=copy --no-edges -F "$rate" -o "$2" -- ||
			die "$1: $(tail -1 "$inputs/$1.err")"
	done
}

# What `record -g` says of itself after some runs.
likeliest() { # NAME [COPY FILE]
	rm -f "$work/g.db"
	for ((i = 0; i < 3; i++)); do
		"$root/tools/bind" "${@:2}" -- "$here/program" "$1" "$culprit" record -g --no-edges -F "$rate" -o "$work/g.db" --
	done
	sed -n 's/.*call paths: .*samples, \([0-9.]*\)% as.*/\1/p' "$inputs/$1.err"
}

state() { # FILE JQ-PATH: samples and paths, in per cent
	jq -r "$2 | \"\\(.samples * 10000 | round / 100) / \\(.paths * 10000 | round / 100)\"" "$1"
}

header program contexts "plain: samples / paths alone, %" "random search" growth "larger frames" "and wrapped calls" "and second copies" \
	growth "bytes more, mean" changes "contexts of the copy" "alone in it, %" "likeliest of several: plain, %" "copy, %"
for name in "${names[@]}"; do
	file=$("$here/program" --files "$name")
	learn "$name" "$work/plain.db"
	"$culprit" edit "$file" --disambiguate --map "$work/plain.db" --search random --report --json >"$work/random" || exit 1
	"$culprit" edit "$file" --disambiguate --map "$work/plain.db" --report --json -o "$work/copy" >"$work/greedy" || exit 1
	learn "$name" "$work/copy.db" "$work/copy" "$file"
	read -r contexts samples paths _ < <("$programs/ambiguity" "$work/copy.db" "$work/copy")
	row "$name" "$(jq .contexts "$work/greedy")" "$(state "$work/greedy" .before)" "$(state "$work/random" '.after[0]')" \
		"$(jq -r '.after[0].growth * 1000 | round / 1000' "$work/random")" "$(state "$work/greedy" '.after[0]')" \
		"$(state "$work/greedy" '.after[1]')" "$(state "$work/greedy" '.after[2]')" \
		"$(jq -r '.after[2].growth * 1000 | round / 1000' "$work/greedy")" "$(jq -r '.after[2].mean_extra | round' "$work/greedy")" \
		"$(jq -r '[.after[].changes] | map(tostring) | join(" + ")' "$work/greedy")" "$contexts" "$samples / $paths" \
		"$(likeliest "$name")" "$(likeliest "$name" "$work/copy" "$file")"
done
