# What the end-to-end tests share. CULPRIT names the program under test.
# shellcheck shell=bash disable=SC2034,SC2154

common_setup() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	CULPRIT=${CULPRIT:-$root/build/culprit}
	programs=$root/build/tests/e2e/programs
	dir=$BATS_TEST_TMPDIR
	db=$dir/test.db
	cd "$dir" || return 1
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root: $1"
}

need_namespaces() {
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
}

# The program and the test programs where every user can reach them.
share_programs() {
	public=$(mktemp -d /tmp/culprit-e2e.XXXXXX)
	chmod 777 "$public"
	cp "$CULPRIT" "$programs"/{shares,sleeper} "$public"
	chmod 755 "$public"/*
}

as_nobody() { # COMMAND...
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$public" "$@"
}

# Records COMMAND at a rate that gives some thousand samples a second.
record() { # [OPTION...] -- COMMAND...
	"$CULPRIT" record -e cpu-clock -F 2000 -o "$db" "$@"
}

top() { # [OPTION...]
	"$CULPRIT" top -i "$db" --json "$@"
}

# Per cent of all samples in the rows for which a jq condition holds, to one decimal.
percent() { # CONDITION [TOP_OPTION...]
	local condition=$1
	shift
	top "$@" | jq -r "[.rows[] | select($condition) | .share] | (add // 0) * 1000 | round / 10"
}

samples() {
	top | jq '.events[0].samples'
}

# Fails, with both in words, unless LOW <= VALUE <= HIGH.
between() { # VALUE LOW HIGH
	awk -v v="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(v >= l && v <= h) }' || {
		echo "$1 is not between $2 and $3"
		return 1
	}
}

procedure() { # NAME [LOW HIGH]: the share of the procedure with this name
	local got
	got=$(percent ".procedure == \"$1\"")
	echo "$1: $got%"
	between "$got" "$2" "$3"
}

# One line on standard error, starting with the program's name; the exit code; and words it must hold.
fails_with() { # CODE WORDS...
	local code=$1 word
	shift
	echo "status $status, said: $output"
	[ "$status" = "$code" ] || return 1
	[ "$(grep -c '^culprit: ' <<<"$output")" = 1 ] || return 1
	[ "$(wc -l <<<"$output")" = 1 ] || return 1
	for word; do
		grep -qi -- "$word" <<<"$output" || {
			echo "no word of '$word'"
			return 1
		}
	done
}

# Waits until COMMAND succeeds, 20 s at most.
await() { # COMMAND...
	local i
	for i in $(seq 200); do
		"$@" && return 0
		sleep 0.1
	done
	echo "waited in vain for: $*"
	return 1
}
