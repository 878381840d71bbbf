#!/usr/bin/env bats
# Excursions: what long stretches of a program show of its branches, on programs that know them; and
# that nobody who is held for them can tell, but by the time.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
}

teardown() {
	for pid in ${target:-} ${recorder:-}; do
		{ kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
	done
	[ -z "${cgroup:-}" ] || leave_cgroup
	[ -z "${daemon:-}" ] || "$CULPRIT" daemon stop -o "$db" >/dev/null 2>&1 || true
	[ -z "${public:-}" ] || rm -rf "$public"
}

# Records with excursions in a share of the time that nobody would want, so that there are many.
excursions() { # [OPTION...] -- COMMAND...
	"$CULPRIT" record -e cpu-clock -F 1000 --excursions=20% -o "$db" "$@"
}

# Profiles of a type in the database.
profiles() { # TYPE
	sqlite3 "$db" "SELECT count(*) FROM profiles JOIN names ON names.id = type WHERE text = '$1'"
}

# Stretches of excursions that were kept of processes of a name.
stretches() { # COMM
	sqlite3 "$db" "SELECT coalesce(sum(samples), 0) FROM profiles f
		JOIN names t ON t.id = f.type JOIN processes p ON p.id = f.process
		JOIN names c ON c.id = p.comm WHERE t.text = 'excursion' AND c.text = '$1'"
}

# A figure of the accounting of excursions in what was said.
told() { # WORDS
	case $1 in
	windows) sed -n 's/.*excursions: \([0-9]*\) of [0-9]* instructions.*/\1/p' ;;
	instructions) sed -n 's/.*excursions: [0-9]* of \([0-9]*\) instructions.*/\1/p' ;;
	refused) sed -n 's/.*excursions: \([0-9]*\) refused.*/\1/p' ;;
	held) sed -n 's/.*excursions: \([0-9]*\) of .*, \([0-9.]*\) s of holding.*/\2 \1/p' |
		awk '{ printf "%.6f\n", $1 / $2 }' ;; # in the mean
	foreign) sed -n 's/.*excursions: \([0-9]*\) left alone: 32-bit.*/\1/p' ;;
	esac
}

# The program says the same when it is held now and then.
undisturbed() { # HELD_MODE N
	timeout 100 "$programs/held" "$@" >alone
	timeout 200 "$CULPRIT" record -q -e cpu-clock -F 500 --excursions=20% -o "$db" -- \
		"$programs/held" "$@" >watched
	diff alone watched
	"$CULPRIT" db check "$db"
}

# Nobody holds any thread of the process, and it runs.
is_free() { # PID
	local t
	for t in /proc/"$1"/task/*; do
		grep -q '^TracerPid:[[:space:]]*0$' "$t/status" || return 1
		! grep -q '^State:[[:space:]]*[tT]' "$t/status" || return 1
	done
}

# Also when nobody has asked for what is left of it.
has_ended() { # PID
	! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

# ---- what they tell ----

@test "they are kept, and accounted for in a line" {
	run --separate-stderr excursions -- "$programs/known_edges" 1
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$(grep -c '^culprit: excursions: ' <<<"$stderr")" = 1 ]
	[[ $stderr =~ excursions:\ [0-9]+\ of\ [0-9]+\ instructions,\ [0-9.]+\ s\ of\ holding ]]
	[ "$(told windows <<<"$stderr")" -gt 10 ]
	between "$(told instructions <<<"$stderr")" 10000 20100
	[ "$(stretches known_edges)" -gt 40 ]
	"$CULPRIT" db check "$db"
}

@test "without the option there are none, and -q says nothing of them" {
	record -- "$programs/known_edges" 0.5 >places
	[ "$(profiles excursion)" = 0 ]
	run --separate-stderr excursions -q -- "$programs/known_edges" 0.5
	[[ $stderr != *excursions* ]]
	[ "$(profiles excursion)" -gt 0 ]
}

# The share of the branch of known_phases that is taken, in a list of edges: FROM TO COUNT.
taken_share() {
	local from taken fell
	read -r _ from taken fell <places
	awk -v from="$from" -v taken="$taken" -v fell="$fell" '
		$1 == from && $2 == taken { t += $3 }
		$1 == from && $2 == fell { f += $3 }
		END { printf "%.4f\n", t / (t + f) }'
}

# Bursts begin where time is spent, and are over before the slow way is.
@test "a way that is gone through fast is seen as often as one that is slow" {
	excursions -- "$programs/known_phases" 3 >places
	"$CULPRIT" export -f counts -i "$db" --proc phases | awk '$1 == "edge" { print $2, $3, $4 }' \
		>counts
	between "$(taken_share <counts)" 0.4 0.6
	"$CULPRIT" why -i "$db" --json phases >why.json
	read -r _ _ taken fell <places
	between "$(jq --arg taken "$taken" --arg fell "$fell" '.edges
		| (.[] | select(.to == $taken and .kind == "jump") | .count) as $t
		| (.[] | select(.to == $fell) | .count) as $f | $t / ($t + $f)' why.json)" 0.4 0.6
}

@test "branches of known shares; bursts are not needed" {
	excursions --no-edges -- "$programs/known_edges" 2 >places
	[ "$(profiles edge)" = 0 ]
	"$CULPRIT" export -f counts -i "$db" | awk '$1 == "edge" { print $2, $3, $4 }' >counts
	while read -r name from taken fell; do
		share=$(awk -v from="$from" -v taken="$taken" -v fell="$fell" '
			$1 == from && $2 == taken { t += $3 }
			$1 == from && $2 == fell { f += $3 }
			END { print t / (t + f) }' counts)
		echo "$name: $share"
		case $name in
		quarter) between "$share" 0.22 0.28 ;;
		half) between "$share" 0.46 0.54 ;;
		most) between "$share" 0.87 0.93 ;;
		esac
	done <places
}

@test "what two databases hold is in the one that is made of both" {
	excursions -- "$programs/known_edges" 0.5 >places
	mv "$db" one.db
	excursions -- "$programs/known_edges" 0.5 >places
	mv "$db" two.db
	"$CULPRIT" db merge -o "$db" one.db two.db
	"$CULPRIT" db check "$db"
	[ "$(profiles excursion)" -ge 2 ]
	"$CULPRIT" export -f counts -i "$db" --proc half | grep -q '^edge'
}

# ---- who is held ----

# bats test_tags=plain
@test "the whole machine" {
	need_root "-a"
	"$programs/held" spin 60 &
	target=$!
	run --separate-stderr excursions -a -- sleep 3
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$(stretches held)" -gt 4 ]
	is_free $target
	refused=$(told refused <<<"$stderr")
	[ "${refused:-0}" -lt 3 ] # not itself
}

# bats test_tags=plain
@test "a process that runs already" {
	"$programs/held" spin 60 &
	target=$!
	run --separate-stderr excursions -p $target -- sleep 1
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$(stretches held)" -gt 4 ]
	await is_free $target
	kill -0 $target
}

# Who waits for its turn on a CPU is not held.
# bats test_tags=plain
@test "more threads than CPUs: held for as long as few are" {
	run --separate-stderr excursions -C 0 -- taskset -c 0 "$programs/held" threads 40
	echo "$stderr"
	[ "$status" = 0 ]
	between "$(told held <<<"$stderr")" 0 0.002
}

# bats test_tags=plain
@test "a process whose first thread ends" {
	"$programs/held" heir 60 &
	target=$!
	await has_threads $target 2
	run --separate-stderr excursions -p $target -- sh -c "kill -USR1 $target; sleep 2"
	echo "$stderr"
	[ "$status" = 0 ]
	has_ended $target
	[ "$(told windows <<<"$stderr")" -gt 50 ]
}

has_threads() { # PID N
	[ "$(ls "/proc/$1/task" | wc -l)" = "$2" ]
}

# bats test_tags=plain
@test "of a cgroup: nobody outside of it" {
	need_root "cgroups"
	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$mount" ] && mkdir "$mount/culprit-e2e.$$" 2>/dev/null || skip "needs cgroup version 2"
	cgroup=$mount/culprit-e2e.$$
	cp "$programs/held" inside
	cp "$programs/held" outside
	(echo $BASHPID >"$cgroup/cgroup.procs" && exec ./inside spin 60) &
	./outside spin 60 &
	target=$!
	excursions -G "$cgroup" -- sleep 1
	[ "$(stretches inside)" -gt 4 ]
	[ "$(stretches outside)" = 0 ]
}

leave_cgroup() {
	xargs -r kill -KILL <"$cgroup/cgroup.procs" 2>/dev/null || true
	await rmdir "$cgroup" 2>/dev/null
}

# bats test_tags=plain
@test "processes that live two milliseconds, and programs that execute others" {
	excursions -- "$programs/forker" 1 >count
	[ "$(cat count)" -gt 5 ]
	[ "$(profiles excursion)" -gt 0 ]
	rm -f "$db"*
	cp "$programs/execer" first
	ln first second
	excursions -- "$dir/first" 40
	[ "$(stretches first)" -gt 0 ]
	[ "$(stretches second)" -gt 0 ]
	"$CULPRIT" db check "$db"
}

@test "an ordinary user: own programs, or it says why not" {
	need_root "to become another user"
	share_programs
	cp "$programs/held" "$public"
	chmod 755 "$public/held"
	db=$public/own.db
	run --separate-stderr as_nobody "$public/culprit" record -e cpu-clock:u -F 500 \
		--excursions=20% -o "$db" -- "$public/held" spin 1
	echo "$stderr"
	[ "$status" = 0 ]
	if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ]; then
		[ "$(stretches held)" -gt 4 ]
	else
		[ "$(told refused <<<"$stderr")" -gt 0 ]
		[[ $stderr == *ptrace_scope* ]]
	fi
}

@test "who is traced by another is left alone, and counted" {
	run --separate-stderr excursions -- "$programs/held" traced 1
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$output" = 42 ]
	[ "$(told refused <<<"$stderr")" -gt 0 ]
	[[ $stderr == *"traced by others"* ]]
}

# It would be taken for other instructions.
# bats test_tags=plain
@test "32-bit code is left alone, and counted" {
	run --separate-stderr excursions -- "$programs/held" narrow 2
	echo "$stderr"
	[ "$status" = 0 ]
	[ "$(told foreign <<<"$stderr")" -gt 20 ]
	[ "$(stretches held)" -lt "$(told foreign <<<"$stderr")" ]
}

@test "a debugger and what it runs" {
	command -v gdb >/dev/null || skip "needs gdb"
	excursions -q -- gdb -q -nx -batch -ex "break main" -ex run -ex continue --args \
		"$programs/held" spin 1 >said 2>&1
	cat said
	grep -q "exited normally" said
}

@test "what loads find in the first cache" {
	need_root "interpreting branches needs CAP_BPF and CAP_PERFMON"
	excursions -q -- "$programs/culprits" chase_memory 0.5
	"$CULPRIT" why -i "$db" chase_memory --json >far.json
	excursions -q -o near.db -- "$programs/culprits" divide 0.5
	"$CULPRIT" why -i near.db divide --json >near.json
	jq -e '[.blocks[].instructions[] | .gone // 0] | max > 0.9' far.json
	"$CULPRIT" why -i "$db" chase_memory | grep -q "D-cache miss (\(9\|100\).* were gone)"
	jq -e '[.blocks[].instructions[] | .gone // 0] | max < 0.05' near.json
	jq -e '[.blocks[].instructions[] | .line_gone // 0] | max < 0.05' near.json
}

# ---- what they do to it ----

@test "output and exit status are those of the program" {
	seq 200000 >text
	gzip -9 -c text >alone
	excursions -q -- gzip -9 -c text >watched
	cmp alone watched
	run --separate-stderr excursions -- sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done
		exit 7'
	[ "$status" = 0 ]
	[[ $stderr == *"exited with 7"* ]]
}

# bats test_tags=plain
@test "threads by the hundred, children" {
	undisturbed threads 200
	undisturbed forks 200
}

# bats test_tags=plain
@test "timers ring" {
	undisturbed timer 3000
}

# bats test_tags=plain
@test "who is stopped stays so until he is told to go on" {
	undisturbed stop 40
}

# bats test_tags=plain
@test "who is killed while he is held is gone, and his parent is told" {
	undisturbed kill 300
}

# As after ^Z and fg, epoll_wait may fail with EINTR (signal(7)); all others go on.
# bats test_tags=plain
@test "calls that wait go on" {
	"$CULPRIT" record -q -e cpu-clock -F 500 --excursions=20% -o "$db" -- \
		"$programs/held" calls 2000 >watched
	cat watched
	grep -q "failed: nanosleep 0, poll 0, read 0, " watched
	between "$(sed -n 's/.*epoll_wait \([0-9]*\)/\1/p' watched)" 0 100
	"$programs/held" calls 2000 | tail -1 | diff - <(tail -1 watched)
}

# ---- how it ends ----

# bats test_tags=plain
@test "a recorder that is killed leaves nobody held" {
	"$programs/held" spin 60 &
	target=$!
	for i in 1 2 3 4 5; do
		"$CULPRIT" record -q -e cpu-clock -F 500 --excursions=20% -o "$db" -p $target &
		recorder=$!
		await pgrep -P $recorder -x culprit-scout >/dev/null
		scout=$(pgrep -P $recorder -x culprit-scout)
		sleep "0.$((i + 2))"
		kill -KILL $recorder
		wait $recorder || true
		recorder=
		await has_ended "$scout"
		is_free $target
	done
	kill -0 $target
}

# bats test_tags=plain
@test "a scout that is killed leaves nobody held, and is missed" {
	"$programs/held" spin 60 &
	target=$!
	"$CULPRIT" record -e cpu-clock -F 500 --excursions=20% -o "$db" -p $target -- sleep 2 2>said &
	recorder=$!
	await pgrep -P $recorder -x culprit-scout >/dev/null
	sleep 0.5
	pkill -KILL -P $recorder -x culprit-scout
	wait $recorder
	recorder=
	cat said
	grep -q "^culprit: excursions: .* has ended before its time" said
	is_free $target
	"$CULPRIT" db check "$db"
}

# bats test_tags=plain
@test "the scout has no more rights than it needs" {
	"$CULPRIT" record -q -e cpu-clock -F 500 --excursions=20% -o "$db" -- "$programs/held" spin 60 &
	recorder=$!
	await pgrep -P $recorder -x culprit-scout >/dev/null
	await has_few_rights "$(pgrep -P $recorder -x culprit-scout)"
}

# CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_CHECKPOINT_RESTORE
has_few_rights() { # PID
	local few=$((1 << 2 | 1 << 19 | 1 << 34 | 1 << 40))
	local has=$((16#$(sed -n 's/^CapPrm:[[:space:]]*//p' /proc/$1/status)))
	[ $((has & ~few)) = 0 ] && grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/$1/status
}

# bats test_tags=plain
@test "nothing of it is left when the recording ends" {
	excursions -q -- sh -c "'$programs/held' spin 60 & echo \$! >pid; sleep 1"
	target=$(cat pid)
	await is_free $target
	kill -0 $target
}

# bats test_tags=plain
@test "the daemon" {
	need_root "the whole machine"
	daemon=yes
	"$CULPRIT" daemon start -o "$db" -e cpu-clock -F 500 --excursions=5%
	"$programs/held" spin 2
	"$CULPRIT" daemon stop -o "$db"
	daemon=
	[ "$(stretches held)" -gt 0 ]
	"$CULPRIT" db check "$db"
}

# ---- what it says when it cannot ----

@test "values that are no share" {
	for share in x 0 21% -1% "" 30 1e9%; do
		run "$CULPRIT" record --excursions="$share" -o "$db" -- true
		echo "$share: status $status, said: $output"
		[ "$status" = 2 ]
		[ "${#lines[@]}" = 1 ]
		[[ $output == "culprit record: --excursions: '$share' is no share"* ]]
	done
	[ ! -e "$db" ]
}

@test "programs that are counted are not sampled, nor held" {
	run "$CULPRIT" record --exact --excursions -o "$db" -- true
	echo "$output"
	[ "$status" = 2 ]
	[ "${#lines[@]}" = 1 ]
	[[ $output == *"do not sample"*"--excursions"* ]]
}
