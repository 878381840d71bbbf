#!/bin/bash
# What every kind of edited copy costs, on the twelve programs: the file that nearly all of a program's
# time goes to is edited, each program has a CPU of its own, and the kinds take turns. On hosts that
# others use too times drift by more than is looked for, so a copy's run is compared with the unedited run of
# its own round; shown are medians of these ratios and their geometric means, with 95% by bootstrap
# over rounds. `copy` is the file as it is, copied: how far that is from 0 is the error of the method.
#
#   kinds.sh [-n ROUNDS] [-j PROGRAMS] [-s] [KIND[@CULPRIT]...]
#
# -j: so many programs at a time (as many as there are CPUs); -s: short jobs, ten runs at a time. @CULPRIT: the copies are made by that
# build, to compare two. PROGRAMS: only these. ROWS: a file for all times. KIT: all files are there (kit.sh).
. "$(dirname "$0")/lib.sh"
rounds=10 at_once=$cpus short='' runs=1
while getopts n:j:s option; do
	case $option in
	n) rounds=$OPTARG ;;
	j) at_once=$OPTARG ;;
	s) short=--short runs=10 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
kinds=("$@")
[ $# -gt 0 ] || kinds=(copy null exact exact-refined paths paths-refined context both checks)
[ -n "${KIT:-}" ] || { "$here/program" --prepare && make -s -C "$root" build/bench/cputime; } || exit 1
# shellcheck disable=SC2206
names=(${PROGRAMS:-$("$here/program" --names)})
edited=$programs/kinds
mkdir -p "$edited"

options_of() { # KIND
	case $1 in
	both) echo --paths --context ;;
	checks) echo --bursts=never ;;
	*-refined) echo "--${1%-refined} --refine" ;;
	*) echo "--$1" ;;
	esac
}

# Runs a program with a copy in the place of its file, and adds what it took to FILE.
run_with() { # NAME KIND FILE
	local copy=$edited/$1.${2//\//_} binds=()
	[ "$2" = plain ] || binds=("$copy" "$("$here/program" --files "$1")")
	# shellcheck disable=SC2086
	"$root/tools/bind" "${binds[@]}" -- "$here/program" $short "$1" "$programs/cputime" "$3"
}

make_copy() { # NAME KIND
	local file copy=$edited/$1.${2//\//_} kind=${2%%@*} by=$culprit guide=() like=$edited/$1.like
	[[ $2 != *@* ]] || by=${2#*@}
	file=$("$here/program" --files "$1")
	case $kind in
	copy)
		cp "$file" "$copy"
		return
		;;
	*-refined)
		rm -f "$like"*
		"$by" edit "--${kind%-refined}" "$file" -o "$like" && run_with "$1" like "$work/like" &&
			"$by" record -q "--${kind%-refined}" --counted "$like" -o "$like.db" || return
		guide=("$like.db")
		;;
	esac
	rm -f "$copy"*
	# shellcheck disable=SC2046
	"$by" edit $(options_of "$kind") "${guide[@]}" "$file" -o "$copy"
}

# Every so manieth program, all on one CPU.
worker() { # CPU
	local i kind round run
	taskset -p -c "$1" "$BASHPID" >/dev/null
	for ((i = $1; i < ${#names[@]}; i += at_once)); do
		for kind in "${kinds[@]}"; do
			make_copy "${names[i]}" "$kind" || die "${names[i]}: cannot make a copy: $kind"
		done
	done
	for round in $(seq 0 "$rounds"); do # the first only warms up
		for ((i = $1; i < ${#names[@]}; i += at_once)); do
			for kind in $(rotate "$round" plain "${kinds[@]}"); do
				rm -f "$work/took.$1"
				for run in $(seq "$runs"); do
					run_with "${names[i]}" "$kind" "$work/took.$1" || die "${names[i]} fails: $kind, run $run"
				done
				awk -v what="${names[i]} $kind $round" '{ s += $1 } END { print what, s / NR }' "$work/took.$1"
			done
		done
	done
}

workers=()
for ((cpu = 0; cpu < at_once && cpu < ${#names[@]}; cpu++)); do
	(trap - EXIT && worker "$cpu") >"$work/rows.$cpu" &
	workers+=($!)
done
for worker in "${workers[@]}"; do
	wait "$worker" || failed=1
done
[ -z "${failed:-}" ] || exit 1
cat "$work"/rows.* >"${ROWS:-$work/rows}"
[ "$rounds" -gt 0 ] || exit 0

# Prints "KIND NAME PERCENT" and "KIND mean PERCENT LOW HIGH WORST".
ratios() { # FILE KIND...
	awk -v kinds="${*:2}" -v names="${names[*]}" -v rounds="$rounds" '
	function median(v, n,   i, j, t) {
		for (i = 2; i <= n; i++) {
			t = v[i]
			for (j = i - 1; j > 0 && v[j] > t; j--)
				v[j + 1] = v[j]
			v[j + 1] = t
		}
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	function percent(x) {
		return 100 * (exp(x) - 1)
	}
	$3 > 0 { took[$1, $2, $3] = $4 }
	END {
		srand(1)
		n = split(names, name, " ")
		m = split(kinds, kind, " ")
		for (k = 1; k <= m; k++) {
			split("", mean)
			worst = -1
			for (p = 1; p <= n; p++) {
				for (b = 0; b <= 1000; b++) {
					for (r = 1; r <= rounds; r++) {
						pick = b ? 1 + int(rounds * rand()) : r
						v[r] = log(took[name[p], kind[k], pick] / took[name[p], "plain", pick])
					}
					middle[b] = median(v, rounds)
					mean[b] += middle[b] / n
				}
				print kind[k], name[p], percent(middle[0])
				worst = middle[0] > worst ? middle[0] : worst
			}
			all = mean[0]
			median(mean, 1000)
			print kind[k], "mean", percent(all), percent(mean[25]), percent(mean[976]), percent(worst)
		}
	}' "$1"
}

ratios "${ROWS:-$work/rows}" "${kinds[@]}" >"$work/ratios"
header program "plain, s" "${kinds[@]}"
for name in "${names[@]}"; do
	cells=()
	for kind in "${kinds[@]}"; do
		cells+=("$(awk -v k="$kind" -v p="$name" '$1 == k && $2 == p { printf "%+.1f", $3 }' "$work/ratios")")
	done
	row "$name" "$(awk -v p="$name" '$1 == p && $2 == "plain" && $3 { print $4 }' "${ROWS:-$work/rows}" | spread %.3f)" "${cells[@]}"
done
cells=()
for kind in "${kinds[@]}"; do
	cells+=("$(awk -v k="$kind" '$1 == k && $2 == "mean" { printf "%.2f (%.1f to %.1f)", $3, $4, $5 }' "$work/ratios")")
done
row "geometric mean, %" "" "${cells[@]}"
echo
must() { # KIND MEAN [WORST]
	local mean worst
	read -r mean worst < <(awk -v k="$1" '$1 == k && $2 == "mean" { print $3, $6 }' "$work/ratios")
	[ -z "${mean:-}" ] || goal "$1: $2% on average${3:+, $3% at worst}" "$mean < $2 && $worst < ${3:-1e9}"
}
must null 1 3
must exact 8
must paths 15
must paths-refined 5
must context 20
must both 45
must checks 3 5
