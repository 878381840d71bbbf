# culprit db import: recordings of perf, against what perf itself says of them.
bats_require_minimum_version 1.5.0

setup() {
	load lib
	common_setup
	export HOME=$BATS_TEST_TMPDIR # whose ~/.debug has nothing
	perf record -q -o probe.data true 2>/dev/null || skip "perf cannot record here"
}

perf_record() { # [OPTION...] COMMAND...
	perf record -q -N -F 999 "$@" 2>perf.said || { cat perf.said; return 1; }
}

import() { # FILE
	rm -f "$db"
	"$CULPRIT" db import -o "$db" "$1" 2>notes
	cat notes >&2
	[ "$("$CULPRIT" db check "$db")" = "$db: no faults" ]
}

# "EVENT SAMPLES NAME" of all, by image, and by procedure of those that perf and we name alike.
said_by_perf() { # FILE KEY
	perf report -i "$1" --stdio -n --no-children -g none -F "sample,$2" -t ';' 2>/dev/null |
		sed -n "s/^# Samples:.*of event '\([^':]*\).*/event \1/p; /^#/d; /^\$/d; /;/p" |
		sed 's/; *\[[.k]\] /;/; s/\[kernel[^]]*\]/[kernel]/; s/ *$//' |
		awk -F'; *' '/^event /{e = substr($0, 7); next} {sub(".*/", "", $2); n[e " " $2] += $1}
			END {for (k in n) print k, n[k]}' | sort
}

said_by_us() { # BY FIELD
	top --by "$1" -n 100000 | jq -r ".rows[] | [.event, (.$2 | sub(\".*/\"; \"\")), .samples] | join(\" \")" | sort
}

# Images have the same samples, and procedures of the program, but stubs, which perf does not always name.
same() { # FILE PROGRAM
	import "$1"
	said_by_perf "$1" dso > theirs
	said_by_us image image > ours
	diff theirs ours
	perf report -i "$1" --stdio -n --no-children -g none --dsos "$2" -F sample,sym -t ';' 2>/dev/null |
		sed -n 's/^ *\([0-9]*\) *; *\[.\] \([^ ]*\) *$/\2 \1/p' | grep -v '^_init \|@plt ' | sort > theirs
	top --by procedure -n 100000 --image "*/$2" | jq -r '.rows[] | [.procedure, .samples] | join(" ")' | grep -v '@plt ' | sort > ours
	[ -s ours ]
	diff theirs ours
}

@test "samples are those of perf: a command, threads, the machine" {
	perf_record -e cpu-clock,page-faults -o plain.data "$programs/shares" 0.3
	same plain.data shares
	[ "$("$CULPRIT" db ls "$db" --json | jq -c '.epochs[0] | .events + [.label]')" = \
		"[\"cpu-clock\",\"page-faults\",\"perf record -q -N -F 999 -e cpu-clock,page-faults -o plain.data $programs/shares 0.3\"]" ]
	perf_record --per-thread -o thread.data "$programs/callers" 0.2
	same thread.data callers
	perf_record -a -z -o all.data "$programs/forker" 1
	import all.data
	for what in ' forker ' ' '; do # what others run meanwhile is called differently
		theirs=$(said_by_perf all.data dso | awk "/$what/ {n += \$NF} END {print n}")
		[ "$theirs" -gt 0 ]
		[ "$theirs" = "$(said_by_us image image | awk "/$what/ {n += \$NF} END {print n}")" ]
	done
}

@test "call chains become call paths, also of a stream" {
	gcc -O1 -fno-omit-frame-pointer -I"$root/tests/e2e/programs" -o chained "$root/tests/e2e/programs/callers.c" -lpthread
	perf_record -g -o - ./chained 0.5 > stream
	same stream chained
	[ "$(below_by_us)" = "$(below_by_perf stream)" ]
	"$CULPRIT" db import -o both.db - < stream
	"$CULPRIT" db import -o both.db --label again stream
	[ "$("$CULPRIT" db ls both.db --json | jq -c '[.epochs[].label == "again"] | sort')" = '[false,true]' ]
}

# Samples below each caller, in order.
below_by_perf() { # FILE
	perf script -i "$1" --no-inline -F ip,sym 2>/dev/null |
		awk -v RS= '/ first\n/ {f++} / second\n/ {s++} / third\n/ {t++} END {print f, s, t}'
}

below_by_us() {
	"$CULPRIT" export -i "$db" -f folded |
		awk '/;first;/ {f += $NF} /;second;/ {s += $NF} /;third;/ {t += $NF} END {print f, s, t}'
}

@test "copies of stacks are unwound; another build is not taken for the program" {
	cp "$programs/callers" callers
	perf_record --call-graph dwarf,4096 -o dwarf.data ./callers 0.3
	same dwarf.data callers
	# Two unwinders need not agree on every single instruction: one sample in a hundred may differ.
	paste <(below_by_us) <(below_by_perf dwarf.data) |
		awk '{ for (i = 1; i <= 3; i++) if (($i - $(i + 3)) ^ 2 > 9) exit 1; exit ($1 + $2 + $3 < 200) }'
	"$CULPRIT" export -i "$db" -f folded | grep -q '^_start;'
	gcc -O1 -I"$root/tests/e2e/programs" -o callers "$root/tests/e2e/programs/callers.c" -lpthread
	import dwarf.data
	grep -q "$dir/callers is not here as it was recorded, build-id" notes
	[ "$(top --by image | jq --arg i "$dir/callers" '[.rows[] | select(.image == $i) | .samples] | add')" -gt 100 ]
}

@test "what is no recording of perf leaves nothing" {
	perf_record -o plain.data true
	size=$(stat -c %s plain.data)
	head -c $((size / 2)) plain.data > cut.data
	head -c 64 plain.data > header.data
	printf '2ELIFREP0000000000000000' > big.data
	printf 'PERFFILE0000000000000000' > old.data
	: > empty.data
	for f in cut header big old empty none; do
		run "$CULPRIT" db import -o "$db" $f.data
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		[ ! -e "$db" ]
	done
	run "$CULPRIT" db import "$root/Makefile"
	[ "$status" -eq 2 ]
	[[ "$output" =~ "no recording of perf" ]]
}

# gzip, sampled in Debian 11 and 13; the programs are not those that are here, so there are no names.
@test "recordings of perf 5.10 and 6.12" {
	for recorded in 5.10:77 6.12:76; do
		import "$root/tests/fuzz/corpus/fuzz_perf_data/perf-${recorded%:*}"
		grep -q '/usr/bin/gzip is not here as it was recorded' notes
		[ "$(top --by image | jq -c '[.events[0].name, .events[0].unknown, .rows[0].image, .rows[0].samples]')" = \
			"[\"cpu-clock\",0,\"/usr/bin/gzip\",${recorded#*:}]" ]
		[ "$("$CULPRIT" calls -i "$db" --json | jq '[.contexts[].samples] | add')" -eq "${recorded#*:}" ]
	done
}
