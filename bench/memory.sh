#!/bin/bash
# Memory of the daemon under the mixed load: resident set plus BPF maps and ring buffers, every 5 s
# for -t SECONDS (600). Flat means that the last quarter is no more than 2% above the second.
. "$(dirname "$0")/lib.sh"
seconds=600
options "$@"

start_load 100000
start daemon "$rate"
for ((t = 0; t < seconds; t += 5)); do
	sleep 5
	rss=$(awk '/^VmRSS/ { print $2 * 1024 }' "/proc/${pid[daemon]}/status")
	echo "$((t + 5)) $rss $(daemon_status .maps)"
done >"$work/rows"
stop daemon
stop_load

mega() { # COLUMNS (an awk expression)
	awk "{ print ($1) / 1e6 }" "$work/rows" | summary |
		awk '{ printf "%.2f|%.2f|%.2f", $1, $4, $5 }'
}
quarter() { # N
	awk -v q="$1" -v all="$seconds" '$1 > all * (q - 1) / 4 && $1 <= all * q / 4 { print $2 + $3 }' \
		"$work/rows" | summary | cut -d' ' -f1
}
header "MB" median least most
row "resident set" "$(mega '$2')"
row "maps and ring buffers" "$(mega '$3')"
row "both" "$(mega '$2 + $3')"
row "maps and ring buffers, per CPU" "$(mega "\$3 / $cpus")"
echo
echo "$seconds s at $rate samples/s on each of $cpus CPUs, every 5 s." \
	"Second quarter $(figure %.2f "$(quarter 2) / 1e6") MB," \
	"last quarter $(figure %.2f "$(quarter 4) / 1e6") MB."
goal "under 32 MB" "$(awk '{ print $2 + $3 }' "$work/rows" | sort -g | tail -1) < 32e6"
goal "flat" "$(quarter 4) <= 1.02 * $(quarter 2)"
