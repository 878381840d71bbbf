#!/usr/bin/env bats
# What the data in bursts was, and what to do about it: record --bursts, streams.
# bats file_tags=plain

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	common_setup
	export XDG_CACHE_HOME=$dir/cache
}

# Nodes with their hot members at both ends, each with a key of its own; all by one wrapper.
walker() { # [OPTION...]
	gcc -O2 -x c -o walker "$@" - <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		struct key { long a, b, c; };
		struct node { struct node *next; char pad[112]; long value; struct key *key; };
		static long totals[16];
		static __attribute__((noinline)) void *get_memory(size_t n) {
			void *p = malloc(n);
			if (!p) abort();
			return p;
		}
		static __attribute__((noinline)) void *xmalloc(size_t n) { return get_memory(n); }
		static __attribute__((noinline)) struct key *make_key(int i) {
			struct key *k = xmalloc(sizeof *k);
			*k = (struct key){i, i + 1, i + 2};
			return k;
		}
		static __attribute__((noinline)) struct node *make_node(struct node *next, int i) {
			struct node *n = xmalloc(sizeof *n);
			n->next = next; n->value = i; n->key = make_key(i);
			return n;
		}
		__attribute__((noinline)) long walk(struct node *n) {
			long sum = 0;
			for (; n; n = n->next) { sum += n->value + n->key->b; totals[sum & 15]++; n->value ^= sum & 1; }
			return sum;
		}
		int main(int argc, char **argv) {
			struct node *list = NULL;
			long sum = 0;
			for (int i = 0; i < 20; i++) list = make_node(list, i);
			for (int i = 0; i < 300; i++) sum += walk(list);
			printf("%ld\n", sum);
			return argc > 9;
		}
	END
}

@test "allocations, variables, types and fields are told, and what to do" {
	need_namespaces
	walker -g
	"$CULPRIT" record --bursts=all --boring 0 -q -o "$db" -- ./walker >got
	./walker | cmp - got
	"$CULPRIT" db check "$db"
	"$CULPRIT" streams -i "$db" --json >out
	jq -c .data out
	jq -e '[.data[] | select(.kind == "heap" and .type == "node")] |
		length == 1 and .[0].name == "make_node" and .[0].objects == 20 and .[0].size == 136' out
	jq -e '[.data[] | select(.type == "key")] | .[0].path == "main > make_node > make_key > get_memory"' out
	jq -e 'any(.data[]; .kind == "variable" and .name == "totals")' out
	jq -e '[.streams[0].references[].data] | unique | contains(["make_node: node.next", "make_key: key.b"])' out
	jq -e '[.streams[0].references[] | select(.allocated == "make_node") | .instance] | unique | length > 2' out
	# next, value and key are always touched together: side by side they need fewer lines.
	jq -e '.structs[] | select(.type == "node") | .lines_ordered < .lines * 0.7 and
		(.fields | map(select(.name != "pad") | .proposed) | max == 16)' out
	jq -e '.structs[] | select(.type == "node") | .fields[0].affinity | .[0] == .[2] and .[1] == 0' out
	# Each node's key is its own.
	jq -e 'any(.together[]; .from == "make_node" and .to == "make_key" and .advised)' out
	# All of it fits into the first cache.
	jq -e '[.walks[] | .verdict] | all(. == "don'"'"'t")' out
	"$CULPRIT" streams -i "$db" >text
	grep -q 'make_node: node.value -> .next' text
	grep -q 'order: next, value, key, pad' text
	"$CULPRIT" streams -i "$db" --raw | grep -q 'load of 8 at 0x'
}

@test "without debug information, sites and offsets; without allocations, variables" {
	need_namespaces
	walker -s
	"$CULPRIT" record --bursts=all --boring 0 -q -o "$db" -- ./walker
	"$CULPRIT" streams -i "$db" --json >out
	jq -e '[.data[] | select(.kind == "heap" and .objects == 20) | .size] | sort == [24, 136]' out
	jq -e '[.streams[0].references[] | select(.allocated) | .data] | all(test("^walker!0x[0-9a-f]+: \\+[0-9]+$"))' out
	rm "$db"
	walker
	"$CULPRIT" record --bursts=all --boring 0 --no-objects -q -o "$db" -- ./walker
	"$CULPRIT" streams -i "$db" --json >out
	jq -e '[.data[] | select(.kind == "heap")] | length == 0' out
	"$CULPRIT" streams -i "$db" | grep -q 'Allocations were not written down'
}

@test "C++, threads, children, memory that is had again" {
	need_namespaces
	g++ -O2 -g -pthread -x c++ -o many - <<-'END'
		#include <cstdio>
		#include <cstdlib>
		#include <list>
		#include <sys/wait.h>
		#include <thread>
		#include <unistd.h>
		struct Item { long weight; Item *other; Item(long w) : weight(w), other(nullptr) {} };
		__attribute__((noinline)) Item *make_item(long w) { return new Item(w); }
		__attribute__((noinline)) long work(int rounds) {
			long sum = 0;
			for (int r = 0; r < rounds; r++) {
				Item *items[8];
				for (int i = 0; i < 8; i++) items[i] = make_item(r + i);
				for (int i = 0; i < 8; i++) { items[i]->other = items[i * 3 & 7]; sum += items[i]->weight; }
				for (int i = 0; i < 8; i++) sum += items[i]->other->weight;
				for (int i = 0; i < 8; i++) delete items[i];
			}
			return sum;
		}
		int main() {
			long sums[4] = {0};
			std::thread t[4];
			for (int i = 0; i < 4; i++) t[i] = std::thread([&, i] { sums[i] = work(300); });
			for (auto &x : t) x.join();
			if (!fork()) _exit(work(50) & 1);
			int s;
			wait(&s);
			printf("%ld\n", sums[0] + sums[1] + sums[2] + sums[3]);
		}
	END
	./many >want
	"$CULPRIT" record --bursts=300:100 --boring 0 -q -o "$db" -- ./many >got
	cmp want got
	"$CULPRIT" db check "$db"
	"$CULPRIT" streams -i "$db" --json >out
	jq -c '.data[:6]' out
	jq -e 'any(.data[]; .kind == "heap" and (.name | startswith("make_item")) and .type == "Item")' out
	jq -e '.data[] | select(.type == "Item") | .path | contains("work(int) > make_item(long) > operator new(unsigned long)")' out
}

@test "a tree is one stream, as often as it is walked, and who had its nodes made is told" {
	need_namespaces
	g++ -O2 -g -x c++ -o tree - <<-'END'
		#include <cstdio>
		struct Tree { Tree *left, *right; long value; };
		__attribute__((noinline)) Tree *get_tree() { return new Tree(); }
		__attribute__((noinline)) Tree *plant(int depth) {
			Tree *t = get_tree();
			t->value = depth;
			if (depth) { t->left = plant(depth - 1); t->right = plant(depth - 1); }
			return t;
		}
		__attribute__((noinline)) long walk(const Tree *t) {
			return t ? t->value + walk(t->left) + walk(t->right) : 0;
		}
		int main() {
			Tree *t = plant(3);
			long sum = 0;
			for (int i = 0; i < 300; i++) sum += walk(t);
			std::printf("%ld\n", sum);
		}
	END
	"$CULPRIT" record --bursts=all --boring 0 -q -o "$db" -- ./tree >got
	./tree | cmp - got
	"$CULPRIT" streams -i "$db" --json >out
	jq -c '[.coverage, (.streams[] | [.length, .occurrences])], .data[:3]' out
	jq -e '.streams | length == 1 and .[0].length == 45 and .[0].occurrences >= 298' out
	jq -e '.data[0] | .type == "Tree" and .objects == 15 and .size == 24 and (.path | contains("plant(int) > get_tree()"))' out
}

@test "who walks a stream: calling contexts, where calls are recorded along" {
	need_namespaces
	gcc -O2 -g -fno-inline -x c -o callers - <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		struct node { struct node *next; long value; };
		static struct node nodes[20];
		static volatile long noise;
		long walk(struct node *n) {
			long sum = 0;
			for (; n; n = n->next) { sum += n->value; n->value ^= sum & 1; }
			return sum + 1;
		}
		long left(long sum) { for (int i = 0; i < 10; i++) sum += walk(nodes); return sum + noise++; }
		long right(long sum) { for (int i = 0; i < 10; i++) sum ^= walk(nodes); return sum - noise++; }
		int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b + (right(1) == 0); }
		int main(int argc, char **argv) {
			long sum = 0;
			for (int i = 0; i < 20; i++)
				nodes[i] = (struct node){i < 19 ? &nodes[i + 1] : 0, i};
			for (int i = 0; i < atoi(argv[1]); i++) {
				int two[] = {2, 1};
				sum += left(i);
				if (i % 3 == 0)
					sum += right(i);
				if (i % 10 == 0)
					qsort(two, 2, sizeof *two, compare);
			}
			printf("%ld\n", sum);
			return 0;
		}
	END
	./callers 300 >want
	"$CULPRIT" record --bursts=all --boring 0 --payload refs+calls -q -o "$db" -- ./callers 300 >got
	cmp want got
	"$CULPRIT" streams -i "$db" --by context --json >out
	# All occurrences have a context, and one that begins where the program does.
	jq -e '.streams | length > 0 and all(.occurrences == ([.contexts[].occurrences] | add))' out
	jq -e '[.streams[].contexts[]] | all(.path[:2] == ["_start", "main"])' out
	jq -e '[.streams[].contexts[]] | all((.path | length) == (.frames | length))' out
	jq -r '.streams[] | select(all(.references[]; .what | startswith("walk+"))) |
		.contexts[] | "\(.occurrences) \(.path | join(">"))"' out |
		awk '{ sum[$2 ~ />compare>right/ ? "compare" : $2 ~ /main>right/ ? "right" : $2 ~ /main>left/ ? "left" : "odd"] += $1 }
			END { for (k in sum) print k, sum[k] }' | sort >sums
	cat sums
	# 3,000 walks in left, 1,000 in right, 300 in right for the library.
	left=$(awk '$1 == "left" { print $2 }' sums)
	between "$(awk -v l="$left" '$1 == "right" { print l / $2 }' sums)" 2.9 3.1
	between "$(awk -v l="$left" '$1 == "compare" { print l / $2 }' sums)" 9.5 10.5
	! grep -q odd sums
	# Nothing of the library is recorded: it may lie between.
	jq -e '[.streams[].contexts[] | select(.path | index("compare")) | .frames[.path | index("compare")].gap] |
		length > 0 and all' out
	jq -e '[.streams[].contexts[] | select(.path[-1] == "left") | .frames[-1].gap] | length > 0 and (any | not)' out
	"$CULPRIT" streams -i "$db" --by context --raw | grep -q '^ .*%  _start > main \.\.\. compare > right'
	# What is only known in part belongs to what it can only be a part of.
	"$CULPRIT" record --bursts=400:800 --boring 0 --payload refs+calls -q -o part -- ./callers 300 >/dev/null
	"$CULPRIT" streams -i part --by context --json |
		jq -e '.streams | length > 0 and all(.occurrences == ([.contexts[].occurrences] | add)) and
			any(.[].contexts[]; .path | index("main"))'
	# References are the same as without calls.
	"$CULPRIT" record --bursts=all --boring 0 -q -o plain -- ./callers 300 >/dev/null
	"$CULPRIT" streams -i plain --raw --compare "$db" --json | jq -e '.overlap > 0.99'
}

@test "calling contexts need calls" {
	need_namespaces
	"$CULPRIT" record --bursts=all --no-objects -q -o "$db" -- gzip --version >/dev/null
	run "$CULPRIT" streams -i "$db" --by context
	[ "$status" = 2 ]
	[[ $output == *"--payload refs+calls"* ]]
	run "$CULPRIT" streams -i "$db" --by caller
	[ "$status" = 2 ]
	[[ $output == *"is not context"* ]]
}
