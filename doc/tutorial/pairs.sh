#!/bin/bash
# Which of two commands needs less user time? Runs them in turns (A B A B ...) on one CPU and prints
# the median of the pairs' ratios A/B with a 95% confidence interval (bootstrap over the pairs).
#
#	pairs.sh [-n PAIRS] [-c CPU] 'COMMAND A' 'COMMAND B'
pairs=40 cpu=1
while getopts n:c: option; do
	case $option in
	n) pairs=$OPTARG ;;
	c) cpu=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# = 2 ] || { echo "usage: pairs.sh [-n PAIRS] [-c CPU] 'COMMAND A' 'COMMAND B'" >&2; exit 2; }

user_time() { # COMMAND
	local TIMEFORMAT=%U
	{ time taskset -c "$cpu" bash -c "$1" >/dev/null 2>&3; } 3>&2 2>&1 ||
		{ echo "failed: $1" >&2; exit 1; }
}

for ((i = -1; i < pairs; i++)); do
	a=$(user_time "$1") && b=$(user_time "$2") || exit 1
	# The first pair only warms the caches.
	[ $i -lt 0 ] || echo "$a $b"
done | awk '
function sort(x, n,    i, j, t) {
	for (i = 2; i <= n; i++) {
		t = x[i]
		for (j = i - 1; j > 0 && x[j] > t; j--)
			x[j + 1] = x[j]
		x[j + 1] = t
	}
}
function median(x, n) {
	sort(x, n)
	return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}
{ a[NR] = $1; b[NR] = $2; ratio[NR] = $1 / $2 }
END {
	if (!NR)
		exit 1
	srand(1)
	rounds = 2000
	for (r = 1; r <= rounds; r++) {
		for (i = 1; i <= NR; i++)
			drawn[i] = ratio[1 + int(rand() * NR)]
		medians[r] = median(drawn, NR)
	}
	sort(medians, rounds)
	printf "%d pairs: A %.3f s, B %.3f s (medians); A/B - 1 = %+.1f%% [%+.1f%%, %+.1f%%]\n",
		NR, median(a, NR), median(b, NR), 100 * (median(ratio, NR) - 1),
		100 * (medians[int(rounds * 0.025)] - 1), 100 * (medians[int(rounds * 0.975) + 1] - 1)
}'
