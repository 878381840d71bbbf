# bench/exact_counts and bench/score: exact counts of a program of known shape, and what they are
# worth against themselves.

bats_require_minimum_version 1.5.0

setup() {
	load lib.bash
	common_setup
	bench=$root/build/bench
	start=$((0x$(nm "$programs/culprits" | awk '$3 == "forward_fits" { print $1 }')))
}

hex() { # OFFSET in the procedure
	printf '0x%x' $((start + $1))
}

# As callgrind writes it: a loop of five instructions goes round ten times in each of ten calls.
callgrind() { # [ROUNDS]
	cat <<-END
		events: Ir
		ob=$programs/culprits
		fn=forward_fits
		$(hex 0) 0 ${1:-100}
		$(hex 3) 0 ${1:-100}
		$(hex 6) 0 ${1:-100}
		$(hex 10) 0 ${1:-100}
		$(hex 13) 0 ${1:-100}
		jcnd=$((${1:-100} - 10))/${1:-100} $(hex 0) 0
		$(hex 13) 0
		$(hex 15) 0 10
		ob=/lib/x86_64-linux-gnu/libc.so.6
		0x28000 0 7
	END
}

@test "exact counts of blocks and edges, by our own graph" {
	callgrind > callgrind.out
	"$bench/exact_counts" callgrind.out > got 2> totals
	sed -n '2,$p' got > lines
	cat > want <<-END
		procedure $(hex 0) exact
		block $(hex 0) 15 100 exact
		block $(hex 15) 1 10 exact
		edge $(hex 13) $(hex 0) 90 exact
		edge $(hex 13) $(hex 15) 10 exact
	END
	sort lines | diff - <(sort want)
	head -1 got | grep -q "^image [0-9a-f]* $programs/culprits$"
	grep -q "^procedures=1 blocks=2 instructions=510 executed=110 not_conserved=0$" totals
}

@test "what is not callgrind's is refused with its line" {
	echo "calls=x" > bad
	run --separate-stderr "$bench/exact_counts" bad
	[ "$status" = 2 ]
	[[ "$stderr" == *"bad:1: "* ]]
}

@test "counts against others, weighted by samples" {
	need_root "sampling"
	record -- "$programs/culprits" forward_fits 0.5
	callgrind > a && "$bench/exact_counts" a > a.counts 2> totals
	callgrind 120 > b && "$bench/exact_counts" b > b.counts 2> totals
	"$bench/score" a.counts a.counts "$db" > same
	grep -q " relative5=1.0000 .* absolute5=1.0000 " same
	"$bench/score" -n 1.2 a.counts b.counts "$db" > more
	grep -q " absolute5=1.0000 " more
	"$bench/score" a.counts b.counts "$db" > off
	grep -q " relative5=1.0000 .* absolute15=0.0000 " off
	between "$(sed 's/.*compared=\([^ ]*\).*/\1/' same)" 0.9 1
}
