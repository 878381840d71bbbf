# Recordings of the twelve programs, each with the number of times that its job ran. Sourced by the
# measures of accuracy, after lib.sh and options.
# shellcheck shell=bash
#
# RECORD: more options of 'record' than rate and edges; --excursions unless it is set.
# PROGRAMS names some of them. RECORDINGS is a folder to keep the recordings in (NAME.db and
# NAME.repeats); those that are there already are used again.
"$here/program" --prepare || exit 1
inputs=$programs/accuracy
recordings=${RECORDINGS:-$work}
read -ra names <<<"${PROGRAMS:-$("$here/program" --names | paste -sd' ')}"

user_seconds() { # COMMAND...
	local TIMEFORMAT=%U
	{ time "$@" >/dev/null 2>&1; } 2>&1
}

record() { # NAME: each run of the job is a recording of its own, so that counts of one can be tied to it
	local db=$recordings/$1.db repeats i
	[ -e "$db" ] && [ -e "$recordings/$1.repeats" ] && return
	repeats=$(figure %.0f "$seconds / ($(user_seconds "$here/program" "$1") + 0.01) + 0.5")
	rm -f "$db"*
	# Half a minute at 0.2% would be a few thousand bursts: the error of chance, not of the method.
	for ((i = 0; i < repeats; i++)); do
		# shellcheck disable=SC2086
		"$here/program" "$1" "$culprit" record -q -F "$rate" --edges 3% ${RECORD---excursions} -o "$db" -- ||
			die "$1: $(tail -1 "$inputs/$1.err")"
	done
	echo "$repeats" >"$recordings/$1.repeats"
}

# The same with the exact counts of one run more, in NAME.exact.db: nothing is estimated there.
count_exactly() { # NAME
	local db=$recordings/$1.exact.db
	[ "$db" -nt "$recordings/$1.db" ] && return
	rm -f "$db"*
	cp "$recordings/$1.db" "$db.new" &&
		"$here/program" "$1" "$culprit" record -q --exact -o "$db.new" -- && mv "$db.new" "$db" ||
		die "$1 cannot be counted: $(tail -1 "$inputs/$1.err")"
}

repeats() { # NAME
	cat "$recordings/$1.repeats"
}

# Runs a program under callgrind, once for all: what it wrote is kept as NAME.KIND. What a command
# makes of it is kept as NAME.SUFFIX until the command changes.
simulate() { # NAME KIND SUFFIX COMMAND [OPTION...]
	local raw=$inputs/$1.$2 made=$inputs/$1.$3
	if [ ! "$raw" -nt "$here/program" ] || [ ! "$raw" -nt "$here/jobs" ]; then
		"$here/program" "$1" valgrind -q --tool=callgrind --dump-instr=yes --skip-plt=no \
			--compress-strings=no --compress-pos=no --callgrind-out-file="$raw.new" "${@:5}" &&
			mv "$raw.new" "$raw" ||
			die "valgrind cannot run $1: $(tail -1 "$inputs/$1.err")"
	fi
	[ "$made" -nt "$4" ] && [ "$made" -nt "$raw" ] && return
	"$4" "$raw" >"$made.new" 2>"$made.log" && mv "$made.new" "$made" ||
		die "$1: $(tail -1 "$made.log")"
}

# A figure that may be missing ("-"), for goals.
or_zero() { # FIGURE
	[ "$1" != - ] && echo "$1" || echo 0
}
