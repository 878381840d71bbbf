#!/bin/bash
# The default rate against what the budget allows at the cost of a sample on this host, as the
# daemon states it and as measured here from outside: how much longer work takes at the default
# rate than without a sampler, by the sample; and the part of it that a spinner sees as stolen.
. "$(dirname "$0")/lib.sh"
rounds=10 seconds=10
options "$@"

start daemon 0
stated=$(daemon_status '"\(.rate) \(.cost) \(.budget)"')
for ((i = 0; i < rounds; i++)); do
	"$programs/spinner" -t "$seconds" -x none= -x daemon="${pid[daemon]}" >>"$work/spun"
	"$programs/work" -s 12 -t "$seconds" -x none= -x daemon="${pid[daemon]}" >>"$work/worked"
done
stop daemon
read -r own_rate cost budget <<<"$stated"

felt() {
	sed -n 's/.*phase=daemon .*slowdown=//p' "$work/worked" | awk -v rate="$own_rate" '{ print $1 / rate }'
}
stolen() {
	sed -n 's/.*share=\([^ ]*\).*/\1/p' "$work/spun" | paste - - |
		awk -v rate="$own_rate" '{ print ($2 - $1) / rate }'
}
header "" value
row "default rate, samples/s on each CPU" "$(figure %.0f "$own_rate")"
row "budget, % of each CPU" "$(calc "$budget * 100")"
row "cost of a sample that the daemon states, us" "$(figure %.2f "$cost * 1e6")"
row "cost of a sample to work, measured from outside, us" "$(felt | spread %.2f 1e6)"
row "stolen from a spinner, us" "$(stolen | spread %.2f 1e6)"
row "rate / (budget / stated cost)" "$(figure %.3f "$own_rate * $cost / $budget")"
row "rate / (budget / measured cost)" \
	"$(felt | spread %.3f "$(calc "$own_rate / $budget")")"
echo
echo "$rounds rounds of $seconds s; median (quartiles)."
goal "at least 0.8 of what the budget allows" "$own_rate * $cost / $budget >= 0.8"
