#!/bin/bash
# Errors of hot lists of 16 entries on streams of known contents, both algorithms; what adding
# costs.
. "$(dirname "$0")/lib.sh"
rounds=20 adds=20000000
while getopts n:t: option; do
	case $option in
	n) rounds=$OPTARG ;;
	t) adds=$((OPTARG * 1000000)) ;;
	*) exit 2 ;;
	esac
done
make -s -C "$root" build/bench/hotlists || exit 1
"$programs/hotlists" errors "$rounds" >"$work/errors" || exit 1
"$programs/hotlists" cost "$adds" >"$work/cost" || exit 1

# Columns of errors: stream, length, algorithm, pieces, hot values, missing, then mean and max error
# of the estimate and of low, middle and high bound taken for it, values, outside.
echo "Errors in points, mean (max) over values with a true share over 10%; -N: N were not found."
echo
header "stream" "space-saving, 200 values" "counting" "space-saving, 50,000" "counting" \
	"space-saving, 20 lists of 2,500 merged" "counting"
awk -F'\t' '
function cell(    missing) {
	missing = $6 ? sprintf(" -%d", $6) : ""
	return $5 ? sprintf("%.2f (%.2f)%s", $7, $8, missing) : "no such value"
}
!($1 in seen) { seen[$1] = 1; order[++n] = $1 }
{ c[$1, $2, $4, $3] = cell() }
END {
	for (i = 1; i <= n; i++) {
		s = order[i]
		print "| " s " | " c[s, 200, 1, "space-saving"] " | " c[s, 200, 1, "counting"] " | " \
			c[s, 50000, 1, "space-saving"] " | " c[s, 50000, 1, "counting"] " | " \
			c[s, 50000, 20, "space-saving"] " | " c[s, 50000, 20, "counting"] " |"
	}
}' "$work/errors"

echo
header "over all streams" "values over 10%" "not found" "mean error" "max error" \
	"had low bounds been the estimate" "the middle" "high bounds" "of all values, outside the bounds"
awk -F'\t' '
{
	k = $2 SUBSEP $3 SUBSEP $4
	if (!(k in hot))
		order[++n] = k
	hot[k] += $5; missing[k] += $6; values[k] += $15; outside[k] += $16
	for (i = 0; i < 4; i++) {
		sum[k, i] += $5 * $(7 + 2 * i)
		if ($(8 + 2 * i) > max[k, i] + 0) max[k, i] = $(8 + 2 * i)
	}
}
function both(k, i) { return sprintf("%.3f (%.2f)", sum[k, i] / hot[k], max[k, i]) }
END {
	for (i = 1; i <= n; i++) {
		k = order[i]
		split(k, part, SUBSEP)
		printf "| %s, %d values%s | %d | %d | %.3f | %.2f | %s | %s | %s | %.4f%% |\n", part[2],
			part[1], (part[3] > 1 ? " in " part[3] " lists" : ""), hot[k], missing[k],
			sum[k, 0] / hot[k], max[k, 0], both(k, 1), both(k, 2), both(k, 3),
			100 * outside[k] / values[k]
	}
}' "$work/errors"

echo
header "" "ns a value" "CPU at 100,000 values/s, %" "keys" "memory, MB" "packed, KB" "packing, ms"
while IFS=$'\t' read -r name _ ns keys megabytes packed milliseconds; do
	row "$name" "$ns" "$(figure %.2f "$ns * 1e5 / 1e9 * 100")" "$keys" "$megabytes" \
		"$(figure %.0f "$packed / 1e3")" "$milliseconds"
done <"$work/cost"
echo
echo "$rounds streams of each kind; $adds values for the cost."
goal "every value over 10% of 200 is found, its error under 5 points" "$(awk -F'\t' '
	$2 == 200 && $3 == "space-saving" && ($6 || $8 >= 5) { bad++ } END { print bad + 0 }' \
	"$work/errors") == 0"
goal "100,000 values a second in under 1% of a CPU" "$(head -1 "$work/cost" | cut -f3) < 100"
