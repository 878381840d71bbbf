#!/bin/bash
# How much of the stall cycles 'why' explains in the twelve programs, and how sharply: by what is left
# unexplained, culprits a stall, and the widths of their ranges; and how long it takes to explain
# everything. Procedures with at least -n samples. PROGRAMS and RECORDINGS: see recordings.sh.
. "$(dirname "$0")/lib.sh"
rounds=200 seconds=25
options "$@"
. "$here/recordings.sh"

# Of a procedure: "SCALE SAMPLES", then in samples: execution, static, dynamic, unexplained, gain,
# widths of the culprits' ranges; and sums over stalls of cycles, and of cycles times culprits.
# shellcheck disable=SC2016
parts='
def sum(f): map(f) | add // 0;
.samples as $n | .summary as $s |
[$s.execution, ($s.static | sum(.share)), 0, $s.unexplained, $s.unexplained_gain,
	($s.dynamic | sum(.max - .min)), $s.sampling_error] as $p |
[.blocks[].instructions[] | select(.stalls | length > 0) |
	{cycles: (.count * ([.stalls[].max] | max)), culprits: (.stalls | length)}] as $stalls |
([.scale, $n] + ($p | .[2] = 1 - .[0] - .[1] - .[3] - .[4] - .[6] | .[:6] | map(. * $n)) +
	[($stalls | sum(.cycles)), ($stalls | sum(.cycles * .culprits))]) | map(tostring) | join(" ")'

explain() { # DATABASE
	local image start
	"$culprit" top -i "$1" --json -n 1000 | jq -r --argjson least "$rounds" \
		'.rows[] | select(.samples >= $least and .start != null) | "\(.image) \(.start)"' |
		while read -r image start; do
			"$culprit" why -i "$1" --json "${image##*/}!$start" 2>/dev/null | jq -r "$parts"
		done
}

for name in "${names[@]}"; do
	record "$name"
	explain "$recordings/$name.db" | sed "s/^/$name /"
done >"$work/rows"

line() { # TITLE [NAME]
	awk -v title="$1" -v name="${2:-}" '
	name == "" || $1 == name {
		n++; samples += $3; known += $2 == "relative" ? 0 : $3; execution += $4; fixed += $5
		dynamic += $6; unexplained += $7; gain += $8; width += $9; cycles += $10; culprits += $11
	}
	function percent(a, b) { return b > 0 ? sprintf("%.1f", 100 * a / b) : "-" }
	END {
		stall = dynamic + unexplained
		printf "| %s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", title, n, samples,
			percent(known, samples), percent(execution, samples), percent(fixed, samples),
			percent(stall, samples), percent(gain, samples), percent(unexplained, stall),
			cycles > 0 ? sprintf("%.2f", culprits / cycles) : "-", percent(width, stall)
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
