#!/bin/bash
# Figures 6, 7 and 8 of Hirzel and Chilimbi (Bursty Tracing, FDDO 2001) for the programs of
# bench/program: what checks cost by where they stand; how far streams found in bursts agree with
# those of a whole trace by nCheck:nInstr; and the same by where checks stand.
#
#   figures.sh [-n ROUNDS] [6] [6i] [7] [8] [medium] [PROGRAM...]
#
# Figure 6 is user and system time of the usual jobs, the least of some rounds in turns, over the
# same of the program as it is; 6i is the same in instructions (callgrind) of short jobs, which do not
# depend on who else uses the machine. Figures 7 and 8 are of short jobs (bench/program --short), whose
# whole traces can be had; a program that makes more than MOST references there is not shown. With
# "medium" these are of longer ones (bench/program --medium). HEAT is the share of all references
# that a hot stream has at least (0.001).
. "$(dirname "$0")/lib.sh"
rounds=3
options "$@"
shift $((OPTIND - 1))
figures= names= size=--short
for word; do
	case $word in
	medium) size=--medium ;;
	[678] | 6i) figures+=" $word" ;;
	*) names+=" $word" ;;
	esac
done
: "${figures:=6 7 8}" "${names:=$("$here/program" --names)}"
"$here/program" --prepare && make -s -C "$root" build/bench/stream_overlaps || exit 1
export XDG_CACHE_HOME=$programs/cache
most=${MOST:-200000000}

# The paper's names of where checks stand, and what record calls that.
variants=(orig EL EC EN L4 L10 LN EC+L4)
declare -A checks=(
	[orig]="--checks=all --boring=0" [EL]="--checks=no-leaves --boring=0"
	[EC]="--checks=cycles --boring=0" [EN]="--checks=none --boring=0"
	[L4]="--checks=all --boring=4" [L10]="--checks=all --boring=10" [LN]="--checks=all --boring=all"
	[EC+L4]="--checks=cycles --boring=4")
# The paper's pairs by sampling rate, then longer bursts at its lowest; and what a hot stream has.
heat=${HEAT:-0.001}
pairs=(20:1 200:10 1000:50 100:1 1000:10 5000:50 200:1 2000:10 10000:50 40000:200 100000:500 200000:1000 400000:2000 1000000:5000)


said() { # NAME: what the job last wrote to standard error
	echo "$programs/accuracy/$1.err"
}

record() { # DATABASE [--short|--medium] NAME OPTION...
	local database=$1 size=
	[[ $2 != --* ]] || { size=$2; shift; }
	local name=$2
	shift 2
	rm -f "$database" "$database"-*
	"$here/program" $size "$name" "$culprit" record --no-objects -o "$database" "$@" -- ||
		die "$name $*: $(tail -1 "$(said "$name")")"
}

# ---- 6: checks ----

time_plain() { # NAME
	"$here/program" "$1" bash -c 'TIMEFORMAT="%U %S"; time "$@"' timer || die "$1 failed"
	tail -1 "$(said "$1")" | awk '{ print $1 + $2 }'
}

time_bursts() { # NAME OPTION...
	record "$work/timed" "$@"
	sed -n 's/.* took \([0-9.]*\) s of user time, \([0-9.]*\) s of system time.*/\1 \2/p' "$(said "$1")" |
		awk '{ print $1 + $2 }'
}

least() { sort -g "$1" | head -1; }

geometric() { # of percentages
	awk '{ s += log(1 + $1 / 100) } END { printf "%.1f", 100 * (exp(s / NR) - 1) }'
}

figure_6() {
	local name round variant plain cell
	for round in $(seq 0 "$rounds"); do # the first makes the edited copies
		for name in $names; do
			for variant in $(rotate "$round" plain "${variants[@]}" sampled); do
				case $variant in
				plain) time_plain "$name" ;;
				# shellcheck disable=SC2086
				sampled) time_bursts "$name" --bursts ${checks[EC+L4]} ;;
				# shellcheck disable=SC2086
				*) time_bursts "$name" --bursts=never ${checks[$variant]} ;;
				esac >"$work/seconds"
				[ "$round" = 0 ] || cat "$work/seconds" >>"$work/6.$name.$variant"
			done
		done
	done
	echo "Figure 6: overhead of checks that never begin a burst, %; and of bursts, 100000:500 (EC+L4)"
	echo
	header program "plain, s" "${variants[@]}" "EC+L4, bursts"
	for name in $names; do
		plain=$(least "$work/6.$name.plain")
		local cells=()
		for variant in "${variants[@]}" sampled; do
			cell=$(figure %.1f "100 * ($(least "$work/6.$name.$variant") / $plain - 1)")
			cells+=("$cell")
			echo "$cell" >>"$work/6.$variant"
		done
		row "$name" "$plain" "${cells[@]}"
	done
	row "geometric mean" "" $(for variant in "${variants[@]}" sampled; do geometric <"$work/6.$variant"; echo; done)
	echo
	goal "all checks under 10% each" "$(sort -g "$work/6.orig" | tail -1) < 10"
	goal "EC+L4 under 5% each, 3% in the mean" \
		"$(sort -g "$work/6.EC+L4" | tail -1) < 5 && $(geometric <"$work/6.EC+L4") < 3"
	goal "bursts of 0.5%: at most 2 points more in the mean" \
		"$(geometric <"$work/6.sampled") <= $(geometric <"$work/6.EC+L4") + 2"
	echo
}

# ---- 6i: the same by counting ----

# As the cache calls what was edited so.
declare -A kept=([orig]=0-0 [EL]=1-0 [EC]=2-0 [EN]=3-0 [L4]=0-4 [L10]=0-10 [LN]=0-4294967295 [EC+L4]=2-4)

# The job's program and what it is linked with, and, of a variant, the edited copies: "COPY FILE" each.
copies() { # NAME VARIANT
	local program file id copy
	"$here/program" --short "$1" bash -c 'command -v "$1" >&2' bash
	program=$(realpath "$(tail -1 "$(said "$1")")")
	for file in "$program" $(ldd "$program" | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p'); do
		file=$(realpath "$file")
		id=$(readelf -n "$file" 2>/dev/null | sed -n 's/.*Build ID: //p')
		# The newest: other builds may have left theirs.
		copy=$(ls -t "$XDG_CACHE_HOME"/culprit/edited/*/"${id:-none}-bursts-${kept[$2]}-refs-0/image" 2>/dev/null | head -1)
		[ -z "$copy" ] || echo "$copy $file"
	done
}

# A copy that finds no file of bursts checks and records nothing.
instructions() { # NAME [COPY FILE]...
	local name=$1
	shift
	"$here/program" --short "$name" "$root/tools/bind" "$@" -- valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null || die "$name: $(tail -1 "$(said "$name")")"
	sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$(said "$name")" | tail -1
}

figure_6i() {
	local name variant plain cell
	echo "Figure 6, counted: instructions of short jobs that check and never record, over the program as it is, %"
	echo
	header program "plain, millions" "${variants[@]}"
	for name in $names; do
		plain=$(instructions "$name")
		local cells=()
		for variant in "${variants[@]}"; do
			# shellcheck disable=SC2086
			record "$work/counted" --short "$name" --bursts=never ${checks[$variant]}
			# shellcheck disable=SC2046
			cell=$(figure %.1f "100 * ($(instructions "$name" $(copies "$name" "$variant")) / $plain - 1)")
			cells+=("$cell")
			echo "$cell" >>"$work/6i.$variant"
		done
		row "$name" "$(figure %.1f "$plain / 1e6")" "${cells[@]}"
	done
	row "geometric mean" "" $(for variant in "${variants[@]}"; do geometric <"$work/6i.$variant"; echo; done)
	echo
}

# ---- 7 and 8: streams ----

# The whole trace, of all references, and of what EC+L4 records: sampled ones are compared with both.
whole() { # NAME; false: too much of it
	local name=$1 n
	[ ! -e "$work/$name.whole" ] || { [ ! -e "$work/$name.left" ]; return; }
	# shellcheck disable=SC2086
	(record "$work/$name.whole" $size "$name" --bursts=all ${checks[orig]} &&
		record "$work/$name.same" $size "$name" --bursts=all ${checks[EC+L4]}) || {
		echo "$name: its whole trace cannot be had" | tee "$work/$name.left" >>"$work/left_out"
		touch "$work/$name.whole"
		return 1
	}
	n=$(sed -n 's/.*bursts: [0-9]*, with \([0-9]*\) .*/\1/p' "$(said "$name")")
	[ "${n:-0}" -gt 0 ] && [ "$n" -le "$most" ] && return
	echo "$name: $n references, not looked at" | tee "$work/$name.left" >>"$work/left_out"
	return 1
}

overlaps() { # NAME KIND DATABASE...: in per cent, a line each
	local name=$1 kind=$2
	shift 2
	"$programs/stream_overlaps" 10,40 "$heat" "$work/$name.$kind" "$@" | tail -n +2 |
		sed 's/.*overlap=//' | awk '{ printf "%.1f\n", 100 * $1 }'
}

streams_figure() { # NUMBER TITLE KIND COLUMN...: expects sample() to make the database of a column
	local number=$1 title=$2 kind=$3 name column
	shift 3
	echo "Figure $number: $title"
	echo
	header program "$@"
	for name in $names; do
		whole "$name" || continue
		local databases=()
		for column; do
			databases+=("$work/$name.$number.$column")
			[ -e "$work/$name.$number.$column" ] ||
				sample_$number "$work/$name.$number.$column" "$name" "$column"
		done
		overlaps "$name" "$kind" "${databases[@]}" >"$work/overlaps"
		paste -sd' ' "$work/overlaps" >>"$work/$number.$kind"
		# shellcheck disable=SC2046
		row "$name" $(cat "$work/overlaps")
	done
	# shellcheck disable=SC2046
	row mean $(awk '{ for (i = 1; i <= NF; i++) s[i] += $i } END { for (i = 1; i <= NF; i++) printf "%.1f ", s[i] / NR }' "$work/$number.$kind")
	echo
}

sample_7() { # DATABASE NAME PAIR
	# shellcheck disable=SC2086
	record "$1" $size "$2" --bursts="$3" ${checks[EC+L4]}
}

sample_8() { # DATABASE NAME VARIANT
	# shellcheck disable=SC2086
	record "$1" $size "$2" --bursts=1000:50 ${checks[$3]}
}

figure_7() {
	streams_figure 7 "overlap with the streams of the whole trace by nCheck:nInstr (EC+L4), %" whole "${pairs[@]}"
	streams_figure 7 "the same with the whole trace of what EC+L4 records, %" same "${pairs[@]}"
	awk -v pairs="${pairs[*]:6}" '{ for (i = 7; i <= NF; i++) s[i] += $i } END {
		split(pairs, name, " ")
		for (i = 7; i <= NF; i++) if (s[i] > s[best]) best = i
		print "The best pair at a rate of 0.5%: " name[best - 6] ", " s[best] / NR "%"
		print (s[best] / NR >= 80 ? "goal reached" : "goal MISSED") ": 80% there in the mean" }' "$work/7.same"
	echo
}

figure_8() {
	streams_figure 8 "overlap with the streams of the whole trace at 1000:50 by where checks stand, %" whole "${variants[@]}"
}

for figure in $figures; do
	figure_$figure
done
[ ! -e "$work/left_out" ] || cat "$work/left_out"
