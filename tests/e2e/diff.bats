# culprit diff on databases whose samples are known (tests/fixtures/fixture.h), of two real builds:
# in the second one function is renamed, another is new in front, so that addresses move.

setup() {
	load lib.bash
	common_setup
	makedb=$(dirname "$CULPRIT")/tests/fixtures/makedb
	cat > prog.c <<'END'
#include <stdlib.h>
#ifdef AFTER
#define mix stir
__attribute__((noinline)) long fresh(long x) { return x * 77 + 3; }
#else
#define fresh(x) (x)
#endif
static __attribute__((noinline)) long mix(long n)
{
	long s = 1;
	while (n--) {
		s ^= s << 13, s ^= s >> 7, s ^= s << 17;
		if (s % 3 == 0) s += n; else s -= n / 7;
	}
	return s;
}
__attribute__((noinline)) long slow(long n) { long s = 0; while (n--) s ^= n * 7; return s; }
__attribute__((noinline)) long other(long n) { double s = 0; while (n--) s = s * 0.5 + (double)n; return (long)s; }
int main(int c, char **v) { long k = c > 1 ? atol(v[1]) : 1; return (int)fresh(mix(k) + slow(k) + other(k)); }
END
	mkdir -p old new
	cc -O2 -o old/prog prog.c
	cc -O2 -DAFTER -o new/prog prog.c
}

old() { # DATABASE MIX SLOW OTHER
	"$makedb" code "$1" old/prog mix="$2" slow="$3" other="$4"
}

new() { # DATABASE MIX SLOW OTHER
	"$makedb" code "$1" new/prog stir="$2" slow="$3" other="$4"
}

diff() { # EXPRESSION ARGUMENT...
	local expression=$1
	shift
	"$CULPRIT" diff --json "$@" | jq -c "$expression"
}

five_runs() {
	local i
	for i in 1 2 3 4 5; do
		old a.db $((1000 + 20 * i)) $((500 + 10 * (i % 3))) $((300 + i))
		new b.db $((1100 - 20 * i)) $((700 + 10 * (i % 3))) $((306 - i))
	done
}

@test "a slower function is found over a rebuild; the others are not blamed" {
	five_runs
	[ "$(diff '[.rows[]|select(.significant).procedure]' a.db b.db)" = '["slow"]' ]
	[ "$(diff '.rows[0]|[.before,.after,.matched]' a.db b.db)" = '[0.512,0.712,"name"]' ]
	between "$(diff '.rows[0].change' a.db b.db)" 0.1999 0.2001
	between "$(diff '.rows[0].relative' a.db b.db)" 0.390 0.391
	[ "$(diff '.rows[0]|.low < .change and .change < .high and .low > 0.1 and .high < 0.3' a.db b.db)" = true ]
	[ "$(diff '.total.significant' a.db b.db)" = true ]
	[ "$(diff '.unit' a.db b.db)" = '"seconds"' ]
	[ "$(diff '.runs.before|[length,.[0].samples,.[0].period]' a.db b.db)" = '[5,1831,1000000]' ]
}

@test "a renamed function is found by its code" {
	five_runs
	[ "$(diff '.rows[]|select(.procedure=="stir")|[.was,.matched,.significant,.ambiguous]' a.db b.db)" = '["mix","code",false,false]' ]
	run "$CULPRIT" diff a.db b.db
	[[ "$output" =~ "stir (was mix)" ]]
}

@test "a function without its counterpart is new or gone" {
	old a.db 1000 500 300
	"$makedb" code b.db new/prog stir=1000 slow=500 fresh=300
	[ "$(diff '.rows[]|select(.procedure=="fresh")|[.before,.after,.relative,.significant]' a.db b.db)" = '[0,0.3,null,true]' ]
	[ "$(diff '.rows[]|select(.procedure=="other")|[.before,.after,.relative]' a.db b.db)" = '[0.3,0,-1]' ]
	run "$CULPRIT" diff a.db b.db
	[[ "$output" =~ "new" ]]
	[[ "$output" =~ "gone" ]]
}

@test "the same program twice: nothing is significant" {
	old a.db 1000 500 300
	old b.db 1031 478 312
	[ "$(diff '[.rows[],.total|select(.significant)]|length' a.db b.db)" = 0 ]
	[ "$(diff '[.rows[].matched]|unique' a.db b.db)" = '["start"]' ]
	[ "$(diff '[.rows[]|select(.change != 0)]|length' a.db a.db)" = 0 ]
	run "$CULPRIT" diff a.db b.db --fail-over 1
	[ "$status" -eq 0 ]
	[[ "$output" =~ "no procedure changed significantly" ]]
	[[ "$output" =~ "one run each" ]]
}

@test "runs that vary make wider intervals than samples do" {
	local i
	for i in 1 2 3 4; do
		old a.db $((5000 + 1000 * (i % 2))) 500 300
		old b.db $((5500 + 1000 * (i % 2))) 500 300
	done
	[ "$(diff '.rows[0]|[.procedure,.significant,.low < 0]' a.db b.db)" = '["mix",false,true]' ]
	[ "$(diff '.rows[0]|[.procedure,.significant]' a.db:1 b.db:1)" = '["mix",true]' ]
}

@test "--by share looks at the mixture only" {
	old a.db 1000 500 300
	new b.db 2000 1000 600
	[ "$(diff '.total.significant' a.db b.db)" = true ]
	[ "$(diff '[.rows[]|select(.significant)]|length' --by share a.db b.db)" = 0 ]
	[ "$(diff '[.rows[].before]|add|.*1e6|round' --by share a.db b.db)" = 1000000 ]
	[ "$(diff '.unit' --by share a.db b.db)" = '"share"' ]
	run "$CULPRIT" diff --by share a.db b.db
	[[ "$output" =~ "% of all samples" ]]
}

@test "several runs: lists, --before and --after, epochs" {
	old a1.db 1000 500 300
	old a2.db 1010 510 300
	new b1.db 1000 700 300
	new b2.db 1010 690 300
	for how in "a1.db,a2.db b1.db,b2.db" "--before a1.db a2.db --after b1.db b2.db" \
		"--after b1.db b2.db --before a1.db a2.db" "--before=a1.db,a2.db --after=b1.db,b2.db"; do
		[ "$(diff '[.runs.before,.runs.after|[.[].name]]' $how)" = '[["a1.db","a2.db"],["b1.db","b2.db"]]' ]
	done
	"$CULPRIT" db merge -o culprit.db a1.db a2.db b1.db b2.db
	[ "$(diff '[.runs.before,.runs.after|[.[].name]]' :1-2 :3,4)" = '[["culprit.db:1","culprit.db:2"],["culprit.db:3","culprit.db:4"]]' ]
	[ "$(diff '[.runs[]|length]' culprit.db:1 culprit.db:last)" = '[1,1]' ]
	[ "$(diff '.rows[0].procedure' :1-2 :3,4)" = '"slow"' ]
}

@test "--fail-over: exit codes" {
	five_runs
	run "$CULPRIT" diff a.db b.db --fail-over 5
	[ "$status" -eq 1 ]
	[[ "$output" =~ "culprit: slower by more than 5%: the total by" ]]
	[[ "$output" =~ "slow by 39" ]]
	run "$CULPRIT" diff a.db b.db --fail-over 50%
	[ "$status" -eq 0 ]
	run "$CULPRIT" diff b.db a.db --fail-over 0
	[ "$status" -eq 0 ]
	# The total got slower by 11%; the slow procedure has 35% of the time.
	run "$CULPRIT" diff a.db b.db --fail-over 20
	[ "$status" -eq 1 ]
	run "$CULPRIT" diff a.db b.db --fail-over 20 --min-share 40%
	[ "$status" -eq 0 ]
	run "$CULPRIT" diff a.db b.db --fail-over 20 --json
	[ "$status" -eq 1 ]
	run "$CULPRIT" diff a.db b.db --fail-over lots
	[ "$status" -eq 2 ]
}

@test "a program that was renamed is the same program" {
	cp old/prog first
	cp new/prog second
	"$makedb" code a.db first mix=700 slow=500 other=300
	"$makedb" code b.db second stir=700 slow=700 other=300
	[ "$(diff '[.rows[].matched]|sort' a.db b.db)" = '["code","name","name"]' ]
	# Two programs that have nothing in common stay two.
	"$makedb" code c.db second stir=1000 main=700
	"$makedb" code d.db first slow=500 other=300
	[ "$(diff '.rows|length' d.db c.db)" = 4 ]
}

@test "a stripped rebuild is matched by code" {
	slow=$(nm old/prog | awk '$3 == "slow" { print "0x" $1 }')
	mix=$(nm new/prog | awk '$3 == "stir" { print "0x" $1 }')
	old a.db 1000 500 300
	strip new/prog
	"$makedb" code b.db new/prog "$mix=1000"
	[ "$(diff '.rows[]|select(.was=="mix")|[.matched,(.procedure|startswith("prog!0x"))]' a.db b.db)" = '["code",true]' ]
}

@test "functions that look alike are not matched, and it is said" {
	cat > twins.c <<'END'
#define BODY(name) static __attribute__((noinline, noclone, noipa)) long name(long n) \
	{ long s = 1; while (n--) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; s += n / 7; } return s; }
BODY(P1) BODY(P2)
int main(int c, char **v) { return (int)(P1(c) + P2(c) + (long)v); }
END
	cc -O2 -fno-ipa-icf -DP1=one -DP2=two -o old/twins twins.c
	cc -O2 -fno-ipa-icf -DP1=eins -DP2=zwei -o new/twins twins.c
	"$makedb" code a.db old/twins one=100 two=200
	"$makedb" code b.db new/twins eins=100 zwei=200
	[ "$(diff '[.rows[].ambiguous]' a.db b.db)" = '[true,true,true,true]' ]
	run "$CULPRIT" diff a.db b.db
	[[ "$output" =~ "4 procedures look like several" ]]
}

@test "what is wrong is one line" {
	old a.db 1000 500 300
	run "$CULPRIT" diff a.db
	[ "$status" -eq 2 ]
	[[ "$output" =~ "name two" ]]
	run "$CULPRIT" diff a.db a.db a.db
	[ "$status" -eq 2 ]
	run "$CULPRIT" diff a.db nowhere.db
	fails_with 2 nowhere.db
	head -c 5000 /dev/urandom > junk.db
	run "$CULPRIT" diff junk.db a.db
	fails_with 2 junk.db
	run "$CULPRIT" diff a.db a.db:3
	fails_with 2 "epoch 3"
	run "$CULPRIT" diff --by size a.db a.db
	[ "$status" -eq 2 ]
	run "$CULPRIT" diff -e page-faults a.db a.db
	fails_with 2 page-faults
	sqlite3 a.db "update profiles set data = x'00112233'"
	run "$CULPRIT" diff a.db a.db
	fails_with 2 a.db
}
