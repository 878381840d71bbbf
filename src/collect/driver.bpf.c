/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interrupt handler of the DCPI paper's section 4.2: counts (process, exec generation, pc,
 * event) in a four-way table of its CPU. One instance is loaded for each event, with the event's
 * number in read-only data: children that inherit a perf event inherit its program, but not the
 * cookie that could have told events apart.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#include "collect/driver.h"

/* The few kernel fields we read; their places are fixed up at load time (CO-RE). */
struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct mm_struct {
	unsigned long mmap_base;
	unsigned long start_code, end_code, start_data, end_data;
	unsigned long start_stack;
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* As the kernel names them. */
struct pt_regs___saved {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long ip, sp;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	u64 start_time;
	u64 self_exec_id;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw;
	struct mm_struct *mm;
	struct thread_struct thread;
	unsigned long sas_ss_sp;
	unsigned long sas_ss_size;
	unsigned in_execve : 1;
} __attribute__((preserve_access_index));

const volatile u32 event_number;
const volatile bool contexts; /* samples are told apart by the context they were called in */
const volatile u32 how;       /* DRIVER_INFER, ... */
const volatile u32 judges = DRIVER_JUDGES;

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

/* Of stacks that were copied. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stacks SEC(".maps");

/* Contexts that were seen before: parts of their hashes. User space may clear some. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct driver_seen);
} seen SEC(".maps");

/* The key, with pid and tid as one word, which is how entries are compared. */
struct key {
	u64 pc, ids;
	struct driver_context context;
	u32 tag;
};

/* All registers but the stack pointer, by their number in machine code. */
/* clang-format off */
#define REGISTERS(X) \
	X(0, rax) X(1, rcx) X(2, rdx) X(3, rbx) X(5, rbp) X(6, rsi) X(7, rdi) X(8, r8) \
	X(9, r9) X(10, r10) X(11, r11) X(12, r12) X(13, r13) X(14, r14) X(15, r15)
#define SAVED_REGISTERS(X) \
	X(0, ax) X(1, cx) X(2, dx) X(3, bx) X(5, bp) X(6, si) X(7, di) X(8, r8) \
	X(9, r9) X(10, r10) X(11, r11) X(12, r12) X(13, r13) X(14, r14) X(15, r15)
/* clang-format on */
#define STACK_POINTER 4

#include "collect/driver_context.h"

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
	u64 pc = contexts ? k->pc + (k->context.where ^ k->context.caller[0]) * 0xff51afd7ed558ccd
			  : k->pc;
	u64 h = (pc ^ k->ids * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;

	return (h >> 40) % DRIVER_BUCKETS;
}

/* Section 4.2.1's overflow buffer. */
static __always_inline void evict(
	struct driver_cpu *c, const struct driver_entry *e, const struct driver_context *context)
{
	u64 used = c->head - c->tail, nothing = 0;

	if (used >= DRIVER_OVERFLOW) {
		c->dropped[e->tag & DRIVER_TAG_EVENT] += e->count;
		return;
	}
	c->overflow[c->head % DRIVER_OVERFLOW] = *e;
	if (contexts)
		c->overflow_context[c->head % DRIVER_OVERFLOW] = *context;
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
static __always_inline void insert(struct driver_cpu *c, u32 side, u32 bucket, const struct key *k)
{
	u32 way = c->turn++ % DRIVER_WAYS;
	struct driver_entry *e = &c->table[side][bucket].way[way];
	struct driver_context *context = &c->contexts[side][bucket].way[way];
	u64 seen = (bpf_ktime_get_ns() - c->base[side]) >> DRIVER_SEEN_SHIFT;

	c->misses++;
	if (e->count)
		evict(c, e, context);
	if (contexts)
		*context = k->context;
	e->pc = k->pc;
	e->pid = k->ids;
	e->tid = k->ids >> 32;
	e->tag = k->tag;
	e->cgroup = bpf_get_current_cgroup_id();
	e->count = 1;
	e->seen = seen < ~0u ? seen : ~0u;
}

static __always_inline bool is_context(
	const struct driver_context *a, const struct driver_context *b)
{
	if (a->where != b->where || a->user != b->user)
		return false;
	for (int i = 0; i < DRIVER_CALLERS; i++)
		if (a->caller[i] != b->caller[i])
			return false;
	return true;
}

static __always_inline void count(struct driver_cpu *c, u32 side, const struct key *k)
{
	u32 bucket = bucket_of(k);
	struct driver_bucket *b = &c->table[side][bucket];
	const struct driver_context_bucket *more = &c->contexts[side][bucket];

	for (int w = 0; w < DRIVER_WAYS; w++) {
		struct driver_entry *e = &b->way[w];

		if (e->pc != k->pc || ids_of(e) != k->ids || e->tag != k->tag)
			continue;
		if (contexts && !is_context(&more->way[w], &k->context))
			continue;
		e->count++;
		c->hits++;
		return;
	}
	insert(c, side, bucket, k);
}

/* ---- two samples in a row ---- */

/*
 * A thread's time on CPUs: what was accounted, and what has passed since. The scheduler's clock and
 * ours differ by a number that does not change and cancels out between two samples of one CPU.
 */
static __always_inline u64 time_until_now(const struct task_struct *task, u64 now)
{
	return task->se.sum_exec_runtime + (now - task->se.exec_start);
}

/*
 * Few pairs are wanted, so the registers are kept of a few samples only, chosen at random, and in
 * one place of the CPU: what a table of all threads costs is paid at every sample, whose thread
 * must be looked up in it. A thread that goes on on another CPU is waited for in vain.
 */
static __always_inline void begin_pair(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, const struct key *k)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct driver_last *l = &c->last;

	if (c->awaited)
		c->lapsed++;
	c->begun++;
	c->awaited = k->ids >> 32;
	l->time = bpf_ktime_get_ns();
	l->pc = k->pc;
	l->tag = k->tag;
	l->kernel = 0;
	l->switches = task->nvcsw + task->nivcsw;
	l->before = time_until_now(task, l->time);
	l->r[STACK_POINTER] = ctx->regs.rsp;
#define KEEP(n, name) l->r[n] = ctx->regs.name;
	REGISTERS(KEEP)
}

static __always_inline void put_pair(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, const struct key *k)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct driver_last *l = &c->last;
	struct driver_pair *p = &c->pair[c->pair_head % DRIVER_PAIRS];
	u32 changed = 0;

	p->time = bpf_ktime_get_ns();
	p->pc = k->pc;
	p->last = l->pc;
	p->pid = k->ids;
	p->tid = k->ids >> 32;
	p->kernel = l->kernel;
	p->switched = task->nvcsw + task->nivcsw != l->switches;
	p->between = time_until_now(task, p->time) - l->before;
#define COMPARE(n, name)                             \
	p->difference[n] = ctx->regs.name - l->r[n]; \
	changed |= (p->difference[n] != 0) << n;
	REGISTERS(COMPARE)
	p->difference[STACK_POINTER] = 0;
	p->changed = changed;
	barrier(); /* as in evict */
	c->pair_head++;
}

/* The awaited thread's next sample. */
static __always_inline void end_pair(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, const struct key *k)
{
	const struct driver_last *l = &c->last;

	if (k->tag & DRIVER_TAG_KERNEL) {
		c->last.kernel++;
		return;
	}
	c->awaited = 0;
	if ((k->tag ^ l->tag) >> DRIVER_TAG_GENERATION_SHIFT ||
		ctx->regs.rsp != l->r[STACK_POINTER] ||
		k->pc - l->pc + DRIVER_NEAR - 1 > 2 * DRIVER_NEAR - 2)
		c->apart++;
	else if (c->pair_head - c->pair_tail >= DRIVER_PAIRS)
		c->pairs_lost++;
	else
		put_pair(ctx, c, k);
}

/* Waits are drawn anew each time, so that choices do not keep step with anything. */
static __always_inline void pair(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, const struct key *k)
{
	if (c->awaited && c->awaited == k->ids >> 32)
		end_pair(ctx, c, k);
	if (!c->wait || --c->wait)
		return;
	c->wait = 1 + bpf_get_prandom_u32() % (2 * (u64)c->pair_every - 1);
	if (!(k->tag & DRIVER_TAG_KERNEL))
		begin_pair(ctx, c, k);
}

SEC("perf_event")
int driver_sample(struct bpf_perf_event_data *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct driver_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	struct key k;
	u32 side;

	if (!c)
		return 0;
	side = c->active & 1; /* once: user space may turn it over while we run */
	k = current_key(ctx->regs.rip, side);
	if (contexts)
		find_context(ctx, c, &k);
	count(c, side, &k);
	if (event_number != 0)
		return 0;
	/* The first event's samples are those that pairs and the interpreter begin with. */
	pair(ctx, c, &k);
	if (c->every && ++c->since >= c->every) {
		c->since = 0;
		bpf_tail_call(ctx, &next, 0);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
