#!/usr/bin/env bats
# Records real programs and programs with known shares, and checks who got the samples.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
}

teardown() {
	[ -z "${target:-}" ] || kill "$target" 2>/dev/null || true
	[ -z "${public:-}" ] || rm -rf "$public"
	[ -z "${jit_pid:-}" ] || rm -f "/tmp/perf-$jit_pid.map"
}

# ---- who got the samples ----

@test "shares of three functions" {
	record -- "$programs/shares" 0.8
	procedure heavy 62 78
	procedure middle 13 27
	procedure light 5 15
	[ "$(samples)" -gt 500 ]
}

@test "start, image and build-id of a procedure are those of the file" {
	record -- "$programs/shares" 0.8
	start=$(top | jq -r '.rows[] | select(.procedure == "heavy") | .start')
	[ "$((start))" = "$((0x$(nm "$programs/shares" | awk '$3 == "heavy" { print $1 }')))" ]
	id=$(readelf -n "$programs/shares" | sed -n 's/.*Build ID: //p')
	[ "$(top | jq -r '.rows[] | select(.procedure == "heavy") | .build_id')" = "$id" ]
	[ "$(top | jq -r '.rows[] | select(.procedure == "heavy") | .image')" = "$programs/shares" ]
}

@test "lines of the source" {
	record -- "$programs/shares" 0.8
	between "$(percent '(.file // "") | endswith("burn.h")' --by line)" 85 100
}

@test "without BPF the shares are the same" {
	record --no-bpf -- "$programs/shares" 0.8
	procedure heavy 62 78
	procedure middle 13 27
	procedure light 5 15
}

@test "a kernel that does not allow BPF: perf's ring buffers are used, and it says so" {
	need_root "an ordinary user has no BPF anyhow"
	run --separate-stderr "$programs/deny" bpf=1 -- "$CULPRIT" record -F 2000 -o "$db" -- \
		"$programs/shares" 0.8
	[ "$status" = 0 ]
	[[ $stderr == *"without BPF"* ]]
	procedure heavy 60 80
}

@test "threads by name" {
	record -- "$programs/threads" 0.8
	between "$(percent '.thread == "worker-first"' --by thread)" 50 70
	between "$(percent '.thread == "worker-second"' --by thread)" 21 39
	between "$(percent '.thread == "worker-third"' --by thread)" 4 17
	procedure first_work 50 70
	procedure third_work 4 17
}

@test "C++ names are demangled" {
	record -- "$programs/exceptions" 0.8
	between "$(percent '.procedure | test("^geometry::Mesh<double>::smooth\\(int\\)")')" 64 84
	between "$(percent '.procedure | test("^geometry::detail::parse\\(unsigned int\\)")')" 15 35
}

@test "a stripped program has functions, not addresses" {
	seq 200000 >text
	record -- sh -c 'for i in 1 2 3; do gzip -9 -c text; done >/dev/null'
	between "$(percent '.image | endswith("/gzip")')" 60 100
	# gzip spends its time in a handful of functions; rows by address would be hundreds.
	[ "$(top | jq '[.rows[] | select(.image | endswith("/gzip"))] | length')" -lt 40 ]
	top | jq -e '[.rows[] | select(.image | endswith("/gzip"))][0].procedure |
		test("^gzip!0x[0-9a-f]+$")'
}

@test "a stripped copy and the program itself give the same starts" {
	strip -o "$dir/bare" "$programs/shares"
	record -- "$dir/bare" 1
	start=$((0x$(nm "$programs/shares" | awk '$3 == "heavy" { print $1 }')))
	between "$(percent ".image == \"$dir/bare\" and .start == \"$(printf '0x%x' $start)\"")" 60 80
}

@test "a storm of short processes" {
	record -- "$programs/forker" 1 >count
	procedure child_work 40 100
	between "$(top | jq '.events[0] | .unknown / .samples * 100')" 0 1
	[ "$(cat count)" -gt 20 ]
}

@test "a library that is loaded later" {
	gcc -shared -fPIC -O2 -g -o plugin.so "$root/tests/e2e/programs/plugin/plugin.c"
	record -- "$programs/dlopener" ./plugin.so 0.8
	between "$(percent '.procedure == "plugin_work" and (.image | endswith("/plugin.so"))')" 65 83
	procedure before_loading 17 33
}

@test "a program that deletes its own file" {
	cp "$programs/deleter" gone
	record -- "$dir/gone" 0.8
	[ ! -e gone ]
	procedure after_deletion 85 100
}

@test "code made at run time, with a perf map" {
	record -- "$programs/jit" 0.8 >pid
	jit_pid=$(cat pid)
	procedure jit_hot 63 85
	procedure jit_cold 16 34
}

@test "code made at run time, while the process lives" {
	"$programs/jit" 30 >pid &
	target=$!
	await test -s pid
	jit_pid=$(cat pid)
	record -p "$target" -- sleep 1
	procedure jit_hot 63 85
	procedure jit_cold 16 34
}

@test "one process that executes the same file under another name every few milliseconds" {
	cp "$programs/execer" first
	ln first second
	record -- "$dir/first" 40
	first=$(percent '.procedure == "first_life"')
	second=$(percent '.procedure == "second_life"')
	echo "first $first, second $second"
	between "$first" 8 32
	between "$second" 45 85
	between "$(percent '.comm == "second"' --by comm)" 55 90
	between "$(percent '.procedure == "first_life"' --comm second)" 0 3
	between "$(percent '.procedure == "second_life"' --comm first)" 0 3
}

@test "a process in another mount namespace" {
	need_root "unshare -m"
	mkdir hidden
	unshare -m sh -c "mount -t tmpfs none hidden && cp '$programs/shares' hidden/inside &&
		exec '$CULPRIT' record -F 2000 -o '$db' -- hidden/inside 1"
	procedure heavy 62 78
}

@test "the whole machine sees a process in a mount namespace that the recorder cannot see" {
	need_root "-a and unshare -m"
	mkdir hidden
	unshare -m sh -c "mount -t tmpfs none hidden && cp '$programs/shares' hidden/inside &&
		exec hidden/inside 30" &
	target=$!
	await pgrep -f "^hidden/inside" >/dev/null
	"$CULPRIT" record -a -e cpu-clock -F 1000 -o "$db" -- sleep 1
	between "$(percent '.procedure == "heavy"' --comm inside)" 55 85
}

@test "a process that runs already" {
	"$programs/shares" 30 &
	target=$!
	record -p "$target" -- sleep 1
	procedure heavy 58 82
	[ "$(top --by process | jq -r '.rows[0].pid')" = "$target" ]
}

@test "the whole machine, by CPU and process, with the kernel" {
	need_root "-a"
	"$programs/shares" 30 &
	target=$!
	"$CULPRIT" record -a -e cpu-clock -F 1000 -o "$db" -- sleep 1
	between "$(percent '.procedure == "heavy"' --comm shares)" 55 85
	[ "$(top --by cpu | jq '.rows | length')" -ge 1 ]
	top --by process | jq -e ".rows[] | select(.pid == $target)"
}

@test "user mode only and kernel only" {
	need_root "kernel samples"
	"$CULPRIT" record -e cpu-clock:u,cpu-clock:k -F 2000 -o "$db" -- \
		dd if=/dev/zero of=/dev/null bs=64k count=200000 status=none
	top | jq -e '[.events[].name] == ["cpu-clock:u", "cpu-clock:k"]'
	user=$(top -e cpu-clock:u | jq '.events[0].samples')
	kernel=$(top -e cpu-clock:k | jq '.events[0].samples')
	echo "user $user, kernel $kernel"
	[ "$kernel" -gt "$user" ]
	top -e cpu-clock:u | jq -e '[.rows[] | select(.image | test("vmlinux|kernel"))] | length == 0'
}

@test "a sleeping program gives next to no samples, and that is no error" {
	record -- "$programs/sleeper" 0.5
	[ "$(samples)" -lt 200 ]
}

@test "an ordinary user records a command" {
	need_root "to become another user"
	share_programs
	as_nobody "$public/culprit" record -F 2000 -o "$public/own.db" -- "$public/shares" 0.8
	db=$public/own.db
	procedure heavy 62 80
	[ "$(stat -c %a "$db")" = 600 ]
	# Private: another user cannot read it.
	run setpriv --reuid 65533 --regid 65533 --clear-groups "$public/culprit" top -i "$db"
	fails_with 3 "own.db"
}

@test "an ordinary user and a program that may be executed but not read" {
	need_root "to become another user"
	share_programs
	chmod 711 "$public/shares"
	# The kernel takes the events away from such a process: that must be said.
	run as_nobody "$public/culprit" record -e cpu-clock:u -F 2000 -o "$public/own.db" -- \
		"$public/shares" 0.5
	echo "$output"
	[[ $output == *"$public/shares"*read* ]]
}

# ---- how it ends ----

@test "Ctrl-C ends it cleanly" {
	# A shell lets its background processes ignore SIGINT; a terminal sends it to both.
	env --default-signal=INT "$CULPRIT" record -e cpu-clock -F 1000 -o "$db" -- \
		"$programs/shares" 30 2>said &
	recorder=$!
	await pgrep -P $recorder -f "shares 30" >/dev/null
	sleep 1
	kill -INT "$(pgrep -P $recorder)" $recorder
	wait $recorder
	grep -q "samples" said
	procedure heavy 55 85
}

@test "SIGTERM ends it and the command" {
	"$CULPRIT" record -e cpu-clock -F 1000 -o "$db" -- "$programs/shares" 30 2>said &
	recorder=$!
	await pgrep -P $recorder -f "shares 30" >/dev/null
	child=$(pgrep -P $recorder)
	sleep 1
	kill -TERM $recorder
	wait $recorder
	! kill -0 "$child" 2>/dev/null
	procedure heavy 55 85
}

@test "it prints one line of accounting" {
	run --separate-stderr record -- "$programs/shares" 0.5
	[ "$status" = 0 ]
	[ "$(grep -c 'samples.*unknown.*lost' <<<"$stderr")" = 1 ]
}

@test "two recordings into one database stay apart" {
	record -- "$programs/shares" 0.5
	record -- "$programs/threads" 0.5
	[ "$("$CULPRIT" db ls -i "$db" --json | jq '.epochs | length')" = 2 ]
	between "$(percent '.procedure == "first_work"' --epoch last)" 45 75
	between "$(percent '.procedure == "heavy"' --epoch last)" 0 0
}

@test "every sample is in the books" {
	record -- "$programs/shares" 0.8
	top | jq -e '.events[0] | .attributed + .unknown == .samples'
	top | jq -e '.events[0] | (.attributed + .unknown + .lost + .throttled + .missed) / .expected |
		. > 0.95 and . < 1.05'
}

# ---- what it says when it cannot ----

@test "no such process" {
	run record -p 4194000
	fails_with 2 4194000
	[ ! -s "$db" ] || "$CULPRIT" db check "$db"
}

@test "a command that does not exist" {
	run record -- no-such-command-anywhere
	fails_with 2 "no-such-command-anywhere"
}

@test "a file that cannot be executed" {
	cp "$programs/shares" plain
	chmod 644 plain
	run record -- ./plain 1
	fails_with 3 "plain" "permission"
}

@test "an event that nobody knows" {
	run "$CULPRIT" record -e no-such-event -o "$db" -- true
	fails_with 2 "no-such-event"
}

@test "nothing to sample" {
	run "$CULPRIT" record -o "$db"
	[ "$status" = 2 ]
}

@test "a text file as database" {
	echo "this is no database, but somebody's text" >"$db"
	run record -- true
	fails_with 2 "test.db"
	[ "$(cat "$db")" = "this is no database, but somebody's text" ]
	run "$CULPRIT" top -i "$db"
	fails_with 2 "test.db"
}

@test "another program's SQLite database" {
	sqlite3 "$db" 'create table precious(x); insert into precious values(1)'
	run record -- true
	fails_with 2 "test.db"
	[ "$(sqlite3 "$db" 'select x from precious')" = 1 ]
}

@test "a database of a newer version" {
	record -- "$programs/shares" 0.3
	sqlite3 "$db" 'pragma user_version = 999' >/dev/null
	run record -- true
	fails_with 2 "newer"
	run "$CULPRIT" top -i "$db"
	fails_with 2 "newer"
	run "$CULPRIT" db check "$db"
	[ "$status" != 0 ]
}

@test "a database that is not there" {
	run "$CULPRIT" top -i nowhere.db
	fails_with 2 "nowhere.db"
}

@test "no space left" {
	need_root "to mount a small tmpfs"
	mkdir small
	run unshare -m sh -c "mount -t tmpfs -o size=48k none small &&
		'$CULPRIT' record -e cpu-clock -F 2000 -o small/test.db -- '$programs/shares' 0.5"
	fails_with 3 "small/test.db" "space"
}

@test "no space left keeps what was there" {
	need_root "to mount a small tmpfs"
	mkdir small
	run unshare -m sh -c "
		mount -t tmpfs -o size=2m none small &&
		'$CULPRIT' record -e cpu-clock -F 2000 -o small/test.db -- '$programs/shares' 0.3 &&
		'$CULPRIT' top -i small/test.db --json >before.json &&
		dd if=/dev/zero of=small/filler bs=4k status=none;
		'$CULPRIT' record -e cpu-clock -F 2000 -o small/test.db -- '$programs/threads' 0.3;
		code=\$?
		rm small/filler
		'$CULPRIT' db check small/test.db || exit 90
		'$CULPRIT' top -i small/test.db --epoch 1 --json >after.json || exit 91
		exit \$code"
	echo "$output"
	[ "$status" = 3 ]
	cmp before.json after.json
}

@test "a kernel that allows no sampling at all" {
	run "$programs/deny" perf_event_open=13 bpf=1 -- "$CULPRIT" record -e cpu-clock -F 1000 -o "$db" -- true
	fails_with 3 "perf_event_paranoid"
}

@test "an ordinary user cannot sample the whole machine" {
	need_root "to become another user"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ] || skip "this machine lets everybody"
	share_programs
	run as_nobody "$public/culprit" record -a -e cpu-clock -F 1000 -o "$public/own.db" -- true
	fails_with 3 "perf_event_paranoid"
}

@test "an ordinary user cannot sample another's process" {
	need_root "to become another user"
	share_programs
	"$programs/sleeper" 30 &
	target=$!
	run as_nobody "$public/culprit" record -e cpu-clock -F 1000 -p $target -o "$public/own.db" -- true
	fails_with 3 "$target"
}

@test "an ordinary user who insists on BPF is told what is missing" {
	need_root "to become another user"
	share_programs
	run as_nobody "$public/culprit" record --bpf -e cpu-clock -F 1000 -o "$public/own.db" -- true
	fails_with 3 "CAP_"
}

@test "a place where the database cannot be written" {
	run record -o "$dir/no/such/folder/x.db" -- true
	fails_with 2 "no/such/folder"
}
