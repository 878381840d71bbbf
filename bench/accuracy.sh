#!/bin/bash
# How near estimated frequencies are to exact ones (the paper's 6.1.5): each of the twelve programs
# is counted by callgrind once (kept under build/bench/accuracy) and recorded for -t seconds of CPU
# time at -r samples a second; what 'export -f counts' then says is compared (score.c). PROGRAMS and
# RECORDINGS: see recordings.sh. COUNTS=exact counts with 'record --exact' instead: in seconds, and
# without valgrind.
. "$(dirname "$0")/lib.sh"
seconds=25
options "$@"
make -s -C "$root" build/bench/exact_counts build/bench/score || exit 1
. "$here/recordings.sh"

count() { # NAME
	rm -f "$work/counted.db"
	"$here/program" "$1" "$culprit" record -q --exact -o "$work/counted.db" -- &&
		"$culprit" export -i "$work/counted.db" -f counts >"$inputs/$1.counted" ||
		die "$1 cannot be counted: $(tail -1 "$inputs/$1.err")"
}

for name in "${names[@]}"; do
	truth=$inputs/$name.counts
	if [ "${COUNTS:-}" = exact ]; then
		truth=$inputs/$name.counted
		count "$name"
	else
		simulate "$name" callgrind counts "$programs/exact_counts" --collect-jumps=yes
	fi
	record "$name"
	"$culprit" export -i "$recordings/$name.db" -f counts >"$work/estimated" || exit 1
	echo "program=$name $("$programs/score" -n "$(repeats "$name")" "$truth" \
		"$work/estimated" "$recordings/$name.db")" >>"$work/ours"
	echo "program=$name $("$programs/score" "$truth" - "$recordings/$name.db")" \
		>>"$work/simple"
done
rows=$work/ours

figures() { # KEY [NAME]: in percent
	sed -n "s/^program=${2:-.*} .*\b$1=\([^ ]*\).*/\1/p" "$rows" | grep -v nan |
		awk '{ print 100 * $1 }'
}
mean() { # KEY [NAME]
	figures "$@" | awk '{ s += $1 } END { if (NR) printf "%.0f", s / NR; else print "-" }'
}
line() { # TITLE [NAME]
	local samples
	samples=$(sed -n "s/^program=${2:-.*} samples=\([0-9]*\).*/\1/p" "$rows" |
		awk '{ s += $1 } END { printf "%.0f", s / NR }')
	row "$1" "$samples" "$(mean compared $2)" \
		"$(mean relative5 $2)/$(mean relative10 $2)/$(mean relative15 $2)" \
		"$(mean relative_overlap $2)" "$(mean relative_edges $2)" "$(mean claimed $2)" \
		"$(mean absolute5 $2)/$(mean absolute10 $2)/$(mean absolute15 $2)" \
		"$(mean absolute_edges $2)" "$(mean high $2)" "$(mean high10 $2)"
}

header "" "samples" "compared, %" "relative within 5/10/15%" "overlap" "edges within 10%" \
	"scale claimed, %" "of these, within 5/10/15%" "edges within 10%" "high confidence, %" \
	"of these, within 10%"
for name in "${names[@]}"; do
	line "$name" "$name"
done
line "mean" ""
rows=$work/simple
line "mean, samples over bytes" ""
rows=$work/ours
echo
echo "About $seconds s of CPU time at $rate samples/s each. Shares of samples; of executions for edges."
goal "relative within 5/10/15%: 60/75/82" \
	"$(mean relative5) >= 60 && $(mean relative10) >= 75 && $(mean relative15) >= 82"
goal "relative edges within 10%: 70" "$(mean relative_edges) >= 70"
goal "half of the samples have a scale, within 5/10/15%: 35/55/65" "$(mean claimed) >= 50 &&
	$(or_zero "$(mean absolute5)") >= 35 && $(or_zero "$(mean absolute10)") >= 55 &&
	$(or_zero "$(mean absolute15)") >= 65"
goal "high confidence within 10%: 95" "$(or_zero "$(mean high10)") >= 95"
