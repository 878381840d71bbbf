#!/bin/bash
# Exact counts of programs that behave otherwise under valgrind (see exact.sh): small jobs, counted by
# callgrind, by the edited copy, and by the edited copy under valgrind, where it finds what callgrind's
# program found: environment, CPU, addresses, and a clock that stands still (lua seeds its hashing by it).
# zstd without its I/O threads, which wait as often as they are not served. The last column is callgrind
# against callgrind with the heap elsewhere: what cc1 hashes by address is not where it was in an edited
# copy either, which is longer and not position-independent. lua also seeds by the address of lua_newstate,
# which therefore stays where it is.
. "$(dirname "$0")/lib.sh"
options "$@"
make -s -C "$root" build/bench/exact_counts || exit 1
"$here/program" --prepare || exit 1
inputs=$programs/accuracy

job() { # NAME: its command line, word by word
	case $1 in
	zstd) words=(zstd -12 --single-thread --no-asyncio -q -c "$work/text") ;;
	lua5.4) words=(lua5.4 -e 'local t = {} for i = 1, 2000 do t["k" .. i % 97] = i end local s = 0
		for k, v in pairs(t) do s = s + v end print(s, pcall(error, "x"), ("abc"):upper())
		for i = 1, 200 do local c = coroutine.wrap(function(a) for k = 1, 20 do a = a + coroutine.yield(a * k) end end)
		for k = 1, 20 do s = s + c(k) end end
		for i = 1, 50 do pcall(coroutine.wrap(function() coroutine.yield(1) error("y") end)) end') ;;
	perl) words=(perl -e '$h{$_ % 97} += $_ for 1 .. 2000; print join(",", sort keys %h), "\n";
		sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } print f(12); eval { die };
		sub g { die if $_[0] % 7 == 0; [sort { $a <=> $b } map { $_ * $_[0] } 1 .. 5] }
		for my $i (1 .. 300) { eval { g($i) } }') ;;
	sqlite3) words=(sqlite3 :memory: 'create table t(a, b); with recursive r(n) as (select 1 union all
		select n + 1 from r where n < 500) insert into t select n, n * 7 % 31 from r;
		select b, count(*), sum(a) from t group by b order by 3 desc;') ;;
	gawk) words=(gawk 'BEGIN { for (i = 0; i < 3000; i++) n[i % 97] += i; for (k in n) s += n[k]
		print s, substr("hello", 2, 3), match("foobar", /o+/) }') ;;
	bash) words=(bash -c 'for ((i = 0; i < 2000; i++)); do x[$((i % 97))]=$i; done; echo ${#x[@]}') ;;
	cc1) words=("$(gcc -print-prog-name=cc1)" -quiet -O1 -o /dev/null "$work/unit.c") ;;
	esac
	skip=()
	[ "$1" != lua5.4 ] || skip=(--skip lua_newstate)
	words[0]=$(realpath "$(command -v "${words[0]}")")
}

prepare() {
	head -c 400000 "$inputs/6m.txt" >"$work/text"
	echo 'int f(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) switch (a[i] % 5) { case 0: s += 3;
		break; case 1: s *= 2; break; case 3: s ^= i; break; default: s -= a[i]; } return s; }' >"$work/unit.c"
	gcc -O2 -shared -fPIC -xc -o "$work/still.so" - <<<"$clock" &&
		gcc -O2 -shared -fPIC -DMOVE -xc -o "$work/moved.so" - <<<"$clock"
}

# A clock that stands still, and the heap elsewhere.
clock='#include <sys/mman.h>
#include <unistd.h>
long time(long *t) { if (t) *t = 1600000000; return 1600000000; }
long clock(void) { return 1000; }
#ifdef MOVE
__attribute__((constructor)) static void move(void)
{
	sbrk(0x13000);
	mmap(0, 0x1234000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
#endif'

# Runs the job's words behind others, with files bound over others, in an environment of known contents.
plainly() { # LIBRARY [FROM TO] -- [PREFIX...]
	env -i PATH=/usr/bin:/bin LC_ALL=C PERL_HASH_SEED=0 LD_PRELOAD="$work/$1" setarch -R \
		"$root/tools/bind" "${@:2}" "${words[@]}" >/dev/null 2>&1 </dev/null
}

# "START COUNT CONFIDENCE" of the program's blocks.
blocks() { # FILE
	awk -v p="/${words[0]##*/}\$" '$1 == "image" { on = $0 ~ p }
		on && $1 == "block" { print $2, $4, $5 }' "$1" | sort
}

callgrind() { # LIBRARY OUT
	plainly "$1" -- valgrind -q --tool=callgrind --dump-instr=yes --skip-plt=no --collect-jumps=yes \
		--compress-strings=no --compress-pos=no --callgrind-out-file="$work/raw"
	"$programs/exact_counts" "$work/raw" >"$work/text.out" 2>/dev/null || die "no counts of callgrind's"
	blocks "$work/text.out" >"$2"
}

edited() { # OUT [PREFIX...]
	rm -f "$work"/copy* "$work/db"
	"$culprit" edit --exact "${skip[@]}" "${words[0]}" -o "$work/copy" >/dev/null || exit 1
	plainly still.so "$work/copy" "${words[0]}" -- "${@:2}"
	"$culprit" record --counted "$work/copy" -o "$work/db" >/dev/null 2>&1 || die "nothing was counted"
	"$culprit" export -f counts -i "$work/db" >"$work/text.out" || exit 1
	blocks "$work/text.out" >"$1"
}

different() { # TRUTH OURS: of the blocks called exact
	join "$1" "$2" | awk '$5 == "exact" && $2 != $4' | wc -l
}

prepare || exit 1
header "" "blocks compared" "called exact and different" "the edited copy under valgrind" \
	"callgrind, the heap elsewhere"
for name in zstd lua5.4 perl sqlite3 gawk bash cc1; do
	job "$name"
	callgrind still.so "$work/truth"
	callgrind moved.so "$work/moved"
	edited "$work/native"
	edited "$work/under" valgrind -q --tool=none
	row "$name" "$(join "$work/truth" "$work/native" | wc -l)" "$(different "$work/truth" "$work/native")" \
		"$(different "$work/truth" "$work/under")" "$(different "$work/truth" "$work/moved")"
	[ "$name" = cc1 ] || different "$work/truth" "$work/under" >>"$work/all"
done
echo
goal "blocks that differ from callgrind's under valgrind, but for cc1: 0" \
	"$(awk '{ n += $1 } END { print n + 0 }' "$work/all") == 0"
