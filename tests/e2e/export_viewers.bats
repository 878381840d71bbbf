#!/usr/bin/env bats
# culprit export for the viewers of other profilers: read back by protoc, and by jq along their schemas.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	makedb=$(dirname "$CULPRIT")/tests/fixtures/makedb
	here=$BATS_TEST_DIRNAME
}

viewer() { # FORMAT DATABASE [OPTION...]
	"$CULPRIT" export -f "$1" -i "$2" "${@:3}"
}

pprof() { # DATABASE [OPTION...]: its samples as lines, by somebody who does not know us
	command -v protoc >/dev/null || skip "needs protoc"
	viewer pprof "$@" -o out.pb.gz
	gzip -dc out.pb.gz | protoc --decode=Profile -I "$here" "$here/pprof.proto" >out.txt
	awk -f "$here/pprof.awk" out.txt
}

@test "pprof: contexts, with the places of calls" {
	"$makedb" counted "$db"
	pprof "$db" >got
	cat >want <<-'END'
		1 10 main@4096 process=demo
		60 600 f@8192 main@4112 process=demo
		50 500 h@4096 f@8204 main@4112 process=demo
		25 250 g@12288 h@4104 f@8204 main@4112 process=demo
		5 0 h@4096 g@12292 h@4104 f@8204 main@4112 process=demo
		40 400 f@8192 main@4128 process=demo
	END
	diff want got
	grep -q '^string_table: "calling contexts as an edited program counted them"' out.txt
	viewer pprof "$db" | cmp - out.pb.gz # the same every time
}

@test "pprof: instructions, by process, with what is missing in comments" {
	"$makedb" small "$db"
	pprof "$db" 2>err >got
	cat >want <<-'END'
		50 50000000 hot@4198400 process=demo
		500 500000000 hot@4198404 process=demo
		150 150000000 demo!0x401100@4198660 process=demo
		60 60000000 twin@4198912 process=demo
		40 40000000 twin@4199168 process=demo
		50 50000000 hot@4202496 process=demo
		20 20000000 libbare.so (no procedure)@1792 process=demo
		30 30000000 libbare.so (no procedure)@2304 process=demo
		40 40000000 page_fault@18446744071578846480 process=demo
		100 100000000 hot@4198404 process=demo pid=300
		50 50000000 demo!0x401100@4198656 process=other
		10 10000000 [unknown]@8323072 process=other
	END
	diff want got
	grep -q '"cpu-clock: 1090 samples attributed, 10 unknown, 5 lost, 3 throttled, 0 missed"' out.txt
	grep -q '^time_nanos: 1000000000000$' out.txt
	grep -q '^period: 1000000$' out.txt
	grep -q 'string_table: "abababababababababababababababababababab"' out.txt
	[ "$(cat err)" = "culprit: only cpu-clock is exported: -e names another event" ]
	[ "$(pprof "$db" -e page-faults --proc hot)" = "10 1000 hot@4198404 process=demo" ]
	[ "$(pprof "$db" -p 300 2>/dev/null)" = "100 100000000 hot@4198404 process=demo pid=300" ]
	run viewer pprof "$db" -p 100
	fails_with 2 "record --per-process"
}

@test "pprof: lines of the source" {
	cat >a.c <<-'END'
		int work(int x)
		{
			return 3 * x;
		}
		int main(int argc, char **argv)
		{
			(void)argv;
			return work(argc);
		}
	END
	gcc -O0 -g a.c -o a
	"$makedb" elf "$db" ./a work=7 main=3
	pprof "$db" | sed 's/@[0-9]*//' | sort >got
	grep -q "^3 3000000 main:6 " got
	grep -q "^7 7000000 work:2 " got
	grep -q "string_table: \"$PWD/a.c\"" out.txt
	grep -q "has_line_numbers: true" out.txt
	viewer csv "$db" | grep -q "^\"busy\",,7,7000000,\"work\",.*,\"$PWD/a.c\",2,\"work\""
	viewer speedscope "$db" | jq -e --arg file "$PWD/a.c" \
		'[.shared.frames[] | select(.name == "work")] == [{"name": "work", "file": $file, "line": 2}]'
}

@test "speedscope: what its schema asks for" {
	"$makedb" counted "$db"
	viewer speedscope "$db" >out.json
	jq -e '.["$schema"] == "https://www.speedscope.app/file-format-schema.json"
		and (.shared.frames | map(.name) == ["main", "f", "h", "g"])
		and (.profiles | length == 1)' out.json
	jq -e '.profiles[0] | .type == "sampled" and .unit == "none" and .name == "demo: tsc" and .startValue == 0
		and .samples == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 2], [0, 1]]
		and .weights == [10, 600, 500, 250, 0, 400] and .endValue == 1760' out.json
	"$makedb" small other.db
	viewer speedscope other.db 2>/dev/null >out.json
	jq -e '[.profiles[] | [.name, .endValue, .unit]] == [["demo: cpu", 940000000, "nanoseconds"],
		["demo (300): cpu", 100000000, "nanoseconds"], ["other: cpu", 60000000, "nanoseconds"]]' out.json
	jq -e '(.shared.frames | length) as $n | [.profiles[] | (.samples | length) == (.weights | length),
		([.samples[][]] | max < $n)] | all' out.json
}

@test "Firefox: tables that fit together" {
	cat >fit.jq <<-'END'
		def fits: (to_entries | map(select(.value | type == "array") | .value | length) | unique) == [.length];
		.meta.preprocessedProfileVersion == 47 and (.threads | length) > 0 and
		([.threads[] | . as $t | (.frameTable, .funcTable, .stackTable, .samples, .resourceTable | fits),
			(.samples.stack[] < $t.stackTable.length), (.stackTable.frame[] < $t.frameTable.length),
			(.stackTable.prefix | to_entries[] | .value == null or .value < .key),
			(.frameTable.func[] < $t.funcTable.length), (.funcTable.name[] < ($t.stringArray | length)),
			(.funcTable.resource[] < $t.resourceTable.length)] | all) and
		((.libs | length) as $n | [.threads[].resourceTable.lib[] < $n] | all)
	END
	"$makedb" counted "$db"
	viewer firefox "$db" >out.json
	jq -e -f fit.jq out.json
	jq -e '.threads[0] as $t | [$t.samples.stack[] | [recurse($t.stackTable.prefix[.]; . != null)] |
		map($t.stringArray[$t.funcTable.name[$t.frameTable.func[$t.stackTable.frame[.]]]]) | join("<")] ==
		["main", "f<main", "h<f<main", "g<h<f<main", "h<g<h<f<main", "f<main"]' out.json
	jq -e '.threads[0].samples.weight == [10, 600, 500, 250, 0, 400]' out.json
	"$makedb" small other.db
	viewer firefox other.db 2>/dev/null >out.json
	jq -e -f fit.jq out.json
	jq -e '[.threads[] | [.name, .pid, (.samples.weight | add)]] ==
		[["demo", "all-0", 940], ["demo", "300", 100], ["other", "all-2", 60]]' out.json
}

@test "csv: a table that quotes" {
	"$makedb" counted "$db"
	viewer csv "$db" --proc 'h*' | tr -d '\r' >got
	cat >want <<-'END'
		process,pid,"calls","tsc",procedure,image,build_id,address,file,line,stack
		"demo",,50,500,"h","/opt/demo/lib/libx.so",22222222,0x1000,,,"main;f;h"
	END
	diff want got
}

# bats test_tags=plain
@test "wrong usage, and nothing to export" {
	"$makedb" small "$db"
	run "$CULPRIT" export -f counts --flat -i "$db"
	[ "$status" = 2 ] && [[ $output == *"--flat goes with pprof"* ]]
	for format in pprof speedscope firefox csv; do
		run --separate-stderr viewer $format "$db" --comm nobody -o nothing
		[ "$status" = 0 ]
		[ "$stderr" = "culprit: no samples and no contexts in what was selected" ]
		run viewer $format none.db
		[ "$status" = 2 ]
	done
}

# bats test_tags=plain
@test "top --children: with what they called, recursion once" {
	"$makedb" counted "$db"
	"$CULPRIT" top --children -i "$db" >out
	grep -q "^tsc = 1760, by calling contexts" out
	grep -q "^ *750  *42.61%  *500  *28.41%  *h  " out
	"$CULPRIT" top --children --json -i "$db" | jq -e '[.rows[] | [.procedure, .inclusive, .samples]] ==
		[["main", 1760, 10], ["f", 1750, 1000], ["h", 750, 500], ["g", 250, 250]]'
	"$CULPRIT" top --children --json -i "$db" --proc f | jq -e '[.rows[] | .procedure] == ["f"]
		and (.rows[0].with_callees * 1000 | round) == 994'
	"$CULPRIT" top --children -i "$db" -n 1 | grep -q "3 smaller rows not shown"
	"$makedb" small small.db
	run "$CULPRIT" top --children -i small.db
	fails_with 2 "culprit record -g"
	run "$CULPRIT" top --children --by line -i small.db
	[ "$status" = 2 ] && [[ $output == *"--children goes with --by procedure only"* ]]
}

# bats test_tags=plain
@test "sampled call paths are exported whole, and add up" {
	need_root "call paths need BPF"
	"$CULPRIT" record -g -F 2000 -o "$db" -- "$programs/callers" 0.3 2>/dev/null
	n=$("$CULPRIT" top -i "$db" --json | jq '.events[0].samples')
	pprof "$db" >got
	[ "$(awk '{ n += $1 } END { print n }' got)" = "$n" ]
	grep -q " worker@[0-9]* first@" got
	[ "$(pprof "$db" --flat | awk '{ n += $1 } END { print n }')" = "$n" ]
	"$CULPRIT" top --children --json -i "$db" | jq -e --argjson n "$n" '.events[0].samples == $n
		and ([.rows[] | .samples] | add == $n) and ([.rows[] | .inclusive >= .samples and .inclusive <= $n] | all)'
	# Samples without call paths are not hushed up.
	"$CULPRIT" record -F 2000 -o "$db" -- "$programs/callers" 0.1 2>/dev/null
	viewer csv "$db" 2>err >/dev/null
	grep -q "samples have no call path and are left out" err
	"$CULPRIT" top --children -i "$db" | grep -q "more samples have no call path"
}
