# culprit stats on databases whose samples are known (tests/fixtures/fixture.h).

setup() {
	load lib.bash
	common_setup
	makedb=$(dirname "$CULPRIT")/tests/fixtures/makedb
	printf '%s\n' '__attribute__((noinline)) long work(long n) { while (n--) __asm__(""); return n; }' \
		'__attribute__((noinline)) long rest(long n) { return n * work(n); }' \
		'int main(int c, char **v) { return (int)(rest(c) + (long)v); }' > prog.c
	cc -O1 -o prog prog.c
}

run_of() { # DATABASE WORK REST
	"$makedb" code "$1" prog work="$2" rest="$3"
}

stats() { # EXPRESSION ARGUMENT...
	local expression=$1
	shift
	"$CULPRIT" stats --json "$@" | jq -c "$expression"
}

three_runs() {
	run_of a.db 100 50
	run_of b.db 120 50
	run_of c.db 170 50
}

@test "sets, range, sum, mean and standard deviation are those of the paper's Figure 3" {
	three_runs
	[ "$(stats '.sets' a.db b.db c.db)" = "[150,170,220]" ]
	[ "$(stats '.rows[0]|[.procedure,.sum,.n,.mean,.min,.max]' a.db b.db c.db)" = '["work",390,3,130,100,170]' ]
	between "$(stats '.rows[0].range' a.db b.db c.db)" 0.17948 0.17949    # 70 / 390
	between "$(stats '.rows[0].stddev' a.db b.db c.db)" 36.055 36.056     # sqrt(2600 / 2)
	between "$(stats '.rows[0].share' a.db b.db c.db)" 0.72222 0.72223    # 390 / 540
	[ "$(stats '.rows[1]|[.procedure,.range,.stddev,.varies]' a.db b.db c.db)" = '["rest",0,0,false]' ]
	[ "$(stats '.rows[0].varies' a.db b.db c.db)" = true ]
	[ "$(stats '.event' a.db b.db c.db)" = '"cpu-clock"' ]
}

@test "text has a heading with the sets, then rows by range" {
	three_runs
	run "$CULPRIT" stats a.db b.db c.db
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "Number of samples of type cpu-clock:" ]
	[[ "${lines[3]}" =~ ^set\ 3\ +220\ +c.db$ ]]
	[[ "${lines[4]}" =~ ^TOTAL\ +540$ ]]
	[[ "${lines[5]}" =~ "3 different sample sets" ]]
	[[ "${lines[6]}" =~ ^range%\ +sum\ +sum%\ +N\ +mean\ +std-dev\ +min\ +max\ +procedure\ +image$ ]]
	[[ "${lines[7]}" =~ 17.95%\ +390.00\ +72.22%\ +3\ +130.00\ +36.06\ +\*\ +100.00\ +170.00\ +work ]]
	[[ "${lines[8]}" =~ rest ]]
}

@test "epochs of one database are sets; of several with --by-epoch" {
	run_of a.db 100 50
	run_of a.db 130 50
	run_of b.db 160 50
	[ "$(stats '.sets' a.db)" = "[150,180]" ]
	[ "$(stats '.names' a.db)" = '["a.db:1","a.db:2"]' ]
	[ "$(stats '.sets' a.db b.db)" = "[330,210]" ]
	[ "$(stats '.sets' --by-epoch a.db b.db)" = "[150,180,210]" ]
	[ "$(stats '.sets' a.db:1 b.db)" = "[150,210]" ]
	[ "$(stats '.sets' a.db:1,2,b.db)" = "[150,180,210]" ]
	[ "$(stats '.sets' -i a.db)" = "[150,180]" ]
	mv a.db culprit.db
	[ "$(stats '.sets')" = "[150,180]" ]
	[ "$(stats '.sets' :2 b.db)" = "[180,210]" ]
}

@test "a set without samples of a procedure counts as 0" {
	"$makedb" code a.db prog work=100 rest=20
	"$makedb" code b.db prog work=100
	[ "$(stats '.rows[0]|[.procedure,.n,.mean,.min,.max,.range]' a.db b.db)" = '["rest",2,10,0,20,1]' ]
}

@test "--normalise takes out how long runs were" {
	run_of a.db 100 50
	run_of b.db 200 100
	[ "$(stats '[.rows[].range]|max > 0.3' a.db b.db)" = true ]
	[ "$(stats '[.rows[].range]|max < 1e-9' --normalise a.db b.db)" = true ]
	[ "$(stats '[.rows[]|[.sum,.varies]]' --normalise a.db b.db)" = '[[300,false],[150,false]]' ]
	[ "$(stats '.sets' --normalise a.db b.db)" = "[150,300]" ]
}

@test "filters and cuts" {
	three_runs
	[ "$(stats '[.rows[].procedure]' --proc 'w*' a.db b.db)" = '["work"]' ]
	[ "$(stats '.sets' --proc work a.db b.db)" = '[100,120]' ]
	[ "$(stats '.sets' --comm nobody a.db b.db)" = '[0,0]' ]
	[ "$(stats '[.rows[].procedure]' -n 1 a.db b.db)" = '["work"]' ]
	[ "$(stats '[.rows[].procedure]' --min-share 50% a.db b.db)" = '["work"]' ]
	run "$CULPRIT" stats --comm nobody a.db b.db
	[ "$output" = "no samples" ]
	run "$CULPRIT" stats --min-share 50% a.db b.db
	[[ "$output" =~ "1 row with 31.25% of all samples not shown" ]]
}

@test "what cannot be read is one line" {
	three_runs
	run "$CULPRIT" stats a.db nowhere.db
	fails_with 2 nowhere.db
	head -c 5000 /dev/urandom > junk.db
	run "$CULPRIT" stats a.db junk.db
	fails_with 2 junk.db
	run "$CULPRIT" stats a.db
	fails_with 2 "several"
	run "$CULPRIT" stats a.db:7 b.db
	fails_with 2 "epoch 7"
	run "$CULPRIT" stats a.db:x b.db
	fails_with 2 "not 'x'"
	run "$CULPRIT" stats -e page-faults a.db b.db
	fails_with 2 a.db page-faults cpu-clock
	run "$CULPRIT" stats -e cpu-clock,page-faults a.db b.db
	fails_with 2 "one event"
}
