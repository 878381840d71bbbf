# culprit export for BOLT and clang: the counts are known, and the programs that read them do.
bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	cat >turns.c <<'END'
#include <stdio.h>
__attribute__((noinline)) static int odd(int i)
{
	if (i & 1)
		return 3;
	return 1;
}
static inline int twice(int i)
{
	return 2 * i + odd(i);
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += twice(i);
	printf("%d\n", sum);
	return 0;
}
END
	clang -O1 -fno-unroll-loops -gline-tables-only -fdebug-info-for-profiling -Wl,-q -o turns turns.c
	"$CULPRIT" record -q --exact -o turns.db -- ./turns >plain
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

@test "clang's programs have source lines, though they have no table of addresses" {
	run readelf -SW turns
	[[ $output != *debug_aranges* ]]
	run "$CULPRIT" export -f llvm-sample --image turns -i turns.db
	[[ $output == *"odd:"* ]]
}

@test "a sample profile has functions, lines and what was inlined" {
	"$CULPRIT" export -f llvm-sample --image turns -i turns.db -o turns.prof
	grep -q '^odd:[0-9]*:1000$' turns.prof
	grep -q '^main:[0-9]*:1$' turns.prof
	# In main, 4 lines below its first, twice was inlined; 2 lines below twice's first it calls odd.
	awk '/^main:/ { m = 1 } /^[a-z]/ && !/^main:/ { m = 0 }
		m && $1 ~ /^4(\.[0-9]+)?:$/ && $2 ~ /^twice:/ { t = 1; next }
		m && t && $1 ~ /^2/ && $2 == 1000 && /odd:1000/ { found = 1 } END { exit !found }' turns.prof
	clang -O2 -Werror -gline-tables-only -fdebug-info-for-profiling -fprofile-sample-use=turns.prof -o again turns.c
	./again | cmp - plain
}

@test "lines of loops that were unrolled or made into vectors run as often as written" {
	cat >wide.c <<'END'
int a[4096], b[4096];
__attribute__((noinline)) static void add(int n)
{
	for (int i = 0; i < n; i++)
		a[i] += b[i];
}
int main(void)
{
	for (int i = 0; i < 10; i++)
		add(4096);
	return a[7];
}
END
	clang -O2 -gline-tables-only -fdebug-info-for-profiling -o wide wide.c
	"$CULPRIT" record -q --exact -o wide.db -- ./wide
	"$CULPRIT" export -f llvm-sample --image wide -i wide.db -o wide.prof
	objdump -d wide | grep -q paddd # else it shows nothing
	[ "$(sed -n '/^add:/,/^[a-z]/s/^ 3[.0-9]*: \([0-9]*\).*/\1/p' wide.prof | sort -n | tail -1)" = 40960 ]
	run ! grep -E '^ *[0-9]+\.[0-9]{2,}:' wide.prof # parts of lines are few
}

@test "a profile for BOLT has branches, calls and what falls through" {
	"$CULPRIT" export -f bolt --image turns -i turns.db -o turns.pa
	run ! grep -Ev '^(B [0-9a-f]+ [0-9a-f]+ [0-9]+ 0|F [0-9a-f]+ [0-9a-f]+ [0-9]+)$' turns.pa
	odd=$(nm turns | awk '$3 == "odd" { sub("^0+", "", $1); print $1 }')
	[ "$(awk -v to="$odd" '$1 == "B" && $3 == to { print $4 }' turns.pa)" = 1000 ]
	grep -q '^B [0-9a-f]* [0-9a-f]* 999 0$' turns.pa
}

@test "BOLT reads it" {
	bolt=$(command -v llvm-bolt-19 || command -v llvm-bolt) || skip "llvm-bolt is not installed"
	bolt=$(realpath "$bolt") # it looks for its parts beside itself
	"$CULPRIT" export -f bolt --image turns -i turns.db -o turns.pa
	run -0 "$bolt" turns -o bolted --pa -p turns.pa --reorder-blocks=ext-tsp --reorder-functions=hfsort
	[[ $output == *"have non-empty execution profile"* ]]
	[[ $output != *"0 out of"* ]]
	./bolted | cmp - plain
}

@test "one program at a time, and one that is there" {
	"$CULPRIT" record -q -F 1000 -o two.db -- sh -c 'seq 100000 | sort | gzip >/dev/null'
	run -2 "$CULPRIT" export -f bolt -i two.db
	[[ $output == *"name it with --image"* ]]
	run -2 "$CULPRIT" export -f bolt --image nothing -i turns.db
	cp turns kept
	mv turns away
	run -2 "$CULPRIT" export -f llvm-sample --image turns -i turns.db
	mv away turns
	[[ $output == *turns* ]]
}
