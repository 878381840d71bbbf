/*
 * The part of the sampler (driver.bpf.c, which includes it) that tells calling contexts apart: by
 * the height of the stack, and by copies of stacks whose height nobody has seen yet.
 */
#ifndef CULPRIT_COLLECT_DRIVER_CONTEXT_H
#define CULPRIT_COLLECT_DRIVER_CONTEXT_H

#define PAGE 4096

/* A stack that has more bytes is not that of who executes a program. */
#define DEEPEST_AT_EXEC (8ull << 20)

/* The program's registers: those of the sample, or what it entered the kernel with. */
struct place {
	u64 pc, sp, bp;
	u64 base; /* of its stack */
	u64 kind;
	u64 hash;                            /* of the context */
	const struct pt_regs___saved *saved; /* NULL: those of the sample */
};

/*
 * Which stack it is on; heights mean nothing on one that nobody knows. Threads have what fs points
 * to at the end of their stacks, but for the first, which has it anywhere: below it may be a
 * coroutine's stack.
 */
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
	if (p->base - p->sp < WHERE_DEEPEST && task->pid != task->tgid)
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

/*
 * The same in all processes of a program: its code and libraries lie where chance put them, but
 * always as far from where they begin.
 */
static __always_inline u64 place_in(const struct mm_struct *mm, u64 address)
{
	u64 code = mm->start_code;

	return address - code < mm->end_code - code ? address - code : address - mm->mmap_base;
}

/* The callers that somebody asked for, and a hash of them. */
static __always_inline u64 tell_callers(
	const struct mm_struct *mm, const struct place *p, u64 ask, struct driver_context *out)
{
	u64 hash = 0;

	for (int i = 0; i < DRIVER_CALLERS; i++) {
		u64 at = ASK_AT(ask, i), address = 0;

		if (!at)
			break;
		bpf_probe_read_user(&address, sizeof address, (const void *)(p->sp + 8 * (at - 1)));
		out->caller[i] = CALLER_ADDRESS(address) | at << CALLER_SHIFT;
		hash = DRIVER_HASH_TOLD(hash, place_in(mm, CALLER_ADDRESS(address)));
	}
	return hash;
}

/* A program is known by the size of its segments. */
static __always_inline u64 program_hash(const struct mm_struct *mm)
{
	return (mm->end_code - mm->start_code) * 0x9e3779b97f4a7c15 +
	       (mm->end_data - mm->start_data) * 31;
}

/* The same in all processes of a program. */
static __always_inline u64 context_hash(
	const struct task_struct *task, const struct place *p, u64 where)
{
	const struct mm_struct *mm = task->mm;
	u64 h = (place_in(mm, p->pc) >> 8) + program_hash(mm);

	/* Stacks that nobody knows begin with a page, mostly. */
	if (p->kind == WHERE_OTHER)
		h += (p->sp & 4095) << 40;
	return (h ^ where * 0xff51afd7ed558ccd) * 0xd6e8feb86659fd93;
}

/* Why a stack is copied. */
enum why {
	WHY_LEARN = 1,  /* its path is to be known from now on; */
	WHY_WANTED = 2, /* for sure: user space asked for it */
	WHY_JUDGE = 4,  /* to see whether what is known is right */
	WHY_AGAIN = 8,  /* nobody has said what else it should tell */
	WHY_NEW = 16,   /* nothing is known of it, or of what it tells */
};

/* A context's place in the filter, and that of what it told. */
struct spot {
	struct driver_seen *seen;
	u32 slot, mark;
	u32 told_slot, told_mark; /* 0: it told nothing new */
};

/* Whether callers were told that nobody has told before. */
static __always_inline bool is_told_new(const struct place *p, u64 told, struct spot *spot)
{
	const struct driver_slot *s = spot->seen->slot;
	u64 h = DRIVER_HASH_BOTH(p->hash, told);
	u32 slot = DRIVER_SLOT(h), other = slot ^ 1, mark = DRIVER_MARK(h);

	if (s[slot].told == mark || s[other].told == mark)
		return false;
	spot->told_slot = !s[slot].told ? slot : !s[other].told ? other : slot ^ (mark >> 31);
	spot->told_mark = mark;
	return true;
}

/*
 * Whether this one was not seen before, or is wanted, and where it is in the filter or may be: each
 * has two places there.
 */
static __always_inline u32 novelty_of(
	const struct task_struct *task, struct key *k, const struct place *p, struct spot *spot)
{
	u32 zero = 0, slot, other, why = WHY_LEARN | WHY_NEW;
	const struct driver_slot *s;

	slot = DRIVER_SLOT(p->hash);
	other = slot ^ 1;
	spot->mark = DRIVER_MARK(p->hash);
	spot->seen = bpf_map_lookup_elem(&seen, &zero);
	if (!spot->seen)
		return 0;
	s = spot->seen->slot;
	if (s[slot].mark == spot->mark || s[other].mark == spot->mark) {
		u64 ask;

		slot = s[slot].mark == spot->mark ? slot : other;
		ask = s[slot].ask;
		why = ask ? 0 : WHY_LEARN | WHY_AGAIN;
		if (ASK_AT(ask, 0) && p->kind != WHERE_OTHER &&
			is_told_new(p, tell_callers(task->mm, p, ask, &k->context), spot))
			why = WHY_LEARN | WHY_NEW;
	} else if (s[slot].mark == DRIVER_WANTED || s[other].mark == DRIVER_WANTED) {
		slot = s[slot].mark == DRIVER_WANTED ? slot : other;
		why |= WHY_WANTED;
	} else if (s[slot].mark) {
		slot = s[other].mark ? slot ^ (spot->mark >> 31) : other;
	}
	spot->slot = slot;
	k->context.where |= (u64)slot << WHERE_SLOT_SHIFT;
	return why;
}

static __always_inline void note_seen(const struct spot *spot)
{
	struct driver_slot *s = &spot->seen->slot[spot->slot % DRIVER_SEEN];

	if (spot->told_mark)
		spot->seen->slot[spot->told_slot % DRIVER_SEEN].told = spot->told_mark;
	if (s->mark == spot->mark)
		return;
	s->mark = spot->mark;
	s->ask = 0;
}

/* ---- copies of stacks ---- */

#include "collect/driver_steps.h"

#include "collect/driver_near.h"

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

static __always_inline void describe_stack(struct bpf_perf_event_data *ctx, const struct key *k,
	const struct place *p, u32 why, struct driver_stack *s)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	s->time = bpf_ktime_get_ns();
	s->pc = k->pc;
	s->base = p->base;
	s->context = k->context;
	if (why & WHY_LEARN)
		s->context.where &= ~(WHERE_HELD | WHERE_NEAR);
	s->hash = p->hash;
	s->code = task->mm->start_code;
	s->code_end = task->mm->end_code;
	s->libraries = task->mm->mmap_base;
	s->program = program_hash(task->mm);
	s->rip = p->pc;
	s->pid = k->ids;
	s->tid = k->ids >> 32;
	s->tag = k->tag;
	s->judge = !!(why & WHY_JUDGE);
	s->learn = !!(why & WHY_LEARN);
	s->chain = 0;
	s->trail = 0;
	s->alone = 0;
	keep_registers(ctx, p, s);
}

/* Bytes of the stack that are copied, at most. Where one that nobody knows ends is not known. */
static __always_inline u64 copied_size(const struct place *p, u32 room)
{
	u64 size = p->kind == WHERE_OTHER ? DRIVER_MIDDLE : p->base - p->sp;

	return size < room ? size : room;
}

/* The pages behind the first. */
struct pages {
	u8 *to;
	u64 sp, size, first;
};

static long copy_page(u32 i, void *arg)
{
	struct pages *p = arg;
	u64 at = p->first + (u64)i * PAGE;

	if (at >= p->size || at >= DRIVER_LONGEST)
		return 1;
	bpf_probe_read_user(p->to + at, PAGE, (const void *)(p->sp + at));
	return 0;
}

/*
 * Page by page, since some are not there: those of large variables that nobody has touched yet, or
 * behind the end of a stack. They read as zeros. (Kernels before 5.17 cannot: there the first page
 * must do.)
 */
static __always_inline bool put_pages(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, u32 why)
{
	struct driver_stack *s = bpf_ringbuf_reserve(&stacks, sizeof *s + DRIVER_LONGEST + PAGE, 0);
	struct pages pages = {.sp = p->sp,
		.size = copied_size(p, DRIVER_LONGEST),
		.first = PAGE - (p->sp & (PAGE - 1))};
	bool loops = bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);

	if (!s) {
		c->stacks_lost++;
		return false;
	}
	pages.to = (u8 *)(s + 1);
	if (bpf_probe_read_user(pages.to, pages.first, (const void *)p->sp)) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		c->stacks_gone++;
		return false;
	}
	if (loops)
		bpf_loop(DRIVER_LONGEST / PAGE, copy_page, &pages, 0);
	describe_stack(ctx, k, p, why, s);
	s->size = loops || pages.size < pages.first ? pages.size : pages.first;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

/* `room` is a constant, as the kernel wants it. */
static __always_inline bool put_stack(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, u32 why, u32 room, bool *holes)
{
	struct driver_stack *s = bpf_ringbuf_reserve(&stacks, sizeof *s + room, 0);
	u64 size = copied_size(p, room);

	if (!s) {
		c->stacks_lost++;
		return false;
	}
	if (bpf_probe_read_user(s + 1, size, (const void *)p->sp)) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		*holes = true;
		return false;
	}
	describe_stack(ctx, k, p, why, s);
	s->size = size;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

/* User space is woken when the ring might be full before it looks. */
static __always_inline bool is_half_full(void)
{
	u64 nothing = 0;

	if (bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) <= DRIVER_STACKS / 2)
		return false;
	bpf_ringbuf_output(&doorbell, &nothing, sizeof nothing, BPF_RB_FORCE_WAKEUP);
	return true;
}

/* The sooner user space answers, the fewer are copied in vain. */
static __always_inline void hurry(struct driver_cpu *c)
{
	u64 nothing = 0;

	if (++c->stacks_again % DRIVER_HURRY == 0)
		bpf_ringbuf_output(&doorbell, &nothing, sizeof nothing, BPF_RB_FORCE_WAKEUP);
}

/* The return addresses that the kernel finds by frame pointers. */
static __always_inline bool put_chain(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p)
{
	const u32 room = DRIVER_CHAIN_MOST * sizeof(u64);
	struct driver_stack *s = bpf_ringbuf_reserve(&stacks, sizeof *s + room, 0);
	long n;

	if (!s) {
		c->stacks_lost++;
		return false;
	}
	n = bpf_get_stack(ctx, s + 1, room, BPF_F_USER_STACK);
	if (n < 0) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		c->stacks_gone++;
		return false;
	}
	describe_stack(ctx, k, p, WHY_LEARN, s);
	s->chain = 1;
	s->size = n;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	is_half_full();
	c->stacks++;
	return true;
}

static __always_inline bool put_sized(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, u32 why, u64 size)
{
	bool holes = false, put;

	if (size <= DRIVER_SHORT)
		put = put_stack(ctx, c, k, p, why, DRIVER_SHORT, &holes);
	else if (size <= DRIVER_MEDIUM)
		put = put_stack(ctx, c, k, p, why, DRIVER_MEDIUM, &holes);
	else if (size <= DRIVER_MIDDLE)
		put = put_stack(ctx, c, k, p, why, DRIVER_MIDDLE, &holes);
	else if (size <= DRIVER_LONG)
		put = put_stack(ctx, c, k, p, why, DRIVER_LONG, &holes);
	else if (size <= DRIVER_LONGER)
		put = put_stack(ctx, c, k, p, why, DRIVER_LONGER, &holes);
	else
		put = put_stack(ctx, c, k, p, why, DRIVER_LONGEST, &holes);
	return holes ? put_pages(ctx, c, k, p, why) : put;
}

/* The list of return addresses, if all that lead to the root are known. */
static __always_inline bool put_trail(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, const struct driver_seen *known, u32 why)
{
	const u32 room = (DRIVER_TRAIL + 1) * sizeof(u64);
	struct trail t = trail_from(known, p);
	struct driver_stack *s;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop) ||
		(p->kind != WHERE_MAIN && p->kind != WHERE_THREAD))
		return false;
	s = bpf_ringbuf_reserve(&stacks, sizeof *s + room, 0);
	if (!s)
		return false;
	t.to = (u64 *)(s + 1);
	if (!follow_trail(&t, p)) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		return false;
	}
	/* Where the frame of the last one ends. */
	((u64 *)(s + 1))[t.n] = t.at << CALLER_SHIFT;
	describe_stack(ctx, k, p, why, s);
	s->trail = 1;
	s->size = (t.n + 1) * sizeof(u64);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	is_half_full();
	c->trails++;
	return true;
}

static __always_inline u32 copy_cost(u64 size)
{
	return size <= DRIVER_MIDDLE   ? DRIVER_COPY_COST
	       : size <= DRIVER_LONG   ? DRIVER_LONG_COST
	       : size <= DRIVER_LONGER ? DRIVER_LONGER_COST
				       : DRIVER_LONGEST_COST;
}

/* What is to judge by, is copied. */
static __always_inline bool is_followed(u32 why)
{
	return how == DRIVER_JUDGE ? why & WHY_LEARN : how == DRIVER_INFER && !(why & WHY_JUDGE);
}

/*
 * Of a long stack the first part, which mostly leads to what is known; all of it where that
 * was not enough. Where there is nothing left, less. What nobody asked for leaves a
 * part of all for what is.
 */
static __always_inline bool copy_stack(struct bpf_perf_event_data *ctx, struct driver_cpu *c,
	const struct key *k, const struct place *p, const struct driver_seen *known, u32 *why)
{
	u64 size = p->kind == WHERE_OTHER ? DRIVER_MIDDLE : p->base - p->sp;
	bool free = how == DRIVER_COPY, wanted = *why & WHY_WANTED;
	u32 reserve = wanted ? 0 : *why & WHY_AGAIN ? DRIVER_AGAIN : DRIVER_RESERVE, cost;

	if (how == DRIVER_INFER && !(*why & (WHY_WANTED | WHY_AGAIN)) && size > DRIVER_LONG)
		size = DRIVER_MIDDLE;
	if (is_followed(*why) && c->stacks_left >= reserve + DRIVER_TRAIL_COST &&
		put_trail(ctx, c, k, p, known, *why)) {
		c->stacks_left -= DRIVER_TRAIL_COST;
		if (*why & WHY_AGAIN)
			hurry(c);
		c->stacks++;
		return true;
	}
	cost = copy_cost(size);
	/* Those that are only looked at cost nothing, and what else would not be there is not
	 * learned from. */
	if (how == DRIVER_JUDGE && (c->stacks_left < reserve + cost || !(*why & WHY_LEARN))) {
		*why &= ~WHY_LEARN;
		free = true;
	}
	if (!free && c->stacks_left < reserve + cost) {
		size = DRIVER_SHORT;
		cost = DRIVER_COPY_COST;
	}
	if (!free && (c->stacks_left < reserve + cost ||
			     (is_half_full() && !wanted && how != DRIVER_JUDGE))) {
		c->stacks_held++;
		return false;
	}
	if (free)
		is_half_full();
	if (!put_sized(ctx, c, k, p, *why, size))
		return false;
	if (!free)
		c->stacks_left -= cost;
	if (*why & WHY_AGAIN)
		hurry(c);
	c->stacks++;
	return true;
}

/*
 * Puts what is known into memory and takes it out again: the kernel's verifier then knows nothing
 * of it, and goes through what follows once, not for each way that leads there. (A tenth of the
 * instructions, and 2 s less to begin a recording.)
 */
static __always_inline void forget(
	struct driver_forgotten *f, struct key *k, struct place *p, struct spot *spot, u32 *why)
{
	f->context = k->context;
	f->kind = p->kind;
	f->base = p->base;
	f->why = *why;
	f->slot = spot->slot;
	f->mark = spot->mark;
	f->told_slot = spot->told_slot;
	f->told_mark = spot->told_mark;
	asm volatile("" : : : "memory");
	k->context = f->context;
	p->kind = f->kind;
	p->base = f->base;
	*why = f->why;
	spot->slot = f->slot;
	spot->mark = f->mark;
	spot->told_slot = f->told_slot;
	spot->told_mark = f->told_mark;
}

/*
 * Takes the stack if it must: always, if its context is new or wanted, and now and then to see
 * whether what is known of it is right. True when the sample waits for what it tells.
 */
static __always_inline bool take_stack(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, struct key *k, struct place *p)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	u32 dice = bpf_get_prandom_u32(), why;
	struct spot spot = {0};

	why = novelty_of(task, k, p, &spot);
	if (how == DRIVER_CHAIN)
		return put_chain(ctx, c, k, p);
	/* Whose stack is taken anyway does not depend on what is known. */
	if (how == DRIVER_JUDGE || (!why && dice % judges == 0))
		why |= WHY_JUDGE;
	if (how == DRIVER_COPY)
		why |= WHY_LEARN;
	if (dice % judges == 0)
		why |= WHY_LEARN | WHY_WANTED;
	if (!spot.seen || !why)
		return false;
	if (gives_way(c, k, p, spot.seen, why, dice >> 16)) {
		c->stacks_held++;
		why &= ~WHY_LEARN;
	}
	if (why & WHY_NEW)
		k->context.where |= WHERE_HELD;
	if (!(why & (WHY_LEARN | WHY_JUDGE)))
		return false;
	forget(&c->forgotten, k, p, &spot, &why);
	if (!copy_stack(ctx, c, k, p, spot.seen, &why) || !(why & WHY_LEARN))
		return false;
	note_seen(&spot);
	return true;
}

/* ---- contexts ---- */

/* Threads of the kernel have never been anywhere else. */
static __always_inline void forget_user(struct key *k)
{
	k->context.user = 0;
	k->context.where = WHERE_OTHER << WHERE_KIND_SHIFT;
}

/*
 * Whether a program is being executed and has its memory already, but the registers of the one
 * before: they mean nothing any more. Where stacks lie is drawn by lot, gigabytes apart.
 */
static __always_inline bool is_leaving(const struct task_struct *task, const struct place *p)
{
	if (!p->saved || !bpf_core_field_exists(task->in_execve) ||
		!BPF_CORE_READ_BITFIELD(task, in_execve))
		return false;
	return p->kind != WHERE_MAIN || p->base - p->sp > DEEPEST_AT_EXEC;
}

/* Completes the key. */
static __always_inline void find_context(
	struct bpf_perf_event_data *ctx, struct driver_cpu *c, struct key *k)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct place p = {.pc = k->pc, .sp = ctx->regs.rsp, .bp = ctx->regs.rbp};

	/* As in keep_registers: they are to be read here, and not where both ways have met. */
	asm volatile("" : "+r"(p.sp), "+r"(p.bp));
	if (k->tag & DRIVER_TAG_KERNEL) {
		p.saved = (void *)bpf_task_pt_regs(task);
		p.pc = p.saved->ip;
		p.sp = p.saved->sp;
		p.bp = p.saved->bp;
		k->context.user = p.pc;
		if (!task->mm) {
			forget_user(k);
			return;
		}
	}
	find_base(task, &p);
	if (is_leaving(task, &p)) {
		forget_user(k);
		return;
	}
	k->context.where = where_of(&p);
	p.hash = context_hash(task, &p, k->context.where);
	if (p.kind == WHERE_OTHER)
		k->context.caller[0] = p.sp;
	if (take_stack(ctx, c, k, &p))
		k->context.where = (k->context.where & ~(WHERE_HELD | WHERE_NEAR)) | WHERE_COPIED;
}

#endif
