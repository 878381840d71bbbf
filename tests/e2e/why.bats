#!/usr/bin/env bats
# culprit why: on a known database, on a program that knows how its branches go, and on stripped gzip.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	MAKEDB="$(dirname "$CULPRIT")/tests/fixtures/makedb"
}

why() { # [OPTION...]
	"$CULPRIT" why -i "$db" "$@"
}

# The keys of a procedure that scripts are written against, with their types.
is_a_procedure() { # FILE
	jq -e 'def number: type == "number"; def cpi: . == null or type == "number";
		def address: type == "string" and startswith("0x");
		(.procedure | type == "string") and (.image | type == "string")
		and (.start | address) and (.samples | number)
		and (.scale | IN("exact", "known", "relative"))
		and (.best_cpi | number) and (.actual_cpi | cpi) and (.cpi_low | cpi) and (.cpi_high | cpi)
		and (.summary | (.execution, .unexplained, .unexplained_gain, .sampling_error | number))
		and ([.summary.static[] | (.cause | type == "string") and (.share | number)] | all)
		and ([.summary.dynamic[] | (.culprit | type == "string") and (.min <= .max)] | all)
		and (.blocks | length > 0)
		and ([.blocks[] | (.start | address) and (.size > 0) and (.count | number)
			and (.confidence | IN("exact", "high", "medium", "low"))] | all)
		and ([.blocks[].instructions[] | (.address | address) and (.text | type == "string")
			and (.samples | number) and (.count | number) and (.cpi | cpi) and (.min_cpi | number)
			and has("gone") and has("line_gone") and (.gone | cpi) and (.line_gone | cpi)
			and ([.stalls[] | (.culprit | type == "string") and (.min <= .max)
				and ([.from[] | address] | all)] | all)] | all)' "$1" > /dev/null
}

adds_up() { # FILE
	jq -e '.summary | .execution + ([.static[].share] | add) + .dynamic_total + .unexplained
		+ .unexplained_gain + .sampling_error - 1 | fabs < 1e-6' "$1"
	jq -e '.summary | ([.dynamic[].min] | add) <= .dynamic_total + 1e-6
		and ([.dynamic[].max] | add) >= .dynamic_total - 1e-6' "$1"
}

# What enters a block leaves it, and both are its count; ways that were only seen are about right.
conserves() { # FILE
	jq -e '. as $p | [.edges[] | select(.kind == "seen") | .from, .to] as $seen
		| [.blocks[] | . as $b | select(.start | IN($seen[]) | not)
		| ([$p.edges[] | select(.to == $b.start) | .count] | add // 0) as $in
		| ([$p.edges[] | select(.from == $b.start) | .count] | add // 0) as $out
		| select(($in + $out > 0) and
			((($in - $b.count) | fabs) > 1e-6 * ($b.count + 1) or
			 (($out - $b.count) | fabs) > 1e-6 * ($b.count + 1)))
		| [$b.start, $b.count, $in, $out]] | if . == [] then true else debug | false end' "$1"
}

@test "a known database: keys, sums, flow" {
	"$MAKEDB" small "$db"
	why hot --epoch 1 --json > out.json
	is_a_procedure out.json
	adds_up out.json
	conserves out.json
	[ "$(jq -c '[.procedure, .image, .start, .samples, .scale]' out.json)" = \
		'["hot","/opt/demo/bin/demo","0x401000",600,"relative"]' ]
	# 450 and 30 times back, 50 times on.
	jq -e '[.edges[] | select(.from == "0x401004")] | map({(.kind): .count}) | add
		| .jump / .fall | . > 7 and . < 12' out.json
}

@test "a relative scale claims no CPI" {
	"$MAKEDB" small "$db"
	[ "$(why hot --json | jq -c '[.actual_cpi, .cpi_high, ([.blocks[].instructions[].cpi] | unique)]')" = \
		'[null,null,[null]]' ]
	run why hot
	[ "$status" = 0 ]
	[[ $output == *"the scale of the counts is not known"* ]]
	# How long its code takes tells it roughly.
	[[ $output =~ actual\ +~\ *[0-9.]+\ CPI ]]
	[[ $output =~ \*\*\*\ 401004:\ 3\ instructions,\ ~[0-9.]+[kMGT]?\ times\ \( ]]
}

@test "text: heading, summary, blocks, instructions, what is left out" {
	"$MAKEDB" small "$db"
	run why hot --epoch 1
	[ "$status" = 0 ]
	[ "${lines[0]}" = "cpu-clock = 600 (60.00% of all) in hot" ]
	[ "${lines[1]}" = "/opt/demo/bin/demo at 0x401000" ]
	[[ $output =~ \*\*\*\ total\ +100\.0% ]]
	[[ $output =~ 401008\ +cmp\ +%rdi,%rax ]]
	[[ $output =~ jb\ +401004\ \<hot\+0x4\>\ +taken\ (9|8)[0-9.]+% ]]
	[[ $output =~ 50\ +8\.33%\ +402000\ +nop ]]
	[[ ! $output =~ 401010\ +nop ]]
	[[ $output != *$'\033'* ]]
	run why hot --epoch 1 --all --syntax intel
	[[ $output =~ cmp\ +rax,rdi ]]
	[[ $output =~ 40100f\ +nop ]]
}

@test "all that is selected: shares, worst instructions" {
	"$MAKEDB" small "$db"
	why --epoch 1 --json > out.json
	jq -e '.known + .relative + .unseen - 1 | fabs < 1e-6' out.json
	jq -e '.samples == 1000 and .procedures == 1 and .relative == 0.6' out.json
	jq -e '[.rows[].lost] | . == (sort | reverse) and all(. > 0 and . <= 1)' out.json
	jq -e '[.rows[] | .procedure == "hot" and (.address | startswith("0x40"))
		and (.text | length > 0) and (.stalls | type == "array") and (.share <= 1)] | all' out.json
	[ "$(why --epoch 1 --json -n 1 | jq '.rows | length')" = 1 ]
	run why --epoch 1
	[ "$status" = 0 ]
	[[ $output == *"60.00% where counts are known relative to each other only"* ]]
	[[ $output == *"40.00% where there is no code or no procedure"* ]]
	run why --proc 'tw*' --json
	[ "$(jq '.samples' <<< "$output")" = 100 ]
}

@test "what cannot be explained: one line that says why, exit 2" {
	"$MAKEDB" small "$db"
	run why nothing
	fails_with 2 nothing 'culprit top'
	run why 'demo!0x401100'
	fails_with 2 'demo!0x401100' 'no code'
	run why page_fault
	fails_with 2 page_fault 'no code'
	run why hot -e page-faults
	fails_with 2 'measures time' cpu-clock
	run why hot --comm nobody
	fails_with 2 hot
	run why 'tw*'
	[ "$status" = 2 ]
	[[ $output == *"name one of those above"* ]]
}

@test "a selection without samples" {
	"$MAKEDB" small "$db"
	run why --comm nobody
	[ "$status" = 0 ]
	[ "$output" = "no samples" ]
	[ "$(why --comm nobody --json | jq -c '[.samples, .rows]')" = '[0,[]]' ]
}

@test "a database without anything in it" {
	"$MAKEDB" small "$db"
	"$CULPRIT" db expire --age 1 "$db"
	[ "$("$CULPRIT" db ls --json "$db" | jq '.epochs | length')" = 0 ]
	run why
	[ "$status" = 0 ]
	[ "$output" = "no samples" ]
	run why hot
	fails_with 2 hot
}

@test "source lines, and code from the file" {
	cat > busy.c <<'END'
__attribute__((noinline)) long busy(long n) {
	long s = 0;
	while (n--) s ^= n * 7;
	return s;
}
int main(int argc, char **argv) { (void)argv; return (int)busy(argc); }
END
	cc -g -O0 -o busy busy.c
	# Too few samples to tell the scale by the time: the most and the least.
	"$MAKEDB" elf few.db "$PWD/busy" busy=40 main=10
	run "$CULPRIT" why --no-pager -i few.db busy
	[[ $output =~ actual\ +\>\ *[0-9.]+\ CPI ]]
	[[ $output =~ \<[0-9.]+[kMGT]?\ times\ \( ]]
	"$MAKEDB" elf "$db" "$PWD/busy" busy=90 main=10
	run --separate-stderr why busy --all
	[ "$status" = 0 ]
	[[ $output =~ busy\.c:3[[:space:]]+while ]]
	run --separate-stderr why busy --no-source
	[[ $output != *busy.c* ]]
	[ "$(why busy --json 2>/dev/null | jq -c '.blocks[0].instructions[0] | [(.file | split("/") | last), .line]')" = \
		'["busy.c",1]' ]
	run --separate-stderr why --json
	jq -e '[.rows[] | .file | endswith("/busy.c")] | length > 0 and all' <<< "$output"
}

# bats test_tags=plain
@test "branches that are taken in a quarter of the cases" {
	need_root "the interpreter needs BPF"
	record -q -- "$programs/known_edges" 2 > places
	why quarter --json > out.json
	is_a_procedure out.json
	adds_up out.json
	conserves out.json
	read -r from taken fell <<< "$(sed -n 's/^quarter //p' places)"
	# The block that the branch ends, and its two ways.
	jq -e --arg from "$from" --arg taken "$taken" --arg fell "$fell" '
		([.blocks[] | select([.instructions[].address] | index($from)) | .start][0]) as $b
		| [.edges[] | select(.from == $b)] as $e
		| ([$e[] | select(.to == $taken) | .count] | add) / ([$e[].count] | add)
		| debug | . > 0.15 and . < 0.35' out.json
	why --json > all.json
	jq -e '[.rows[].procedure] | index("quarter") or index("half") or index("most")' all.json
}

@test "without branches in the database: guesses, and a line that says so" {
	record -q --no-edges -- "$programs/known_edges" 0.5 > places
	run --separate-stderr why quarter --json
	[ "$status" = 0 ]
	[ "$(wc -l <<< "$stderr")" = 1 ]
	[[ $stderr == *"no branch of quarter was seen"* ]]
	is_a_procedure <(echo "$output")
	run --separate-stderr why
	[ "$status" = 0 ]
	[[ $stderr == *"no branch of what was selected was seen"* ]]
}

@test "stripped gzip" {
	seq 300000 | md5sum > /dev/null
	seq 1 7 3000000 > numbers
	record -q -- gzip -9 -k numbers
	why --json > all.json
	hot=$(jq -r '[.rows[] | select(.image | endswith("/gzip"))][0].procedure' all.json)
	[[ $hot == gzip!0x* ]]
	why "$hot" --json > out.json
	is_a_procedure out.json
	adds_up out.json
	conserves out.json
	jq -e '[.blocks[].instructions[].samples] | add > 10' out.json
	run why "$hot"
	[ "$status" = 0 ]
	[[ $output == *" in $hot"* ]]
}

@test "code made at run time, of which nothing is kept" {
	record -q -- "$programs/jit" 0.5 > pid
	rm -f "/tmp/perf-$(cat pid).map"
	run why jit_hot
	fails_with 2 jit_hot 'no code'
}

@test "exact runs of the same command tell the counts of sampled ones, others only their shares" {
	unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null || skip "needs mount namespaces"
	export XDG_CACHE_HOME=$dir/cache
	gcc -O2 -x c - -o turns <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) unsigned step(unsigned x) { return x % 3 ? x * 7 + 1 : x / 3; }
		__attribute__((noinline)) unsigned turn(unsigned n) {
			unsigned s = 1;
			for (unsigned i = 0; i < n; i++) s += step(s + i);
			return s;
		}
		int main(int argc, char **argv) {
			unsigned s = 0;
			for (int i = 0; i < atoi(argv[1]); i++) s += turn(1000);
			return s == 42;
		}
	END
	told() { # what is said of turn: the scale, its calls and the turns of its loop
		why turn --json "$@" >out.json
		is_a_procedure out.json
		jq -r '[.scale, .blocks[0].count, ([.blocks[].count] | max)] | map(tostring) | join(" ")' out.json
	}
	"$CULPRIT" record -q -o "$db" -- ./turns 60000
	"$CULPRIT" record -q -o "$db" -- ./turns 60000
	[[ "$(told)" == "relative "* ]]
	"$CULPRIT" record -q --exact -o "$db" -- ./turns 60000
	[ "$(told)" = "exact 120000 120000000" ]
	jq -e '.actual_cpi > 0 and .blocks[0].confidence == "exact"' out.json
	conserves out.json
	why turn | grep -q "exact runs of the same command"
	# Part of the samples is part of a run.
	[[ "$(told --comm turns)" == "relative "* ]]
	# Twice counted is not run twice.
	"$CULPRIT" record -q --exact -o "$db" -- ./turns 60000
	[ "$(told)" = "exact 120000 120000000" ]
	# A run that was sampled and not counted.
	"$CULPRIT" record -q -o "$db" -- ./turns 50000
	[[ "$(told)" == "relative "* ]]
	why turn | grep -q "from exact runs of this build"
	jq -e '([.blocks[].count] | max) / .blocks[0].count | . > 980 and . < 1020' out.json
	"$CULPRIT" record -q --exact -o "$db" -- ./turns 50000
	[ "$(told)" = "exact 170000 170000000" ]
	"$CULPRIT" db check -i "$db"
}
