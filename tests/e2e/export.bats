# culprit export on the database that tests/fixtures/fixture.h describes.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
}

counts() {
	"$CULPRIT" export -f counts -i t.db "$@"
}

@test "edges by image and procedure, with virtual addresses and confidence" {
	counts > got 2> err
	cat > want <<'END'
image abababababababababababababababababababab /opt/demo/bin/demo
procedure 0x401000 relative
edge 0x40100b 0x401004 505 high
edge 0x40100b 0x40100d 50 low
edge 0x40100e 0x401110 10 low
edge 0x402008 0x401004 3 low
procedure 0x401100 relative
edge 0x401108 0x401200 120 medium
image efefefefefefefefefefefefefefefefefefefef [kernel]
procedure 0xffffffff81000500 relative
edge 0xffffffff81000510 0xffffffff81000520 100 medium
END
	diff want got
	[ "$(cat err)" = "culprit: 16 edge samples are in code of no procedure that the database knows, and are left out" ]
}

@test "filters by image, build-id, procedure, process, event, epoch and time" {
	hot="edge 0x40100b 0x401004"
	[ "$(counts --image 'dem*' 2>/dev/null | grep -c ^image)" = 1 ]
	[ "$(counts --image efef 2>/dev/null | head -n 1)" = "image efefefefefefefefefefefefefefefefefefefef [kernel]" ]
	[ "$(counts --proc hot | grep -c ^procedure)" = 1 ]
	[ "$(counts --proc 'demo!0x401100' | tail -n 1)" = "edge 0x401108 0x401200 120 medium" ]
	[ "$(counts --proc 'page_*' | wc -l)" = 3 ]
	[ "$(counts --comm other | tail -n 1)" = "$hot 30 low" ]
	[ "$(counts -p 300 | tail -n 1)" = "$hot 20 low" ]
	[ "$(counts -e page-faults | tail -n 1)" = "$hot 5 low" ]
	[ "$(counts --epoch 1 2>/dev/null | grep "$hot")" = "$hot 485 high" ]
	[ "$(counts --epoch last | grep "$hot")" = "$hot 20 low" ]
	[ "$(counts --time 2000, | grep "$hot")" = "$hot 20 low" ]
}

@test "nothing selected: no text, a line that says so, and no error" {
	for filter in "--comm nobody" "--image none" "--proc nothing" "--time 5000,6000"; do
		run --separate-stderr counts $filter
		[ "$status" -eq 0 ]
		[ "$output" = "" ]
		[ "$stderr" = "culprit: no edge samples in what was selected" ]
	done
}

@test "-o writes a file, and only when the database can be read" {
	counts > want 2> err
	counts -o got 2> err
	diff want got
	run "$CULPRIT" export -f counts -i none.db -o got
	[ "$status" -eq 2 ]
	diff want got
}

@test "-o that cannot be written" {
	run counts -o nowhere/got
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "nowhere/got: cannot be made" ]]
	run counts -o /dev/full
	[ "$status" -eq 3 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "/dev/full: cannot be written: No space left" ]]
	run bash -c '"$CULPRIT" export -f counts -i t.db 2>/dev/null > /dev/full'
	[ "$status" -eq 3 ]
}

@test "-o does not overwrite the database it reads" {
	ln t.db other.db
	for file in t.db ./other.db; do
		run counts -o $file
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" =~ "the database itself" ]]
	done
	"$CULPRIT" db check t.db
}

@test "wrong usage is one line that names the option and the help" {
	for args in "" "-f" "-f bolt" "-f counts --json" "-f counts --no-pager" "-f counts extra" \
		"-f counts --epoch x" "-f counts --time 10" "-f counts -p x" "-f counts -o"; do
		run "$CULPRIT" export $args
		[ "$status" -eq 2 ] || { echo "export $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "export $args: $output"; false; }
		[[ "$output" =~ "culprit help export" ]] || { echo "export $args: $output"; false; }
	done
	run "$CULPRIT" export -f bolt
	[ "$output" = "culprit export: -f takes counts, not 'bolt'; see 'culprit help export'" ]
}

@test "help" {
	run "$CULPRIT" --help
	[[ "$output" =~ "  export " ]]
	for words in "help export" "export --help"; do
		run "$CULPRIT" $words
		[ "$status" -eq 0 ]
		[[ "$output" =~ "usage: culprit export -f counts" ]]
	done
}

@test "databases, events, epochs and processes that are not there: one line, exit 2" {
	for args in "-i none.db" "-e cycles" "--epoch 9" "-p 4242" "-p 100"; do
		run counts $args
		[ "$status" -eq 2 ] || { echo "export $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "export $args: $output"; false; }
	done
	[ ! -e none.db ]
	[[ "$output" =~ "record --per-process" ]]
}

@test "a damaged edge profile is found, and named" {
	sqlite3 t.db "UPDATE profiles SET data = x'040001' WHERE type = (SELECT id FROM names WHERE text = 'edge')"
	run counts
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "culprit db check" ]]
	run "$CULPRIT" db check t.db
	[ "$status" -eq 1 ]
	[[ "$output" =~ "is no edge profile" ]]
}

@test "edge profiles change no other report" {
	cp t.db plain.db
	sqlite3 plain.db "DELETE FROM profiles WHERE type = (SELECT id FROM names WHERE text = 'edge')"
	for report in "top" "top --by image" "top --by comm" "list hot"; do
		"$CULPRIT" $report --json -i t.db > with
		"$CULPRIT" $report --json -i plain.db > without
		diff with without
	done
	[ "$("$CULPRIT" db ls --json t.db | jq -c '[.epochs[].samples]')" = '[1100,100]' ]
	[ "$("$CULPRIT" db ls --json plain.db | jq -c '[.epochs[].samples]')" = '[1100,100]' ]
	"$CULPRIT" db check t.db plain.db
}

@test "merged databases add up" {
	cp t.db again.db
	"$CULPRIT" db merge -o both.db t.db again.db
	"$CULPRIT" db check both.db
	"$CULPRIT" export -f counts -i both.db --proc hot > got
	grep -qx "edge 0x40100b 0x401004 1010 high" got
	grep -qx "edge 0x40100b 0x40100d 100 medium" got
}
