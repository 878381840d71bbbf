# culprit values: on a program whose values are known, recorded once, and on the database that
# tests/fixtures/fixture.h describes.

bats_require_minimum_version 1.5.0
load lib

setup_file() {
	export recorded=$BATS_FILE_TMPDIR/values.db
	[ "$(id -u)" = 0 ] || return 0
	"${CULPRIT:?}" record --values -e cpu-clock -F 4000 -o "$recorded" -- \
		"$(dirname "$BATS_TEST_DIRNAME")/../build/tests/e2e/programs/values" 3 \
		2> "$BATS_FILE_TMPDIR/said" || true
}

setup() {
	common_setup
}

need_values() {
	need_root "interprets programs in the kernel"
	! grep -q 'no values' "$BATS_FILE_TMPDIR/said" || skip "$(grep -m 1 'no values' "$BATS_FILE_TMPDIR/said")"
}

values() { # [OPTION...]
	"$CULPRIT" values -i "$recorded" "$@"
}

# The row that fits, as JSON; fails unless there is exactly one.
row() { # CONDITION [OPTION...]
	local condition=$1
	shift
	values --json "$@" | jq -ec "[.rows[] | select($condition)] | if length == 1 then .[0] else error(\"\(length) rows\") end"
}

# Fails unless the share of a value lies within its error around the truth, with the confidence's slack.
holds() { # ROW VALUE TRUTH
	jq -e --arg v "$2" --argjson t "$3" \
		'[.values[] | select(.value == $v)][0] | (.share - $t) as $d |
		 ($d * $d) <= ([.error * 2, 0.03] | max | . * .)' <<< "$1" ||
		{ echo "$2 should have $3: $1"; return 1; }
}

@test "an argument that is nearly always the same" {
	need_values
	r=$(row '.procedure == "scale" and .operand == "argument 2 %rsi"')
	holds "$r" 0x30 0.96875
	holds "$r" 0x7 0.03125
	[[ "$(jq -r .advice <<< "$r")" =~ ^"specialise: argument 2 (%rsi) is 0x30 in 9" ]]
}

@test "a divisor" {
	need_values
	r=$(row '.procedure == "divide" and (.operand | startswith("divisor"))')
	holds "$r" 0xa 0.984
	holds "$r" 0x3 0.016
	[[ "$(jq -r .instruction <<< "$r")" =~ ^div ]]
	[[ "$(jq -r .advice <<< "$r")" =~ "is 0xa in 9" ]]
}

@test "an indirect call: its targets by name" {
	need_values
	r=$(row '.procedure == "shapes" and .kind == "target" and (.instruction | startswith("call"))' --targets)
	[ "$(jq -r '.values[0].name' <<< "$r")" = circle ]
	[ "$(jq -r '.values[1].name' <<< "$r")" = square ]
	[ "$(jq '.values[0].share > 0.95' <<< "$r")" = true ]
	[[ "$(jq -r .advice <<< "$r")" =~ ^"devirtualise: goes to circle" ]]
	[ "$(values --json --targets | jq '[.rows[] | select(.kind != "target")] | length')" = 0 ]
}

@test "a stride" {
	need_values
	r=$(row '.procedure == "gather"' --strides)
	holds "$r" 0x100 1
	[ "$(jq -r .kind <<< "$r")" = stride ]
}

@test "a load that always finds the same" {
	need_values
	r=$(row '.procedure == "bound" and .kind == "result" and (.instruction | startswith("mov    (%rdi)"))')
	holds "$r" 0xbc614e 1
	[[ "$(jq -r .advice <<< "$r")" =~ ^"hoist: loads 0xbc614e" ]]
}

@test "the size of copies, by call site too" {
	need_values
	r=$(row '.procedure == "memcpy@plt" and .operand == "argument 3 %rdx"')
	holds "$r" 0x28 1
	[[ "$(jq -r .advice <<< "$r")" =~ ^"copy: the size is 40 bytes" ]]
	r=$(row '.procedure == "memcpy@plt" and .operand == "argument 3 %rdx"' --by-call-site)
	[[ "$(jq -r .call_site <<< "$r")" =~ ^"copies+0x" ]]
}

@test "the overview ranks what is hot and invariant, with advice" {
	need_values
	values > out
	cat out
	for word in "specialise: " "division: " "devirtualise: " "hoist: " "copy: "; do
		grep -q -- "=> .*$word" out
	done
	grep -q "^scale .* of the time .*/values at 0x" out
	run ! grep 'mov *\$' out
	tail -n 2 out | grep -q "use --json to see them"
	[ "$(values -n 3 | grep -c '^ *[0-9.]*% ')" = 3 ]
}

@test "a procedure, an instruction, a pattern" {
	need_values
	values divide > out
	grep -q 'divisor .* div ' out
	grep -q '^divide ' out
	[ "$(grep -c ' of the time ' out)" = 1 ]
	address=$(row '.procedure == "divide" and (.operand | startswith("divisor"))' | jq -r .address)
	values --json "$address" --image values | jq -e '[.rows[].address] | unique == ["'"$address"'"]'
	values --json "values!$address" | jq -e '.rows | length > 0'
	values --json 'sca*' | jq -e '[.rows[].procedure] | unique | index("scale") != null'
	values divide --syntax intel | grep -q 'div    r'
}

@test "kinds" {
	need_values
	for kind in result source address stride entry target; do
		values --json --kind $kind | jq -e --arg k $kind \
			'(.rows | length > 0) and all(.rows[]; .kind | startswith($k))' > /dev/null ||
			{ echo "--kind $kind"; false; }
	done
	values --json --strides --kind source | jq -e '[.rows[].kind] | unique == ["source", "stride"]'
}

@test "every row has the keys that scripts rely on" {
	need_values
	values --json | jq -e 'all(.rows[]; has("image") and has("address") and has("procedure") and
		has("instruction") and has("operand") and has("samples") and has("advice") and
		(.values | length > 0 and all(.[]; has("value") and has("share") and has("error") and
			.share >= 0 and .share <= 1 and .error >= 0 and .low <= .share + 1e-9 and .high >= .share - 1e-9)))' > /dev/null
	values --json | jq -e '.values > 1000 and .edges > 1000 and .time > 1000 and .refused == 0' > /dev/null
}

@test "the database with values passes its check and merges" {
	need_values
	"$CULPRIT" db check "$recorded"
	"$CULPRIT" db merge -o both.db "$recorded"
	once=$(row '.procedure == "divide" and (.operand | startswith("divisor"))' | jq -c '[.samples, .values]')
	again=$("$CULPRIT" values -i both.db --json | jq -c '.rows[] | select(.procedure == "divide" and (.operand | startswith("divisor"))) | [.samples, .values]')
	[ "$once" = "$again" ]
}

# ---- --only ----

# Records with the names given; then `only_rows` tells the procedures that have values.
only() { # NAME... [OPTION...] -- COMMAND...
	local names=()
	while [[ $1 != -* ]]; do
		names+=(--only "$1")
		shift
	done
	"$CULPRIT" record --values "${names[@]}" -e cpu-clock -F 4000 -o "$db" "$@" 2> said
	cat said
}

only_rows() {
	"$CULPRIT" values -i "$db" --json | jq -c '[.rows[].procedure] | unique'
}

# The procedures that have edges.
only_edges() {
	"$CULPRIT" export -i "$db" -f edges | awk '/^procedure / { p = $2 } /^edge / { print p }' | sort -u
}

# bats test_tags=plain
@test "only: one procedure, with the same values as ever" {
	need_values
	only divide -- "$programs/values" 1.2
	[ "$(only_rows)" = '["divide"]' ]
	recorded=$db
	r=$(row '.procedure == "divide" and (.operand | startswith("divisor"))')
	holds "$r" 0xa 0.984
	[ "$(only_edges | wc -l)" = 1 ]
	run ! grep -- --only said
	# Samples are kept of all.
	"$CULPRIT" top -i "$db" --json | jq -e '[.rows[].procedure] | index("scale") and index("gather")'
}

# bats test_tags=plain
@test "only: arguments are seen though the caller is not named" {
	need_values
	only values!scale 'boun[d]' -- "$programs/values" 1.2
	[ "$(only_rows)" = '["bound","scale"]' ]
	recorded=$db
	r=$(row '.procedure == "scale" and .operand == "argument 2 %rsi"')
	holds "$r" 0x30 0.96875
}

# bats test_tags=plain
@test "only: an image, on the whole machine, among others" {
	need_values
	cp "$programs/values" named
	"$programs/values" 1.5 &
	only named -a -- ./named 1.5
	wait
	"$CULPRIT" values -i "$db" --json | jq -e --arg p "$dir/named" '[.rows[].image] | unique == [$p]'
	"$CULPRIT" export -i "$db" -f edges | grep '^image ' | grep -v "$dir/named" > others || true
	[ ! -s others ]
}

# bats test_tags=plain
@test "only: what is started and loaded later" {
	need_values
	gcc -shared -fPIC -O2 -g -o plugin.so "$root/tests/e2e/programs/plugin/plugin.c"
	only plugin_work -- sh -c "'$programs/dlopener' ./plugin.so 1.6"
	[ "$(only_rows)" = '["plugin_work"]' ]
	run ! grep -- --only said
}

# bats test_tags=plain
@test "only: a procedure without a name, by its address" {
	need_values
	strip -o bare "$programs/values"
	start=$(nm "$programs/values" | awk '$3 == "divide" { print $1 }' | sed 's/^0*/0x/')
	only "bare!$start" -- ./bare 1.2
	[ "$(only_rows)" = "[\"bare!$start\"]" ]
}

@test "only: in the kernel" {
	need_values
	only '[kernel]' -- dd if=/dev/zero of=/dev/null bs=64 count=1500000 status=none
	"$CULPRIT" values -i "$db" --json | jq -e '(.rows | length > 0) and ([.rows[].image] | unique == ["[kernel]"])'
}

@test "only: what a plug-in makes" {
	need_values
	"$CULPRIT" record --values --plugin conflicts -e cpu-clock -F 4000 -o "$db" -- "$programs/plugin_loads" blocked 0.6
	"$CULPRIT" values -i "$db" --json --kind conflict | jq -e '.rows | length > 0'
	rm "$db"
	"$CULPRIT" record --values --plugin conflicts --only main -e cpu-clock -F 4000 -o "$db" -- "$programs/plugin_loads" blocked 0.6
	"$CULPRIT" values -i "$db" --json --kind conflict | jq -e '[.rows[].procedure] - ["main"] == []'
	rm "$db"
	"$CULPRIT" record --values --plugin conflicts --only blocked -e cpu-clock -F 4000 -o "$db" -- "$programs/plugin_loads" blocked 0.6
	"$CULPRIT" values -i "$db" --json --kind conflict | jq -e '[.rows[].procedure] | unique == ["blocked"]'
}

@test "only: from inside the program" {
	"$CULPRIT" record --values=upcall --only divide -e cpu-clock -F 1000 -o "$db" -- "$programs/values" 1.2
	[ "$(only_rows)" = '["divide"]' ]
}

@test "only: names that nothing has" {
	need_values
	only divid libc.so nosuch -- "$programs/values" 0.4
	[ "$(only_rows)" = '[]' ]
	grep -q "^culprit: --only divid: nothing that ran has this name; did you mean 'divide'?$" said
	grep -q "^culprit: --only libc.so: nothing that ran has this name; did you mean 'libc.so.6'?$" said
	grep -q "^culprit: --only nosuch: nothing that ran has this name" said
	[ "$(grep -c -- '--only' said)" = 3 ]
}

@test "only: wrong usage" {
	for args in "--only x" "--values --only 0x4330" "--values --only="; do
		run "$CULPRIT" record $args -- true
		[ "$status" -eq 2 ] || { echo "record $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "record $args: $output"; false; }
	done
}

@test "without values: targets are there, and a line says how to get the rest" {
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
	"$CULPRIT" values -i t.db --targets > out
	grep -q '^hot ' out
	grep -q 'ret' out
	"$CULPRIT" values -i t.db --json --targets | jq -e '.rows[0].values[0] | .value == "0x700" and .image == null'
	run "$CULPRIT" values -i t.db --comm nobody
	[ "$status" -eq 0 ]
	[ "$output" = "no values in what was selected; 'culprit record --values' keeps them" ]
	run "$CULPRIT" values -i t.db --comm nobody --json
	[ "$(jq -c .rows <<< "$output")" = "[]" ]
}

@test "what has no values: one line, exit 2" {
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
	for args in "-i t.db nosuch" "-i t.db 0x999999" "-i none.db" "-i t.db -e cycles" "-i t.db --plugin nothing"; do
		run "$CULPRIT" values $args
		[ "$status" -eq 2 ] || { echo "values $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "values $args: $output"; false; }
	done
}

@test "wrong usage is one line that names the option and the help" {
	for args in "a b" "-n" "-n 0" "-n x" "--kind" "--kind moon" "--syntax masm" "--frob" "--json=yes"; do
		run "$CULPRIT" values $args
		[ "$status" -eq 2 ] || { echo "values $args: status $status"; false; }
		[ "${#lines[@]}" -eq 1 ] || { echo "values $args: $output"; false; }
		[[ "$output" =~ "culprit help values" ]] || { echo "values $args: $output"; false; }
	done
	for words in "help values" "values --help"; do
		run "$CULPRIT" $words
		[ "$status" -eq 0 ]
		[[ "$output" =~ "usage: culprit values" ]]
	done
}
