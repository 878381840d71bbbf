# culprit db: ls, check, merge, expire.

setup() {
	cd "$BATS_TEST_TMPDIR"
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
}

@test "ls lists epochs" {
	run "$CULPRIT" db ls t.db
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" =~ ^epoch\ +host\ +started ]]
	[[ "${lines[1]}" =~ ^\ *1\ +alpha.*cpu-clock,page-faults ]]
	"$CULPRIT" db ls -i t.db --json > out.json
	[ "$(jq -c '[.epochs[0]|has("id","host","started","ended","events","samples","bytes")]|all' out.json)" = true ]
	[ "$(jq -c '.epochs[0]|[.id,.host,.started,.ended,.events]' out.json)" = \
		'[1,"alpha",1000,1060,["cpu-clock","page-faults"]]' ]
	[ "$(jq -c '.epochs[1].samples' out.json)" = 100 ]
}

@test "check finds nothing in a sound database" {
	run "$CULPRIT" db check t.db
	[ "$status" -eq 0 ]
	[ "$output" = "t.db: no faults" ]
}

@test "check finds a damaged profile, exit 1" {
	sqlite3 t.db "UPDATE profiles SET data = x'00ffff' WHERE id = 1"
	run "$CULPRIT" db check t.db
	[ "$status" -eq 1 ]
	[[ "$output" =~ "fault" ]]
	run "$CULPRIT" top -i t.db
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "check finds a truncated file, exit 1; nothing crashes on it" {
	size=$(stat -c %s t.db)
	for part in 2 3 5 9; do
		head -c $((size - size / part)) t.db > cut.db
		run "$CULPRIT" db check cut.db
		[ "$status" -eq 1 ]
		run "$CULPRIT" top -i cut.db
		[ "$status" -eq 0 ] || [ "$status" -eq 2 ]
	done
}

@test "check of several files has the worst answer" {
	cp t.db u.db
	run "$CULPRIT" db check t.db u.db
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 2 ]
	sqlite3 u.db "UPDATE profiles SET samples = samples + 1 WHERE id = 1"
	run "$CULPRIT" db check t.db u.db
	[ "$status" -eq 1 ]
}

@test "merge adds up; images become one, epochs stay apart" {
	cp t.db u.db
	"$CULPRIT" db merge -o all.db t.db u.db
	[ "$("$CULPRIT" db ls all.db --json | jq '.epochs|length')" = 4 ]
	[ "$("$CULPRIT" top -i all.db --json | jq -c '.rows[0]|[.procedure,.samples]')" = '["hot",1400]' ]
	[ "$("$CULPRIT" top -i all.db --by image --json | jq '[.rows[]|select(.event=="cpu-clock")]|length')" = 4 ]
	run "$CULPRIT" db check all.db
	[ "$status" -eq 0 ]
	[ "$(stat -c %a all.db)" = 600 ]
}

@test "merge into itself is refused, and a failed merge leaves nothing" {
	run "$CULPRIT" db merge -o t.db t.db
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	run "$CULPRIT" db merge -o new.db t.db none.db
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e new.db ]
	cp t.db keep.db
	run "$CULPRIT" db merge -o keep.db t.db none.db
	[ "$status" -eq 2 ]
	[ "$("$CULPRIT" db ls keep.db --json | jq '.epochs|length')" = 2 ]
}

@test "expire by date, age and size" {
	cp t.db u.db
	run "$CULPRIT" db expire t.db --before 1500
	[ "$status" -eq 0 ]
	[ "$("$CULPRIT" db ls t.db --json | jq -c '[.epochs[].id]')" = "[2]" ]
	run "$CULPRIT" db check t.db
	[ "$status" -eq 0 ]
	run "$CULPRIT" db expire -i t.db --age 30
	[ "$status" -eq 0 ]
	[ "$("$CULPRIT" db ls t.db --json | jq '.epochs|length')" = 0 ]
	run "$CULPRIT" top -i t.db
	[ "$status" -eq 0 ]
	run "$CULPRIT" db expire u.db --size 1G
	[ "$status" -eq 0 ]
	[ "$("$CULPRIT" db ls u.db --json | jq '.epochs|length')" = 2 ]
}

@test "the reference of the schema has every table and column, and its queries work" {
	local doc=$BATS_TEST_DIRNAME/../../doc/schema.md
	sqlite3 -readonly t.db "SELECT m.name || ' ' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type = 'table'" >columns
	[ -s columns ]
	while read -r table column; do
		[ "$column" = id ] || grep "^| .$table. |" "$doc" | grep -q "\`$column\`"
	done <columns
	awk '/^```sql/ { on = 1; next } /^```/ { on = 0 } on' "$doc" >queries
	sqlite3 -bail -readonly t.db <queries >answers
	[ -s answers ]
}
