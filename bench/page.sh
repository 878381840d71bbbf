#!/bin/bash
# How fast the page of `culprit serve` is: opened on a week of a busy machine (synthetic_week), and on
# the calling contexts of a compiler and a game of go, more than a million. -n: rounds. In a real
# Chromium (make browser).
. "$(dirname "$0")/lib.sh"
rounds=5
options "$@"
make -s -C "$root" build/bench/synthetic_week || exit 1
browser=$root/build/browser
"$root/tools/packages" chromium || exit 3
[ -d "$browser/node_modules/playwright-core" ] ||
	npm install --silent --no-audit --no-fund --prefix "$browser" playwright-core || exit 3
"$here/program" --prepare || exit 1
week=$programs/week.db contexts=$programs/contexts.db
[ -e "$week" ] || "$programs/synthetic_week" "$week" || exit 1
if [ ! -e "$contexts" ]; then
	"$programs/inputs" c 400 >"$work/unit.c"
	"$culprit" record -q --context -o "$work/cc1.db" -- "$("$here/program" --files cc1)" -quiet -O2 -o /dev/null "$work/unit.c" &&
		"$culprit" record -q --context -o "$work/gnugo.db" -- "$("$here/program" --files gnugo)" \
			--benchmark 20 --level 10 --seed 1 --quiet >/dev/null 2>&1 &&
		"$culprit" db merge -o "$contexts" "$work/cc1.db" "$work/gnugo.db" || exit 1
fi
nodes=$("$culprit" calls -i "$contexts" --size --json | jq .nodes)
"$culprit" serve "$week" "$contexts" >"$work/address" 2>/dev/null &
others+=($!)
for _ in $(seq 200); do [ -s "$work/address" ] && break; sleep 0.05; done
header "what ($nodes contexts)" "ms, median" least most
while IFS='|' read -r what median least most; do
	row "$what" "$median" "$least" "$most"
	echo "$what|$median" >>"$work/medians"
done < <(node "$here/page.mjs" "$(sed -n 's/^Open //p' "$work/address")" "$browser" "$rounds")
echo
of() { grep -F "$1" "$work/medians" | cut -d'|' -f2 | sort -n | tail -1; }
goal "the page opens on a week in under a second" "$(of 'open the page') < 1000"
goal "everything else answers within 100 ms" \
	"$(grep -v -F open "$work/medians" | cut -d'|' -f2 | sort -n | tail -1) < 100"
