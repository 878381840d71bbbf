# culprit list on known databases.

setup() {
	cd "$BATS_TEST_TMPDIR"
	MAKEDB="$(dirname "$CULPRIT")/tests/fixtures/makedb"
	"$MAKEDB" small t.db
}

list() {
	"$CULPRIT" list -i t.db "$@"
}

@test "assembly with samples from the code that was kept" {
	run list hot --epoch 1
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" =~ "cpu-clock = 600 (60.00% of all), page-faults = 10 (10.00% of all) in hot" ]]
	[[ "$output" =~ 50\ +8.33%\ +401000\ +push\ +%rbp ]]
	[[ "$output" =~ 500\ +83.33%\ +10\ +401004\ +add\ +\$0x1,%rax ]]
	[[ "$output" =~ "jb     401004 <hot+0x4>" ]]
}

@test "fragments follow under their own header" {
	run list hot --epoch 1
	[[ "$output" =~ "fragment at 0x402000, 16 bytes:"$'\n'\ +50\ +8.33%\ +402000\ +nop ]]
}

@test "--syntax intel" {
	run list hot --syntax intel
	[[ "$output" =~ "add    rax,0x1" ]]
}

@test "--json has the documented keys" {
	list hot --epoch 1 --json > out.json
	[ "$(jq -c '[.procedure,.image,.start]' out.json)" = '["hot","/opt/demo/bin/demo","0x401000"]' ]
	[ "$(jq -c '[.lines[0]|has("address","text","samples","file","line")]|all' out.json)" = true ]
	[ "$(jq '[.lines[].samples]|add' out.json)" = 600 ]
	[ "$(jq -c '.lines[2]|[.address,.samples,.counts]' out.json)" = '["0x401004",500,[500,10]]' ]
	[ "$(jq -c '[.events[]|[.name,.samples]]' out.json)" = '[["cpu-clock",600],["page-faults",10]]' ]
}

@test "a name that several procedures have: the hottest, and a line that says so" {
	list twin --json > out.json 2> err
	[ "$(jq -r .start out.json)" = 0x401200 ]
	[ "$(wc -l < err)" -eq 1 ]
	grep -q '2 procedures are called twin; this is the hottest, demo!0x401200' err
}

@test "a pattern that fits several: candidates, exit 2" {
	run list 'tw*'
	[ "$status" -eq 2 ]
	[[ "$output" =~ 60\ +demo!0x401200\ +twin ]]
	[[ "$output" =~ 40\ +demo!0x401300\ +twin ]]
}

@test "procedures by part of a name, by image and address, by address" {
	[ "$(list page_f --json | jq -r .procedure)" = page_fault ]
	[ "$(list 'demo!0x401304' --json | jq -r .start)" = 0x401300 ]
	[ "$(list 'demo!0x401100' --json | jq -r .procedure)" = 'demo!0x401100' ]
	[ "$(list 0x402008 --image demo --json | jq -r .procedure)" = hot ]
	run list nothing
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "without code the sampled addresses are listed" {
	list 'demo!0x401100' --json > out.json
	[ "$(jq -c '[.lines[]|[.address,.text,.samples]]' out.json)" = '[["0x401100",null,50],["0x401104",null,150]]' ]
	run list 'demo!0x401100'
	[ "$status" -eq 0 ]
	[[ "$output" =~ "the database has no code of it and the file is gone" ]]
}

busy_program() {
	cat > busy.c <<'END'
__attribute__((noinline)) long busy(long n) {
	long s = 0;
	while (n--) s ^= n * 7;
	return s;
}
int main(int argc, char **argv) { (void)argv; return (int)busy(argc); }
END
	cc "$@" -O0 -o busy busy.c
	"$MAKEDB" elf elf.db "$PWD/busy" busy=90 main=10
}

@test "source interleaved with assembly, code from the file" {
	busy_program -g
	run "$CULPRIT" list -i elf.db busy
	[ "$status" -eq 0 ]
	[[ "$output" =~ "busy.c:3 "[[:space:]]+"while (n--) s ^= n * 7;" ]]
	[[ "$output" =~ 90\ +100.00% ]]
	[ "$("$CULPRIT" list -i elf.db busy --json | jq -c '.lines[0]|[(.file|split("/")|last),.line,.samples]')" = '["busy.c",1,90]' ]
	run "$CULPRIT" list -i elf.db busy --no-source
	[[ ! "$output" =~ "busy.c" ]]
	[[ "$output" =~ ret ]]
}

@test "assembly alone without DWARF" {
	busy_program
	run "$CULPRIT" list -i elf.db busy
	[ "$status" -eq 0 ]
	[[ "$output" =~ "no line information" ]]
	[[ "$output" =~ ret ]]
}

@test "instructions are those that objdump finds" {
	busy_program
	objdump -d --no-show-raw-insn --disassemble=busy busy | sed -n 's/^ *\([0-9a-f]*\):.*/0x\1/p' > want
	"$CULPRIT" list -i elf.db busy --json | jq -r '.lines[].address' > got
	[ "$(wc -l < want)" -gt 5 ]
	diff want got
}

@test "a file that was replaced is not taken for the one that was sampled" {
	busy_program -g
	echo 'int main(void) { return 3; }' > other.c
	cc -o busy other.c
	run "$CULPRIT" list -i elf.db busy
	[ "$status" -eq 0 ]
	[[ "$output" =~ "not the one that was sampled" ]]
	[[ ! "$output" =~ "while (n--)" ]]
}
