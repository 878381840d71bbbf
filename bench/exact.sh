#!/bin/bash
# Whether exact counts are (record --exact): each of the twelve programs is counted by callgrind once
# (kept under build/bench/accuracy) and by its edited copy, libraries included, and all blocks are
# compared. Programs that see the difference do something else under valgrind: it adds variables to the
# environment, lays out memory in another way (sqlite3 compares addresses, cc1 and lua hash them), and
# computes floating point in another way (hmmsearch). zstd's I/O threads wait as often as they must, and
# lua seeds its hashing by the time: no two runs are alike. alike.sh takes all this away. PROGRAMS:
# see recordings.sh.
. "$(dirname "$0")/lib.sh"
options "$@"
make -s -C "$root" build/bench/exact_counts || exit 1
. "$here/recordings.sh"
export XDG_CACHE_HOME=$work/cache

# "IMAGE START COUNT CONFIDENCE" for each block of a text of counts.
blocks() { # FILE
	awk '$1 == "image" { image = $2 } $1 == "block" { print image, $2, $4, $5 }' "$1"
}

# Of the images that both have: compared, different, called exact and different, executed and not there.
compare() { # TRUTH OURS
	awk 'NR == FNR { ours[$1, $2] = $3; sure[$1, $2] = $4; image[$1]; next }
		!($1 in image) { next }
		!(($1, $2) in ours) { missing += $3 > 0; next }
		{ n++ }
		ours[$1, $2] != $3 { different++; wrong += sure[$1, $2] == "exact" }
		END { print n + 0, different + 0, wrong + 0, missing + 0 }' "$2" "$1"
}

header "" "blocks compared" "different" "of these called exact" "executed, not counted" \
	"procedures" "not called exact"
for name in "${names[@]}"; do
	simulate "$name" callgrind counts "$programs/exact_counts" --collect-jumps=yes
	"$here/program" "$name" "$culprit" record --exact -o "$work/$name.db" -- >/dev/null 2>"$work/said" ||
		die "$name: $(tail -1 "$work/said")"
	"$culprit" export -f counts -i "$work/$name.db" >"$work/text" || exit 1
	blocks "$work/text" >"$work/ours"
	blocks "$inputs/$name.counts" >"$work/truth"
	read -r compared different wrong missing < <(compare "$work/truth" "$work/ours")
	row "$name" "$compared" "$different" "$wrong" "$missing" "$(grep -c '^procedure' "$work/text")" \
		"$(grep -c '^procedure.* known$' "$work/text")"
	case $name in
	gzip | bzip2 | xz) echo "$different" >>"$work/all" ;;
	esac
done
echo
[ ! -e "$work/all" ] || goal "blocks of gzip, bzip2 and xz that differ: 0" \
	"$(awk '{ n += $1 } END { print n + 0 }' "$work/all") == 0"
