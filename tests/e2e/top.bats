# culprit top on the database that tests/fixtures/fixture.h describes.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small t.db
}

top() {
	"$CULPRIT" top -i t.db "$@"
}

# The value of a jq expression over top --json.
query() {
	local expression="$1"
	shift
	top --json "$@" | jq -c "$expression"
}

@test "the header has totals and what is not attributed" {
	run top --epoch 1
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "Total samples for event type cpu-clock = 1000, page-faults = 100" ]
	[ "${lines[1]}" = "cpu-clock: 10 unknown (0.99%), 5 lost (0.50%), 3 throttled (0.30%)" ]
}

@test "rows are sorted, with shares and cumulative shares, events side by side" {
	run top --epoch 1
	[[ "${lines[3]}" =~ ^cpu-clock\ +%\ +cum%\ +page-faults\ +%\ +procedure\ +image$ ]]
	[[ "${lines[4]}" =~ ^\ *600\ +60.00%\ +60.00%\ +10\ +10.00%\ +hot\ +/opt/demo/bin/demo$ ]]
	[[ "${lines[5]}" =~ ^\ *200\ +20.00%\ +80.00%\ +0\ +0.00%\ +demo!0x401100\ +/opt/demo/bin/demo$ ]]
	[ "${#lines[@]}" -eq 11 ]
}

@test "what has no procedure is one row of its image" {
	[ "$(query '[.rows[]|select(.image=="/opt/demo/lib/libbare.so" and .event=="cpu-clock")]|length')" = 1 ]
	[ "$(query '.rows[]|select(.procedure=="(unknown)")|.samples,.start')" = $'10\nnull' ]
}

@test "--json has the documented keys" {
	query '.events[0]|keys' | grep -q '"lost","missed","name","period","samples","scale","throttled","unknown"'
	[ "$(query '.events[0]|[.samples,.unknown,.lost,.throttled,.period]' --epoch 1)" = "[1000,10,5,3,1000000]" ]
	[ "$(query '[.rows[0]|has("event","samples","share","cumulative","procedure","start","image","build_id")]|all')" = true ]
	[ "$(query '.rows[0]|[.event,.procedure,.start,.image,.build_id]')" = \
		'["cpu-clock","hot","0x401000","/opt/demo/bin/demo","abababababababababababababababababababab"]' ]
	[ "$(query '.rows[0].share' --epoch 1)" = 0.6 ]
}

@test "every view accounts for every sample" {
	for by in procedure image process thread comm line cgroup cpu; do
		[ "$(query '[.rows[]|select(.event=="cpu-clock").samples]|add' --by $by --epoch 1)" = 1000 ]
		[ "$(query '[.rows[]|select(.event=="cpu-clock").share]|add|.*1e6|round' --by $by --epoch 1)" = 1000000 ]
		[ "$(query '[.rows[]|select(.event=="cpu-clock").cumulative]|last|.*1e6|round' --by $by --epoch 1)" = 1000000 ]
		run top --by $by
		[ "$status" -eq 0 ]
	done
}

@test "views have keys of their own" {
	[ "$(query '.rows[0]|has("image") and has("build_id") and (has("procedure")|not)' --by image)" = true ]
	[ "$(query '.rows[0]|[.process,.pid,.started]' --by process --epoch 1)" = '["demo",100,900]' ]
	[ "$(query '.rows[1]|[.thread,.tid,.process,.pid]' --by thread --epoch 1)" = '["worker",101,"demo",100]' ]
	[ "$(query '.rows[0].cgroup' --by cgroup)" = '"/test"' ]
	[ "$(query '[.rows[]|select(.event=="cpu-clock").cpu]' --by cpu)" = "[0,1]" ]
	[ "$(query '.rows[0]|has("file") and has("line") and has("image")' --by line)" = true ]
}

@test "filters by comm, image, build-id, procedure, epoch and time" {
	[ "$(query '.events[0].samples' --comm other)" = 60 ]
	[ "$(query '.events[0].samples' --image libbare.so)" = 50 ]
	[ "$(query '.events[0].samples' --image cdcdcd)" = 50 ]
	[ "$(query '.events[0].samples' --proc 'tw*')" = 100 ]
	[ "$(query '.events[0].samples' --epoch 2)" = 100 ]
	[ "$(query '.events[0].samples' --epoch 1-2)" = 1100 ]
	[ "$(query '.events[0].samples' --epoch last)" = 100 ]
	[ "$(query '.events[0].samples' --time 2000,)" = 100 ]
	[ "$(query '.events[0].samples' --time ,1500)" = 1000 ]
	[ "$(query '.rows|length' --time 5000,6000)" = 0 ]
	run top --comm other
	[[ "${lines[0]}" =~ "= 60 (of 1100)" ]]
}

@test "--pid: totals always, procedures when they were kept by process" {
	[ "$(query '.events[0].samples' --pid 100 --by image)" = 940 ]
	[ "$(query '.rows[0]|[.procedure,.samples]' --pid 300)" = '["hot",100]' ]
	run top --pid 100
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "record --per-process" ]]
	run top --pid 4242
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "events can be chosen and sorted by" {
	[ "$(query '[.events[].name]' -e page-faults)" = '["page-faults"]' ]
	[ "$(query '[.events[].name]' --sort page-faults)" = '["page-faults","cpu-clock"]' ]
	run top --sort page-faults
	[[ "${lines[4]}" =~ page_fault ]]
	run top -e cycles
	[ "$status" -eq 2 ]
	[ "$output" = "culprit: event 'cycles' was not sampled; the database has: cpu-clock, page-faults" ]
}

@test "-n and --min-share cut, and say so" {
	run top -n 2 --epoch 1
	[ "${#lines[@]}" -eq 7 ]
	[[ "${lines[6]}" =~ ^"5 smaller rows with 20.00% of cpu-clock not shown" ]]
	[ "$(query '[.rows[]|select(.event=="cpu-clock")]|length' --min-share 5% --epoch 1)" = 4 ]
	[ "$(query '.rows|length' -n 1)" = 2 ]
}

@test "no samples: says so and is no error" {
	run top --comm nobody
	[ "$status" -eq 0 ]
	[[ "$output" =~ "no samples" ]]
}

@test "the default database is culprit.db here" {
	mv t.db culprit.db
	run "$CULPRIT" top
	[ "$status" -eq 0 ]
	[[ "$output" =~ hot ]]
}

@test "lines come from the file while it is there" {
	cat > busy.c <<'END'
__attribute__((noinline)) long busy(long n) {
	long s = 0;
	while (n--) s ^= n * 7;
	return s;
}
int main(int argc, char **argv) { (void)argv; return (int)busy(argc); }
END
	cc -g -O0 -o busy busy.c
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" elf elf.db "$PWD/busy" busy=90 main=10
	[ "$("$CULPRIT" top -i elf.db --by line --json | jq -c '.rows[0]|[(.file|split("/")|last),.line,.samples]')" = '["busy.c",1,90]' ]
	rm busy
	run "$CULPRIT" top -i elf.db --by line
	[ "$status" -eq 0 ]
	[[ "$output" =~ "busy (the file is gone, no lines)" ]]
}

@test "a terminal gets colour and short paths, a pipe gets neither" {
	command -v script || skip "no script(1)"
	run top
	[[ ! "$output" =~ $'\033' ]]
	[[ ! "$output" =~ "…" ]]
	run script -qec "stty cols 60; TERM=xterm NO_COLOR= $CULPRIT top -i t.db --no-pager" /dev/null
	[[ "$output" =~ $'\033' ]]
	[[ "$output" =~ "…/" ]]
}

@test "several recordings in one database are said to be added up" {
	run top
	[[ $output == *"2 epochs together"* ]]
	run top --epoch last
	[[ $output != *"epochs together"* ]]
}

# What a terminal shows while keys are typed, one every quarter of a second.
typed() { # KEY... -- [OPTION...]
	local keys=()
	while [ "$1" != -- ]; do
		keys+=("$1")
		shift
	done
	shift
	{
		sleep 1
		for k in "${keys[@]}"; do
			printf "$k"
			sleep 0.25
		done
	} | TERM=xterm CULPRIT_PAGER=cat script -qec "'$CULPRIT' top --live -i t.db $*" /dev/null
}

@test "--live: views, rows, search, a procedure, and the terminal as it was" {
	run typed b '\033[B' '\r' '/' bar '\r' q -- --epoch 1
	[ "$status" -eq 0 ]
	[[ $output == *"by procedure, of all time"* ]]
	[[ $output == *"by image, of all time"* ]]
	[[ $output == *"in /opt/demo/"* ]]
	[[ $output == *'rows with: bar_'* ]]
	[[ $output == *$'\033[7m'* ]]
	[[ $output == *$'\033[?1049l'* ]]
	run typed '\r' x q -- --epoch 1
	[[ $output == *"any key: back to the list"*"by procedure"* ]]
}

@test "--live: ends with its terminal, and wants one" {
	run -2 top --live
	[[ $output == *"wants a terminal"* ]]
	run typed -- --epoch 1
	[ "$status" -eq 0 ]
	run -2 top --live --json
}
