#!/bin/bash
# What profiles are worth to who uses them: programs from source, made faster by llvm-bolt with
# samples of perf (without branch records, perf2bolt -nl), with samples of culprit, and with exact
# counts; and by clang with the last two. The same job trains and is timed, in turns, as user CPU time.
# -n: rounds; -r: samples a second; PROGRAMS: which of bench/sources (default: all). What was built is used
# again: build/bench/compilers.
. "$(dirname "$0")/lib.sh"
rounds=9 rate=4000
options "$@"
"$root/tools/packages" bolt-19 clang-19 llvm-19 || exit 3
"$here/sources" --prepare || exit 1
bolt=$(realpath "$(command -v llvm-bolt-19)") # it looks for its parts beside itself
perf2bolt=$(dirname "$bolt")/perf2bolt
into=$programs/compilers
mkdir -p "$into"
read -ra chosen <<<"${PROGRAMS:-$("$here/sources" --names | tr '\n' ' ')}"
log=$into/log
: >"$log"

job() { # NAME PROGRAM: three times, so that there are samples enough
	for _ in 1 2 3; do "$here/sources" --run "$1" "$2"; done
}
export -f job
export here

profile() { # NAME PROGRAM: to PROGRAM.{perf,sampled,exact}
	rm -f "$2".{perf,sampled.db,exact.db}
	"$perf" record -q -e cpu-clock -F "$rate" -o "$2.perf" -- bash -c 'job "$@"' - "$1" "$2" &&
		"$culprit" record -q -F "$rate" -o "$2.sampled.db" -- bash -c 'job "$@"' - "$1" "$2" &&
		"$culprit" record -q --exact --libs "$2" -o "$2.exact.db" -- "$here/sources" --run "$1" "$2"
} >>"$log" 2>&1

with_bolt() { # KIND PROGRAM OPTION...: PROGRAM.KIND; -: not possible
	"$bolt" "$2" -o "$2.$1" --reorder-blocks=ext-tsp --reorder-functions=hfsort --split-functions \
		--split-all-cold --icf=1 "${@:3}" >>"$log" 2>&1 || rm -f "$2.$1"
}

for_bolt() { # NAME
	local p=$into/$1
	"$here/sources" --build "$1" "$p" gcc -O2 -g -fno-reorder-blocks-and-partition -Wl,-q || die "cannot build $1"
	profile "$1" "$p" || die "$1: see $log"
	"$perf2bolt" -nl -p "$p.perf" -o "$p.fdata" "$p" >>"$log" 2>&1 || die "perf2bolt: see $log"
	with_bolt by-perf "$p" --data "$p.fdata"
	for kind in sampled exact; do
		"$culprit" export -f bolt --image "$p" -i "$p.$kind.db" -o "$p.$kind.pa" >>"$log" 2>&1 || die "$1: see $log"
		with_bolt "by-$kind" "$p" --pa -p "$p.$kind.pa"
	done
}

for_clang() { # NAME
	local p=$into/$1.clang
	"$here/sources" --build "$1" "$p" clang-19 -O2 -gmlt -fdebug-info-for-profiling || die "cannot build $1"
	profile "$1" "$p" || die "$1: see $log"
	for kind in sampled exact; do
		"$culprit" export -f llvm-sample --image "$p" -i "$p.$kind.db" -o "$p.$kind.prof" >>"$log" 2>&1 || die "$1: see $log"
		"$here/sources" --build "$1" "$p.by-$kind" clang-19 -O2 -gmlt -fdebug-info-for-profiling \
			-fprofile-sample-use="$p.$kind.prof" || die "cannot build $1 with a profile"
	done
}

seconds_of() { # FILE COMMAND...
	local TIMEFORMAT=%U
	{ time "${@:2}" >"$work/printed" 2>/dev/null; } 2>>"$1"
}

# A profile must not change what a program does.
measure() { # NAME PROGRAM KIND...
	local round kind said
	for round in $(seq "$rounds"); do
		for kind in $(rotate "$round" "${@:3}"); do
			local file=$2.$kind
			[ "$kind" != plain ] || file=$2
			[ -x "$file" ] || continue
			seconds_of "$work/$(basename "$2").$kind" "$here/sources" --run "$1" "$file"
			said=$(cat "$work/printed")
			[ "$said" = "$(cat "$work/$(basename "$2").said" 2>/dev/null || echo "$said")" ] ||
				die "$file: does something else"
			echo "$said" >"$work/$(basename "$2").said"
		done
	done
}

gain() { # FILE BASE: of the medians, percent of time saved
	calc "100 * (1 - $(summary <"$1" | cut -d' ' -f1) / $(summary <"$2" | cut -d' ' -f1))"
}

table() { # TITLE SUFFIX KIND...: and the mean gains to $work/mean.KIND
	local title=$1 suffix=$2 name kind
	shift 2
	header "$title" "plain, s" "${@/#by-/}"
	for name in "${chosen[@]}"; do
		local cells=() base=$work/$name$suffix.plain
		for kind in "$@"; do
			[ -e "$work/$name$suffix.$kind" ] || { cells+=(cannot); continue; }
			gain "$work/$name$suffix.$kind" "$base" >"$work/one"
			{ cat "$work/one"; echo; } >>"$work/gains$suffix.$kind"
			cells+=("$(figure %+.1f%% "$(cat "$work/one")")")
		done
		row "$name" "$(spread %.3f <"$base")" "${cells[@]}"
	done
	local means=()
	for kind in "$@"; do
		awk '{ s += log(1 - $1 / 100) } END { print 100 * (1 - exp(s / NR)) }' "$work/gains$suffix.$kind" >"$work/mean$suffix.$kind"
		means+=("$(figure %+.2f%% "$(cat "$work/mean$suffix.$kind")")")
	done
	row "geometric mean" "" "${means[@]}"
	echo
}

for name in "${chosen[@]}"; do
	[ -e "$into/$name.done" ] || { for_bolt "$name" && for_clang "$name" && touch "$into/$name.done"; }
done
for name in "${chosen[@]}"; do
	measure "$name" "$into/$name" plain by-perf by-sampled by-exact
	measure "$name" "$into/$name.clang" plain by-sampled by-exact
done
echo "Time saved by a profile:"
echo
table "llvm-bolt, gcc -O2" "" by-perf by-sampled by-exact
table "clang -O2 -fprofile-sample-use" .clang by-sampled by-exact
m() { cat "$work/mean$1"; }
goal "BOLT: samples of culprit beat those of perf" "$(m .by-sampled) > $(m .by-perf)"
goal "BOLT: they gain 80% of what exact counts gain" "$(m .by-sampled) >= 0.8 * $(m .by-exact)"
goal "clang: samples gain 80% of what exact counts gain" "$(m .clang.by-sampled) >= 0.8 * $(m .clang.by-exact)"
