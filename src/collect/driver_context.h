/*
 * The part of the sampler (driver.bpf.c, which includes it) that tells calling contexts apart: by
 * the height of the stack, and by copies of stacks whose height nobody has seen yet.
 */
#ifndef CULPRIT_COLLECT_DRIVER_CONTEXT_H
#define CULPRIT_COLLECT_DRIVER_CONTEXT_H

/* The program's registers: those of the sample, or what it entered the kernel with. */
struct place {
	u64 pc, sp, bp;
	u64 base; /* of its stack */
	u64 kind;
	const struct pt_regs___saved *saved; /* NULL: those of the sample */
};

/* Which stack it is on; heights mean nothing on one that nobody knows. */
static __always_inline void find_base(const struct task_struct *task, struct place *p)
{
	u64 low = task->sas_ss_sp, size = task->sas_ss_size;

	p->base = task->mm->start_stack;
	p->kind = WHERE_MAIN;
	if (p->base - p->sp < WHERE_DEEPEST)
		return;
	if (p->sp - low < size) {
		p->base = low + size;
		p->kind = WHERE_SIGNAL;
		return;
	}
	p->base = task->thread.fsbase;
	p->kind = WHERE_THREAD;
	if (p->base - p->sp < WHERE_DEEPEST)
		return;
	p->base = p->sp;
	p->kind = WHERE_OTHER;
}

static __always_inline u64 where_of(const struct place *p)
{
	u64 height = (p->base - p->sp) / 8, frame = (p->bp - p->sp) / 8;

	if (p->bp < p->sp || p->bp % 8 || frame > WHERE_FRAME || p->bp >= p->base)
		frame = 0;
	return height | frame << WHERE_FRAME_SHIFT | p->kind << WHERE_KIND_SHIFT;
}

/* The caller, if somebody asked for it. */
static __always_inline u64 caller_of(const struct place *p, u32 back)
{
	u64 caller = 0;

	if (back && bpf_probe_read_user(
			    &caller, sizeof caller, (const void *)(p->base - 8 * (u64)back)))
		return 0;
	return caller;
}

/* Whether this one was not seen before; from now on it was. */
static __always_inline bool is_new(struct key *k, const struct place *p)
{
	u32 zero = 0;
	struct driver_seen *s = bpf_map_lookup_elem(&seen, &zero);
	u64 h = driver_context_hash(
		k->ids, k->tag >> DRIVER_TAG_GENERATION_SHIFT, p->pc, k->context.where);
	u32 mark = DRIVER_MARK(h), slot = DRIVER_SLOT(h);

	if (!s)
		return false;
	if (s->mark[slot] == mark) {
		k->context.caller = caller_of(p, s->back[slot]);
		return false;
	}
	s->mark[slot] = mark;
	s->back[slot] = 0;
	return true;
}

/* ---- copies of stacks ---- */

static __always_inline void keep_registers(
	struct bpf_perf_event_data *ctx, const struct place *p, struct driver_stack *s)
{
	const struct pt_regs___saved *r = p->saved;

	if (!r) {
		s->r[STACK_POINTER] = ctx->regs.rsp;
#define KEEP_OWN(n, name) s->r[n] = ctx->regs.name;
		REGISTERS(KEEP_OWN)
		/* The compiler may not make one code of both: the kernel takes no pointer that
		 * leads to either. */
		asm volatile("" : : "r"(s) : "memory");
		return;
	}
	s->r[STACK_POINTER] = r->sp;
#define KEEP_SAVED(n, name) s->r[n] = r->name;
	SAVED_REGISTERS(KEEP_SAVED)
}

/* `room` is a constant, as the kernel wants it. */
static __always_inline bool put_stack(struct bpf_perf_event_data *ctx, const struct key *k,
	const struct place *p, u32 judge, u32 learn, u32 room)
{
	struct driver_stack *s = bpf_ringbuf_reserve(&stacks, sizeof *s + room, 0);
	u64 size = p->kind == WHERE_OTHER ? room / 4 : p->base - p->sp;

	if (!s)
		return false;
	if (size > room)
		size = room;
	if (bpf_probe_read_user(s + 1, size, (const void *)p->sp)) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		return false;
	}
	s->time = bpf_ktime_get_ns();
	s->pc = k->pc;
	s->base = p->base;
	s->context = k->context;
	s->rip = p->pc;
	s->pid = k->ids;
	s->tid = k->ids >> 32;
	s->tag = k->tag;
	s->size = size;
	s->judge = judge;
	s->learn = learn;
	keep_registers(ctx, p, s);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline void copy_stack(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, u32 judge, u32 learn)
{
	u64 size = p->kind == WHERE_OTHER ? 0 : p->base - p->sp;
	u32 cost = size <= DRIVER_SHORT  ? 1
		   : size <= DRIVER_LONG ? DRIVER_LONG_COST
					 : DRIVER_LONGEST_COST;
	bool done;

	if (c->stacks_left < cost) {
		c->stacks_held++;
		return;
	}
	c->stacks_left -= cost;
	if (size <= DRIVER_SHORT)
		done = put_stack(ctx, k, p, judge, learn, DRIVER_SHORT);
	else if (size <= DRIVER_LONG)
		done = put_stack(ctx, k, p, judge, learn, DRIVER_LONG);
	else
		done = put_stack(ctx, k, p, judge, learn, DRIVER_LONGEST);
	if (done)
		c->stacks++;
	else
		c->stacks_lost++;
}

/* ---- contexts ---- */

/*
 * Completes the key. A stack is copied if its context is new, and now and then to see whether what
 * is known of it is right.
 */
static __always_inline void find_context(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, struct key *k)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct place p = {.pc = k->pc, .sp = ctx->regs.rsp, .bp = ctx->regs.rbp};
	u32 draw = bpf_get_prandom_u32(), judge = draw % c->judges == 0;
	u32 learn = draw % DRIVER_JUDGES == 0;

	if (k->tag & DRIVER_TAG_KERNEL) {
		p.saved = (void *)bpf_task_pt_regs(task);
		p.pc = p.saved->ip;
		p.sp = p.saved->sp;
		p.bp = p.saved->bp;
		k->context.user = p.pc;
		/* Threads of the kernel have never been anywhere else. */
		if (!task->mm) {
			k->context.user = 0;
			k->context.where = WHERE_OTHER << WHERE_KIND_SHIFT;
			return;
		}
	}
	find_base(task, &p);
	k->context.where = where_of(&p);
	learn |= is_new(k, &p);
	if (learn || judge)
		copy_stack(ctx, c, k, &p, judge, learn);
}

#endif
