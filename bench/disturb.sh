#!/bin/bash
# How much of the data caches a sample takes away, by what is done with it: nothing (the empty event),
# counting it, interpreting 16 or 64 instructions from it. See disturb.c; nothing else runs.
. "$(dirname "$0")/lib.sh"
rounds=7 seconds=3
options "$@"
make -s -C "$root" build/bench/bursts build/bench/disturb || exit 1

start_bursts() { # NAME
	"$programs/bursts" -x -n "${1#bursts-}" -F "$rate" >/dev/null &
	pid[$1]=$!
	sleep 1.5
}
for ((i = 0; i < rounds; i++)); do
	for name in $(rotate $i none empty culprit bursts-16 bursts-64); do
		gap=5
		case $name in
		none) gap=1 ;;
		culprit) start "$name" "$rate" --no-edges ;;
		bursts-*) start_bursts "$name" ;;
		*) start "$name" "$rate" ;;
		esac
		for level in 1 2; do
			echo "$name $level $("$programs/disturb" -t "$seconds" -g $gap -l $level)"
		done
		stop_all
	done
done >"$work/rows"

lost() { # NAME LEVEL
	sed -n "s/^$1 $2 .* lost=\([^ ]*\).*/\1/p" "$work/rows"
}
above() { # NAME LEVEL
	paste <(lost "$1" "$2") <(lost empty "$2") | awk '{ print $1 - $2 }'
}
header "" "first level, % gone" "above the empty event" "second level, % gone" "above the empty event"
for name in none empty culprit bursts-16 bursts-64; do
	row "$name" "$(lost "$name" 1 | spread %.1f 100)" "$(above "$name" 1 | spread %.1f 100)" \
		"$(lost "$name" 2 | spread %.2f 100)" "$(above "$name" 2 | spread %.2f 100)"
done
echo
echo "After one interrupt; none: the ticks of the machine itself. $rounds rounds of $seconds s;" \
	"median (quartiles)."
