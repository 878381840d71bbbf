#!/bin/bash
# How long `top` takes, from a minute of samples and from a synthetic week (480 images, 5 million
# addresses); files in the page cache.
. "$(dirname "$0")/lib.sh"
rounds=20 seconds=60
options "$@"

start_load 100000
start culprit "$rate"
sleep "$seconds"
stop culprit
stop_load
make -s -C "$root" build/bench/synthetic_week || exit 1
"$programs/synthetic_week" "$work/week.db" >"$work/week.out" || die "$(cat "$work/week.out")"

timing() { # FILE OPTION...
	local t0 t1 i
	for ((i = 0; i <= rounds; i++)); do
		t0=$EPOCHREALTIME
		"$culprit" top -i "$@" >/dev/null || die "top failed"
		t1=$EPOCHREALTIME
		[ $i = 0 ] || echo $((${t1/./} - ${t0/./}))
	done
}
header "" "MB" "top, ms" "top --json, ms" "top --by image, ms" "top --by process, ms"
for name in culprit week; do
	for by in "" --json "--by image" "--by process"; do
		# shellcheck disable=SC2086
		timing "$work/$name.db" $by >"$work/$name$by.times"
	done
	row "$name" "$(figure %.2f "$(stat -c %s "$work/$name.db") / 1e6")" \
		"$(spread %.1f 1e-3 <"$work/$name.times")" \
		"$(spread %.1f 1e-3 <"$work/$name--json.times")" \
		"$(spread %.1f 1e-3 <"$work/$name--by image.times")" \
		"$(spread %.1f 1e-3 <"$work/$name--by process.times")"
done | sed "s/^| culprit/| $seconds s of samples/; s/^| week/| synthetic week/"
echo
echo "$rounds runs each; median (quartiles)."
goal "0.1 s for a minute of samples" "$(summary <"$work/culprit.times" | cut -d' ' -f1) <= 1e5"
goal "1 s for a week" "$(summary <"$work/week.times" | cut -d' ' -f1) <= 1e6"
