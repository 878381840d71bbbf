#!/bin/bash
# How much of the stall cycles 'why' explains in the twelve programs, and how sharply: by what is left
# unexplained, culprits a stall, and the widths of their ranges (blamed.c); and how long it takes to
# explain everything. PROGRAMS and RECORDINGS: see recordings.sh.
. "$(dirname "$0")/lib.sh"
seconds=25
options "$@"
make -s -C "$root" build/bench/blamed || exit 1
. "$here/recordings.sh"

for name in "${names[@]}"; do
	record "$name"
	"$programs/blamed" "$recordings/$name.db" | sed "s/^/$name /"
done >"$work/rows"

line() { # TITLE [NAME]
	awk -v title="$1" -v name="${2:-}" '
	name == "" || $1 == name {
		n++; samples += $5; known += $4 == "relative" ? 0 : $5; execution += $6; fixed += $7
		dynamic += $8; unexplained += $9; gain += $10; width += $11; culprits += $12
	}
	function percent(a, b) { return b > 0 ? sprintf("%.1f", 100 * a / b) : "-" }
	END {
		stall = dynamic + unexplained
		printf "| %s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", title, n, samples,
			percent(known, samples), percent(execution, samples), percent(fixed, samples),
			percent(stall, samples), percent(gain, samples), percent(unexplained, stall),
			(dynamic > 0 ? sprintf("%.2f", culprits / dynamic) : "-"), percent(width, stall)
	}' "$work/rows"
}
field() { # NUMBER of the column in the line of all programs
	line all | cut -d'|' -f$(($1 + 1)) | tr -d ' '
}

header "" "procedures" "samples" "scale known, %" "execution, %" "static stalls, %" "dynamic stalls, %" \
	"gain, %" "of the stalls unexplained, %" "culprits a stall" "widths of their ranges, %"
for name in "${names[@]}"; do
	line "$name" "$name"
done
line all
echo
goal "under 10% of the stall cycles unexplained" "$(or_zero "$(field 9)") < 10"
goal "at most 2 culprits a stall" "$(or_zero "$(field 10)") <= 2"
goal "the widths are under 30% of the stall cycles" "$(or_zero "$(field 11)") < 30"

# All of them in one database, for how long it takes to explain everything.
databases=("${names[@]/#/$recordings/}")
"$culprit" db merge -o "$work/all.db" "${databases[@]/%/.db}" >/dev/null || exit 1
megabytes=$("$culprit" top -i "$work/all.db" --by image --json -n 1000 | jq -r '.rows[].image' |
	sort -u | grep '^/' | xargs -d '\n' stat -L -c %s 2>/dev/null | awk '{ s += $1 } END { print s / 1e6 }')
took=$(user_seconds "$culprit" why -i "$work/all.db")
echo "Explaining all of them: $took s of CPU time for $(figure %.1f "$megabytes") MB of sampled images."
goal "20 MB of sampled images in 10 s" "$took / $megabytes <= 0.5"
