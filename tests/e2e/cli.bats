# The program as a whole: verbs, help, usage errors.

setup() {
	cd "$BATS_TEST_TMPDIR"
}

@test "--version names the program" {
	run "$CULPRIT" --version
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^culprit\ [0-9]+\.[0-9]+ ]]
}

@test "--help lists every verb" {
	run "$CULPRIT" --help
	[ "$status" -eq 0 ]
	for verb in record daemon top list why cfg values export edit db doctor; do
		[[ "$output" =~ "  $verb " ]]
	done
}

@test "no verb is wrong usage" {
	run "$CULPRIT"
	[ "$status" -eq 2 ]
	[[ "$output" =~ usage: ]]
}

@test "an unknown verb gets a suggestion" {
	run "$CULPRIT" recrod
	[ "$status" -eq 2 ]
	[ "$output" = "culprit: no verb 'recrod'; did you mean 'culprit record'?" ]
	run "$CULPRIT" flibbertigibbet
	[ "$status" -eq 2 ]
	[[ "$output" =~ "'culprit --help' lists them" ]]
	[[ ! "$output" =~ "did you mean" ]]
}

@test "an unknown option before the verb is wrong usage" {
	run "$CULPRIT" --frobnicate
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "help and --help tell the usage of every verb" {
	for verb in record daemon top list why cfg values export edit db doctor; do
		run "$CULPRIT" help $verb
		[ "$status" -eq 0 ]
		[[ "$output" =~ "usage: culprit $verb" ]]
		run "$CULPRIT" $verb --help
		[ "$status" -eq 0 ]
		[[ "$output" =~ "usage: culprit $verb" ]]
	done
	run "$CULPRIT" help nothing
	[ "$status" -eq 2 ]
}

@test "wrong usage is one line that names the option and the help" {
	for args in "top --frob" "top -n" "top -n 0" "top -n x" "top --by moon" "top --min-share 7" \
		"top --time 10" "top --epoch x" "top --pid x" "top extra" "top --by cpu --proc x" \
		"top --json=yes" "list" "list a b" "list --syntax masm x" \
		"why a b" "why -n 3 x" "why --frob" "why --syntax masm x" "cfg" "cfg x" "cfg -o x.svg" \
		"cfg x -o x.gif" "cfg x -o x" "cfg -o x.svg a b" "db" "db frob" \
		"db merge a.db" "db merge -o x" "db expire" "db expire --age x" "db expire --size -1" \
		"db ls --age 3" "doctor --frob" "doctor extra"; do
		run "$CULPRIT" $args
		[ "$status" -eq 2 ] || { echo "culprit $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "culprit $args: $output"; false; }
		[[ "$output" =~ "culprit help ${args%% *}" ]] || { echo "culprit $args: $output"; false; }
	done
}

@test "a database that is not there: one line, exit 2" {
	for verb in "top" "list x" "why" "why x" "cfg x -o x.dot" "db ls" "db check"; do
		run "$CULPRIT" $verb -i none.db
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" =~ none.db ]]
	done
	[ ! -e none.db ]
}

@test "a text file and a newer database are refused in one line" {
	echo "this is no database, but it is long enough to look at" > text.db
	run "$CULPRIT" top -i text.db
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ text.db ]]
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small new.db
	sqlite3 new.db 'PRAGMA user_version=999'
	run "$CULPRIT" top -i new.db
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ newer ]]
}

@test "output that cannot be written is no success" {
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
	run bash -c '"$CULPRIT" top -i t.db > /dev/full'
	[ "$status" -eq 3 ]
	[[ "$output" =~ "cannot write" ]]
}
