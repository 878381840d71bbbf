/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interpreter as shadow.bpf.c has it, over an array instead of a program's memory, to be run
 * from user space on cases of its choice.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#include "collect/shadow_vectors.h"
#include "isa/interp_state.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct interp);
} machine SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct vectors);
} memory SEC(".maps");

__attribute__((noinline)) int interp_memory(struct interp *m, u64 address, u64 *word)
{
	u64 code = (address - VECTORS_CODE) / 8, data = (address - VECTORS_DATA) / 8;
	u32 zero = 0;
	struct vectors *v = bpf_map_lookup_elem(&memory, &zero);

	if (!m || !word || !v)
		return -1;
	v->reads++;
	*word = 0;
	if (v->missing >> (address >> 6 & 63) & 1)
		return -1;
	if (code < VECTORS_CODE_WORDS)
		*word = v->code[code % VECTORS_CODE_WORDS];
	else if (data < VECTORS_DATA_WORDS)
		*word = v->data[data % VECTORS_DATA_WORDS];
	else
		return -1;
	return 0;
}

__attribute__((noinline)) int interp_memory_line(struct interp *m, u64 address, u32 n)
{
	u64 word = 0;
	int r;

	if (!m)
		return -1;
	for (u32 i = 0; i < 4; i++) {
		r = interp_memory(m, address + i * 8, &word);
		m->line[n % INTERP_LINES].code[i] = word;
		if (r < 0)
			return -1;
	}
	return 0;
}

static __attribute__((always_inline)) int interp_memory_code(
	struct interp *m, u64 address, u64 *code)
{
	u32 zero = 0, shift = (address & 7) * 8;
	struct vectors *v = bpf_map_lookup_elem(&memory, &zero);
	u64 word[2];

	if (!v || !v->direct)
		return -1;
	for (u32 i = 0; i < 2; i++) {
		if (interp_memory(m, (address & ~7ull) + i * 8, &word[i]) < 0)
			return -1;
	}
	*code = word[0] >> shift | word[1] << 1 << (63 - shift);
	return 0;
}

#include "isa/interp_run.h"

struct progress {
	struct interp *m;
	struct vectors *v;
};

static long step(u32 index, struct progress *p)
{
	int stop = interp_one(p->m);

	p->v->stop = (u32)stop;
	if (stop)
		return 1;
	p->v->done = index + 1;
	return 0;
}

SEC("raw_tp")
int run_vector(void *ctx)
{
	u32 zero = 0;
	struct progress p = {.m = bpf_map_lookup_elem(&machine, &zero),
		.v = bpf_map_lookup_elem(&memory, &zero)};

	(void)ctx;
	if (!p.m || !p.v)
		return 0;
	p.v->done = p.v->reads = p.v->stop = 0;
	bpf_loop(p.v->steps, step, &p, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
