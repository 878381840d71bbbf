#!/bin/bash
# Call paths from the height of the stack (record -g): how many samples have one, in the first run of a
# program and in the third, when two have taught the map; and how often paths were right where stacks
# were looked at at random. Then what a sample costs with them and without, on the mixed load.
. "$(dirname "$0")/lib.sh"
rounds=3 seconds=10 rate=2000
options "$@"
"$here/program" --prepare || exit 1

# Takes what the last line of a recording says: "known ranked stacks judged right".
said() { # LOG
	sed -n 's/.*call paths: \([0-9.]*\)% of the samples, \([0-9.]*\)% as.*; \([0-9]*\) stacks looked at\(, \([0-9]*\) of them at random: \([0-9.]*\)%\)*.*/\1 \2 \3 \5 \6/p' "$1"
}

header program samples "known, %" "likeliest of several, %" stacks "third run: known, %" "several, %" \
	"looked at at random" "right before, %"
for name in $("$here/program" --names); do
	rm -f "$work"/p.db*
	first='' third=''
	for run in 1 2 3; do
		"$here/program" "$name" "$culprit" record -g -F "$rate" -o "$work/p.db" --
		cp "$programs/accuracy/$name.err" "$work/log"
		[ $run != 1 ] || first=$(said "$work/log")
		third=$(said "$work/log")
	done
	samples=$(sed -n 's/.*: \([0-9]*\) samples,.*/\1/p' "$work/log")
	read -r known ranked stacks _ <<<"$first"
	read -r known3 ranked3 _ judged right <<<"$third"
	row "$name" "$samples" "$known" "$ranked" "$stacks" "$known3" "$ranked3" "${judged:-0}" "${right:--}"
done

restore_stats=$(sysctl -n kernel.bpf_stats_enabled)
sysctl -q kernel.bpf_stats_enabled=1 || die "kernel.bpf_stats_enabled cannot be set"

# Mean run time of the sampler's program over a recording, in ns.
price() { # [OPTION...]
	local ns
	"$culprit" record -a --no-edges -F 5200 -o "$work/c.db" "$@" -- sleep "$seconds" >/dev/null 2>&1 &
	sleep "$(calc "$seconds - 1")"
	ns=$(awk '/^prog_type:/ { ours = $2 == 7 } /^run_time_ns:/ && ours { a += $2 } /^run_cnt:/ && ours { b += $2 }
		END { if (b) print a / b }' /proc/$!/fdinfo/* 2>/dev/null)
	wait $!
	rm -f "$work"/c.db*
	echo "$ns"
}
start_load 100000
for ((i = 0; i < rounds; i++)); do
	price >>"$work/plain"
	price -g >>"$work/paths"
done
stop_load
echo
echo "A sample's price: $(spread %.0f <"$work/plain") ns without, $(spread %.0f <"$work/paths") ns with call paths, the first $seconds s of a recording each time; $rounds rounds, median (quartiles)."
