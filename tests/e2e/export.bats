# culprit export on the database that tests/fixtures/fixture.h describes.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
}

edges() {
	"$CULPRIT" export -f edges -i t.db "$@"
}

counts() {
	"$CULPRIT" export -f counts -i t.db "$@"
}

@test "edges by image and procedure, with virtual addresses and confidence" {
	edges > got 2> err
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
	[ "$(edges --image 'dem*' 2>/dev/null | grep -c ^image)" = 1 ]
	[ "$(edges --image efef 2>/dev/null | head -n 1)" = "image efefefefefefefefefefefefefefefefefefefef [kernel]" ]
	[ "$(edges --proc hot | grep -c ^procedure)" = 1 ]
	[ "$(edges --proc 'demo!0x401100' | tail -n 1)" = "edge 0x401108 0x401200 120 medium" ]
	[ "$(edges --proc 'page_*' | wc -l)" = 3 ]
	[ "$(edges --comm other | tail -n 1)" = "$hot 30 low" ]
	[ "$(edges -p 300 | tail -n 1)" = "$hot 20 low" ]
	[ "$(edges -e page-faults | tail -n 1)" = "$hot 5 low" ]
	[ "$(edges --epoch 1 2>/dev/null | grep "$hot")" = "$hot 485 high" ]
	[ "$(edges --epoch last | grep "$hot")" = "$hot 20 low" ]
	[ "$(edges --time 2000, | grep "$hot")" = "$hot 20 low" ]
}

@test "nothing selected: no text, a line that says so, and no error" {
	for filter in "--comm nobody" "--image none" "--proc nothing" "--time 5000,6000"; do
		run --separate-stderr edges $filter
		[ "$status" -eq 0 ]
		[ "$output" = "" ]
		[ "$stderr" = "culprit: no edge samples in what was selected" ]
	done
}

@test "-o writes a file, and only when the database can be read" {
	edges > want 2> err
	edges -o got 2> err
	diff want got
	run "$CULPRIT" export -f edges -i none.db -o got
	[ "$status" -eq 2 ]
	diff want got
}

@test "-o that cannot be written" {
	run edges -o nowhere/got
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "nowhere/got: cannot be made" ]]
	run edges -o /dev/full
	[ "$status" -eq 3 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "/dev/full: cannot be written: No space left" ]]
	run bash -c '"$CULPRIT" export -f edges -i t.db 2>/dev/null > /dev/full'
	[ "$status" -eq 3 ]
}

@test "-o does not overwrite the database it reads" {
	ln t.db other.db
	for file in t.db ./other.db; do
		run edges -o $file
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" =~ "the database itself" ]]
	done
	"$CULPRIT" db check t.db
}

@test "wrong usage is one line that names the option and the help" {
	for args in "" "-f" "-f gprof" "-f counts --json" "-f counts --no-pager" "-f counts extra" \
		"-f counts --epoch x" "-f counts --time 10" "-f counts -p x" "-f counts -o"; do
		run "$CULPRIT" export $args
		[ "$status" -eq 2 ] || { echo "export $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "export $args: $output"; false; }
		[[ "$output" =~ "culprit help export" ]] || { echo "export $args: $output"; false; }
	done
	run "$CULPRIT" export -f gprof
	[ "$output" = "culprit export: -f takes counts, bolt, llvm-sample, edges, folded, pprof, speedscope, firefox or csv, not 'gprof'; see 'culprit help export'" ]
}

@test "counts: blocks and edges of what has code, with its scale" {
	counts --comm demo --epoch 1 > got 2> err
	head -n 2 got > top
	cat > want <<'END'
image abababababababababababababababababababab /opt/demo/bin/demo
procedure 0x401000 relative
END
	diff want top
	# The loop went round 9 times of 10; what runs before it runs as often as what is behind.
	awk '
		$1 == "block" { size[$2] = $3; block[$2] = $4 }
		$1 == "edge" { edge[$2 " " $3] = $4 }
		$NF !~ /^(relative|high|medium|low|.*demo)$/ { print "bad line: " $0; bad = 1 }
		function near(a, b) { return a > 0 && a / b > 0.95 && a / b < 1.05 }
		END {
			if (bad || !near(block["0x401004"], 10 * block["0x401000"])) exit 1
			if (!near(edge["0x40100b 0x401004"], 9 * edge["0x40100b 0x40100d"])) exit 1
			if (!near(block["0x40100d"], block["0x401000"])) exit 1
			exit !(size["0x401000"] == 4 && size["0x401004"] == 9)
		}' got
	[ "$(grep -c ^procedure got)" = 1 ]
	[ "$(cat err)" = "culprit: 290 samples are in code that neither the database nor a file has, and are left out" ]
	counts --comm demo --epoch 1 -o other 2> err
	diff got other
	counts --proc hot --epoch 1 > got 2> err
	[ "$(grep -c ^procedure got)" = 1 ]
	[ ! -s err ]
}

@test "counts of nothing" {
	run --separate-stderr counts --comm nobody
	[ "$status" -eq 0 ]
	[ "$output" = "" ]
	[ "$stderr" = "culprit: no samples and no exact counts in what was selected" ]
}

@test "help" {
	run "$CULPRIT" --help
	[[ "$output" =~ "  export " ]]
	for words in "help export" "export --help"; do
		run "$CULPRIT" $words
		[ "$status" -eq 0 ]
		[[ "$output" =~ "usage: culprit export -f FORMAT" ]]
	done
}

@test "databases, events, epochs and processes that are not there: one line, exit 2" {
	for args in "-i none.db" "-e cycles" "--epoch 9" "-p 4242" "-p 100"; do
		run edges $args
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
	"$CULPRIT" export -f edges -i both.db --proc hot > got
	grep -qx "edge 0x40100b 0x401004 1010 high" got
	grep -qx "edge 0x40100b 0x40100d 100 medium" got
}
