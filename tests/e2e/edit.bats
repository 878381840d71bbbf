#!/usr/bin/env bats
# culprit edit: edited programs do what the originals do; what is refused, and how it is reported.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	sources=$root/tests/edit/programs
}

edit() { # [OPTION...] FILE EDITED
	"$CULPRIT" edit "${@:1:$#-1}" -o "${@: -1}"
}

# The words behind a mark ("// edited: one two") in a source.
marked() { # MARK SOURCE
	sed -n "s,^// $1: ,,p" "$2"
}

compile() { # NAME COMPILER [FLAG...]: old/a
	mkdir -p old new
	# shellcheck disable=SC2046
	"${@:2}" -w -D_GNU_SOURCE $(marked flags "$sources/$1.c") -o old/a "$sources/$1.c" -ldl
}

# new/a must do what old/a does.
same() { # WORDS
	local got=0 want=0
	"$PWD/old/a" >said.old 2>&1 || want=$?
	"$PWD/new/a" >said.new 2>&1 || got=$?
	cmp said.old said.new || { echo "$*: another output"; return 1; }
	[ "$want" = "$got" ] || { echo "$*: status $got, not $want"; return 1; }
}

# Compiles a program and edits it strictly; the functions that it marks must be edited.
check() { # NAME COMPILER [FLAG...]
	local function
	compile "$@"
	edit --strict --report --json old/a new/a >report || return 1
	same "$@" || return 1
	for function in $(marked edited "$sources/$1.c"); do
		jq -e --arg f "$function" '[.refused[].function] | index($f) | not' report >/dev/null || {
			echo "$*: $function is refused"
			return 1
		}
	done
}

@test "hard cases, position-independent" {
	for source in "$sources"/*.c; do
		check "$(basename "$source" .c)" gcc -O2
	done
}

@test "hard cases, at fixed addresses" {
	for source in "$sources"/*.c; do
		check "$(basename "$source" .c)" gcc -O2 -fno-pie -no-pie
	done
}

@test "pointers lead to new code where all that say them are known" {
	compile addresses gcc -O2 -fcf-protection=none -DJUMPS
	edit --strict old/a new/a
	[ "$(new/a | tail -1)" = 001 ]
	diff <(old/a | head -n -1) <(new/a | head -n -1)
	# Others find the functions of a library by name; one of them is also meant at a distance.
	gcc -O2 -w -fcf-protection=none -shared -fPIC -o libf.so -x c - <<<'
		int f(int x) { return x + 4; }
		int g(int x) { return f(x); }
		void *behind = (char *)g + 1;'
	edit --strict libf.so new/libf.so
	cat >ask.py <<-'END'
		import ctypes
		l = ctypes.CDLL("new/libf.so")
		first = lambda f: ctypes.cast(f, ctypes.POINTER(ctypes.c_ubyte))[0]
		print(l.f(1) + l.g(2), first(l.f) == 0xe9, first(l.g) == 0xe9)
	END
	[ "$(python3 ask.py)" = "11 False True" ]
	readelf -aW new/libf.so 2>&1 >/dev/null | tee said
	[ ! -s said ]
	[ "$(readelf --dyn-syms -W new/libf.so | awk '$8 == "f" { print $7 }')" = "$(readelf -SW new/libf.so | sed -n 's/.*\[ *\([0-9]*\)\] \.text\.edited .*/\1/p')" ]
}

@test "hard cases, static" {
	check tables gcc -O2 -static
	check threads gcc -O2 -static
	check signals gcc -O2 -static-pie
	check ifunc gcc -O2 -static-pie
}

# bats test_tags=plain
@test "hard cases, unoptimised and by another compiler" {
	for name in calls flags goto ifunc longjmp signals tables threads; do
		check $name gcc -O0
		check $name clang -O2
	done
}

# bats test_tags=plain
@test "hard cases with all that is dead overwritten, before every instruction and on every edge" {
	for source in "$sources"/*.c; do
		name=$(basename "$source" .c)
		for flags in -fpie "-fno-pie -no-pie"; do
			# shellcheck disable=SC2086
			compile "$name" gcc -O2 $flags
			"$(dirname "$CULPRIT")/tests/torture/clobber" edit --strict ./old/a -o new/a
			same "$name" "$flags"
		done
	done
}

@test "hard cases with every function twice and every frame larger" {
	for source in "$sources"/*.c; do
		name=$(basename "$source" .c)
		for flags in -fpie "-fno-pie -no-pie"; do
			# shellcheck disable=SC2086
			compile "$name" gcc -O2 $flags
			"$(dirname "$CULPRIT")/tests/torture/shapes" edit --both --strict ./old/a -o new/a
			same "$name" "$flags"
		done
	done
}

@test "stock programs and a library" {
	edit --null --strict /bin/gzip gzip
	head -c 1000000 "$CULPRIT" >input
	./gzip -9 <input | /bin/gzip -d | cmp - input
	edit --null --strict /bin/bash bash
	[ "$(./bash -c 'x=$((6 * 7)); f() { echo "$x $1"; }; f a')" = "42 a" ]
	edit --null --strict "$(realpath /lib/x86_64-linux-gnu/libz.so.1)" libz.so.1
	LD_LIBRARY_PATH=$PWD gzip --version >/dev/null
	[ "$(LD_LIBRARY_PATH=$PWD python3 -c 'import zlib; print(zlib.crc32(b"x" * 9999))')" = \
		"$(python3 -c 'import zlib; print(zlib.crc32(b"x" * 9999))')" ]
}

# bats test_tags=plain
@test "the edited culprit edits as the unedited one does" {
	edit --strict "$CULPRIT" culprit
	edit --strict /bin/bash want
	./culprit edit --strict /bin/bash -o got
	cmp want got
}

@test "strip, objcopy and readelf have nothing to say; names are there" {
	gcc -O2 -w -o a "$sources/cold.c"
	strip -o s a
	for file in a s; do
		edit --strict $file e
		readelf -aW e 2>&1 >/dev/null | tee said
		[ ! -s said ]
		[ "$(nm e | grep -c ' T ')" -ge 3 ]
		strip -o f e 2>said
		objcopy --strip-debug e g 2>>said
		[ ! -s said ]
		for run in ./e ./f ./g; do
			diff <(./a) <($run)
		done
	done
	edit --strict a e
	[ "$(nm e | grep -c ' [tT] work$')" = 2 ]
	# Where nothing is added all code moves by as much, whole pages.
	nm e | grep -wE 'work|complain|main' | sort | while read -r at _ name; do
		echo "$name $((16#$at))"
	done | awk '$1 in old { print ($2 - old[$1]) " " ($2 - old[$1]) % 4096 } { old[$1] = $2 }' | sort -u >moved
	[ "$(wc -l <moved)" = 1 ]
	grep -q ' 0$' moved
}

@test "edited files are known, have an identity of their own, and are not edited again" {
	edit /bin/gzip e
	readelf -n e | grep -q culprit
	[ "$(readelf -n e | grep 'Build ID')" != "$(readelf -n /bin/gzip | grep 'Build ID')" ]
	[ "$(stat -c %a e)" = "$(stat -c %a /bin/gzip)" ]
	run "$CULPRIT" edit e -o f
	fails_with 1 'e: ' 'edited already'
	[ ! -e f ]
	edit /bin/gzip g
	cmp e g
	edit --strict /bin/gzip g
	[ "$(readelf -n e | grep 'Build ID')" != "$(readelf -n g | grep 'Build ID')" ]
}

@test "files that must not be edited" {
	cp /bin/gzip suid
	chmod u+s suid
	run "$CULPRIT" edit suid -o x
	fails_with 1 suid set-user-ID
	cp /bin/gzip signed
	printf '~Module signature appended~\n' >>signed
	run "$CULPRIT" edit signed -o x
	fails_with 1 signed signature
	gcc -O2 -w -nostdlib -static -fno-asynchronous-unwind-tables -o bare -x c - <<-END
		void _start(void) { for (;;) asm volatile("syscall" :: "a"(60), "D"(0)); }
	END
	run "$CULPRIT" edit bare -o x
	fails_with 1 bare 'no unwind tables'
	echo text >text
	run "$CULPRIT" edit text -o x
	fails_with 2 text ELF
	head -c 5000 /bin/gzip >short
	run "$CULPRIT" edit short -o x
	fails_with 2 short damaged
	run "$CULPRIT" edit nothing -o x
	fails_with 2 nothing
	[ ! -e x ]
}

misused() { # WORDS [ARGUMENT...]
	run "$CULPRIT" edit "${@:2}"
	[ "$status" = 2 ] && [ "${#lines[@]}" = 1 ] && [[ $output == *"$1"* ]]
}

@test "wrong usage" {
	cp /bin/gzip g
	misused 'name a program'
	misused ' -o' g
	misused 'another file' g -o g
	misused "'h'" g h -o x
	misused report --json g -o x
	misused nowhere/x g -o nowhere/x
	misused misspelt --only misspelt g -o x
	misused --strange g --strange
	[ ! -e x ]
}

@test "the report, and functions that are chosen" {
	gcc -O2 -w -o a "$sources/short.c"
	run "$CULPRIT" edit --report a
	[ "$status" = 0 ]
	grep -q '^a: [0-9]* of [0-9]* functions edited' <<<"$output"
	grep -q 'too short for a jump at its entry *zero$' <<<"$output"
	"$CULPRIT" edit --report --json a >report
	jq -e '.image == "a" and .functions > .edited and .instructions > .edited_instructions' report
	jq -e '.refused[] | select(.function == "zero") | .reason == "too short for a jump at its entry"' report
	jq -e '([.reasons[].functions] | add) == .functions - .edited' report
	strip -o s a # the start code has no frame descriptions
	[ "$("$CULPRIT" edit --report --json s | jq .undescribed_bytes)" -gt 0 ]

	edit --strict --only main --only 'fi*' a e
	[ "$(nm e | grep -c ' [tT] five$')" = 2 ]
	[ "$(nm e | grep -c ' [tT] sixteen$')" = 1 ]
	diff <(./a) <(./e)
	edit --strict --skip 'fi*' --skip "0x$(nm a | sed -n 's/ T main//p' | sed 's/^0*//')" a e
	[ "$(nm e | grep -c ' [tT] five$')" = 1 ]
	[ "$(nm e | grep -c ' [tT] main$')" = 1 ]
	[ "$(nm e | grep -c ' [tT] sixteen$')" = 2 ]
	diff <(./a) <(./e)
}

@test "debuggers and profilers find their way" {
	command -v gdb >/dev/null || skip "needs gdb"
	gcc -O2 -w -o a "$sources/cold.c"
	edit --strict a e
	gdb -nx -batch -ex 'break complain' -ex run -ex bt ./e >said 2>&1
	grep -q '^#0 .* complain' said
	grep -q '^#1 .* work' said
	grep -q '^#2 .* main' said
}
