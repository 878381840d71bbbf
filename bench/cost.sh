#!/bin/bash
# What a sample costs, as in Table 4 of the DCPI paper: the BPF program's mean run time (from
# kernel.bpf_stats_enabled), how often it finds its entry, and the daemon's CPU time by the sample.
# Two synthetic loads tell a hit from a miss: one loop, and four million different addresses. The
# kernel's own two clock readings are in these times; the empty program shows how much they take.
# The interpreter and pairs of samples are off, but for the last of the loads.
. "$(dirname "$0")/lib.sh"
rounds=3 seconds=20
options "$@"
restore_stats=$(sysctl -n kernel.bpf_stats_enabled)
sysctl -q kernel.bpf_stats_enabled=1 || die "kernel.bpf_stats_enabled cannot be set"

# Prints "run_ns runs" over the perf-event programs of a process.
bpf_time() { # PID
	awk '/^prog_type:/ { ours = $2 == 7 } /^prog_id:/ { id = $2 }
	/^run_time_ns:/ && ours { ns[id] = $2 } /^run_cnt:/ && ours { n[id] = $2 }
	END { for (i in ns) { a += ns[i]; b += n[i] } printf "%.0f %.0f\n", a, b }' \
		/proc/"$1"/fdinfo/* 2>/dev/null
}

begin_load() { # NAME
	case $1 in
	mixed | edges) start_load 100000 ;;
	short) start_load 100000 --short 500 ;;
	*)
		for ((c = 0; c < cpus; c++)); do
			taskset -c "$c" "$programs/pcs" "$1" 100000 &
			others+=($!)
		done
		;;
	esac
}

# One measurement: "NAME ns_a_sample misses_a_sample daemon_us_a_sample samples".
measure() { # LOAD
	local ns0 n0 ns1 n1 c0 c1 s0 s1
	local -a options=(--no-edges)
	[ "$1" != edges ] || options=()
	begin_load "$1"
	start daemon "$rate" "${options[@]}"
	sleep 2
	"$culprit" daemon flush --db "$work/daemon.db" >/dev/null
	read -r ns0 n0 < <(bpf_time "${pid[daemon]}")
	c0=$(cpu_time "${pid[daemon]}")
	s0=$(daemon_status '"\(.samples) \(.hits)"')
	sleep "$seconds"
	"$culprit" daemon flush --db "$work/daemon.db" >/dev/null
	read -r ns1 n1 < <(bpf_time "${pid[daemon]}")
	c1=$(cpu_time "${pid[daemon]}")
	s1=$(daemon_status '"\(.samples) \(.hits)"')
	stop daemon
	stop_load
	echo "$1 $ns0 $n0 $ns1 $n1 $c0 $c1 $s0 $s1" | awk '{ n = $10 - $8; if (!n) n = 1
		print $1, ($4 - $2) / ($5 - $3 ? $5 - $3 : 1), 1 - ($11 - $9) / n, ($7 - $6) / n * 1e6, n }'
}

for ((i = 0; i < rounds; i++)); do
	for name in $(rotate $i hits misses mixed short edges); do
		measure "$name"
	done
	start empty "$rate"
	sleep 2
	stop empty
	line=$(cat "$work/empty.out")
	echo "empty $(calc "$(value run_ns "$line") / $(value runs "$line")") 0 0 0"
done >"$work/rows"

column() { # NAME COLUMN
	awk -v name="$1" -v c="$2" '$1 == name { print $c }' "$work/rows"
}
middle() { # NAME COLUMN
	column "$1" "$2" | summary | cut -d' ' -f1
}

header load "misses, % of samples" "BPF run time, ns a sample" "daemon, us a sample" samples
for name in hits misses mixed short edges; do
	label=$name
	[ "$name" != edges ] || label="mixed, with edges and pairs"
	row "$label" "$(column $name 3 | spread %.2f 100)" "$(column $name 2 | spread %.0f)" \
		"$(column $name 4 | spread %.3f)" "$(column $name 5 | spread %.0f)"
done
row "empty program" "" "$(column empty 2 | spread %.0f)" "" ""
echo
# Two loads with different miss rates are two equations: mean = hit (1 - m) + miss m.
calc_pair="$(middle hits 2) $(middle hits 3) $(middle misses 2) $(middle misses 3)"
echo "$calc_pair" | awk '{ d = $4 - $2; if (d == 0) d = 1
	miss = ($3 * (1 - $2) - $1 * (1 - $4)) / d; hit = ($1 * $4 - $3 * $2) / d
	printf "A hit takes %.0f ns, a miss with eviction %.0f ns.\n", hit, miss }'
echo "$rounds rounds of $seconds s; median (quartiles); $rate samples/s on each of $cpus CPUs."
goal "BPF run time under 0.4 us a sample" "$(middle mixed 2) < 400"
