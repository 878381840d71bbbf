/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interrupt handler of the DCPI paper's section 4.2: counts (process, exec generation, pc,
 * event) in a four-way table of its CPU. One instance is loaded for each event, with the event's
 * number in read-only data: children that inherit a perf event inherit its program, but not the
 * cookie that could have told events apart.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#include "collect/driver.h"

/* The few kernel fields we read; their places are fixed up at load time (CO-RE). */
struct task_struct {
	int pid;
	int tgid;
	u64 start_time;
	u64 self_exec_id;
} __attribute__((preserve_access_index));

const volatile u32 event_number;

/* User space sets the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct driver_cpu);
} cpus SEC(".maps");

/* Carries nothing; writing to it wakes user space. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* The interpreter (shadow.bpf.c), when there is one. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} next SEC(".maps");

/* The key, with pid and tid as one word, which is how entries are compared. */
struct key {
	u64 pc, ids;
	u32 tag;
};

static __always_inline u64 ids_of(const struct driver_entry *e)
{
	u64 w;

	__builtin_memcpy(&w, &e->pid, sizeof w);
	return w;
}

static __always_inline struct key current_key(u64 pc, u32 side)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct key k = {.pc = pc};
	u32 generation = (u32)(task->start_time >> 10) * 31 + (u32)task->self_exec_id;

	k.ids = (u32)task->tgid | (u64)(u32)task->pid << 32;
	k.tag = event_number | generation << DRIVER_TAG_GENERATION_SHIFT;
	if (side)
		k.tag |= DRIVER_TAG_SIDE;
	/* Kernel addresses are the negative ones. */
	if ((__s64)pc < 0)
		k.tag |= DRIVER_TAG_KERNEL;
	return k;
}

/* The tag is left out: the bucket's memory is asked for while the tag's still arrives. */
static __always_inline u32 bucket_of(const struct key *k)
{
	u64 h = (k->pc ^ k->ids * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;

	return (h >> 40) % DRIVER_BUCKETS;
}

/* Section 4.2.1's overflow buffer. */
static __always_inline void evict(struct driver_cpu *c, const struct driver_entry *e)
{
	u64 used = c->head - c->tail, nothing = 0;

	if (used >= DRIVER_OVERFLOW) {
		c->dropped[e->tag & DRIVER_TAG_EVENT] += e->count;
		return;
	}
	c->overflow[c->head % DRIVER_OVERFLOW] = *e;
	barrier(); /* x86 stores in order: user space sees the entry before the new head */
	c->head++;
	/* User space looks several times a second; it is woken when that might be too late. */
	if (used == DRIVER_OVERFLOW / 2)
		bpf_ringbuf_output(&doorbell, &nothing, sizeof nothing, BPF_RB_FORCE_WAKEUP);
}

/*
 * Takes the entry whose turn it is (section 4.2.1: a mod-4 counter). The paper's better policies,
 * insertion at the front and swap to front (section 5.4), evict 2% less here and cost as much.
 */
static __always_inline void insert(
	struct driver_cpu *c, u32 side, struct driver_bucket *b, const struct key *k)
{
	struct driver_entry *e = &b->way[c->turn++ % DRIVER_WAYS];
	u64 seen = (bpf_ktime_get_ns() - c->base[side]) >> DRIVER_SEEN_SHIFT;

	c->misses++;
	if (e->count)
		evict(c, e);
	e->pc = k->pc;
	e->pid = k->ids;
	e->tid = k->ids >> 32;
	e->tag = k->tag;
	e->cgroup = bpf_get_current_cgroup_id();
	e->count = 1;
	e->seen = seen < ~0u ? seen : ~0u;
}

static __always_inline void count(struct driver_cpu *c, u64 pc)
{
	u32 side;
	struct driver_bucket *b;
	struct key k;

	side = c->active & 1; /* once: user space may turn it over while we run */
	k = current_key(pc, side);
	b = &c->table[side][bucket_of(&k)];
	for (int w = 0; w < DRIVER_WAYS; w++) {
		struct driver_entry *e = &b->way[w];

		if (e->pc == k.pc && ids_of(e) == k.ids && e->tag == k.tag) {
			e->count++;
			c->hits++;
			return;
		}
	}
	insert(c, side, b, &k);
}

SEC("perf_event")
int driver_sample(struct bpf_perf_event_data *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct driver_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	if (!c)
		return 0;
	count(c, ctx->regs.rip);
	/* The first event's samples are those that programs are interpreted from. */
	if (event_number == 0 && c->every && ++c->since >= c->every) {
		c->since = 0;
		bpf_tail_call(ctx, &next, 0);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
