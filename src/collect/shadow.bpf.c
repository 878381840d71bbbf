/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interpreter in the sampling interrupt (ASPLOS 2000, section 3.2), in shadow: it reads the
 * interrupted program and changes nothing of it.
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
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#include "collect/shadow.h"
#include "isa/interp_state.h"

/* The few kernel fields we read; their places are fixed up at load time (CO-RE). */
typedef struct {
	u64 ctx_id; /* no other program ever has the same */
	struct {
		s64 counter;
	} tlb_gen; /* how often processors were told to forget pages */
} __attribute__((preserve_access_index)) mm_context_t;

struct mm_struct {
	void *pgd;
	mm_context_t context;
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase, gsbase;
} __attribute__((preserve_access_index));

struct bpf_array {
	void *pptrs[1];
} __attribute__((preserve_access_index));

struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	u64 start_time;
	u64 self_exec_id;
	struct sched_entity se;
	struct mm_struct *mm;
	void *stack;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shadow_cpu);
} cpus SEC(".maps");

/* Carries nothing; writing to it wakes user space. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* SHADOW_LEFT_OUT of them, or 1 where nobody is left out. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} left_out SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SHADOW_WATCHES);
	__type(key, u32);
	__type(value, struct shadow_watch);
} watches SEC(".maps");

/* How far a burst is. In memory, as the verifier would take each number for a state of its own. */
struct progress {
	u64 at; /* in the buffer: where the burst begins */
	u64 deadline;
	u64 looked; /* at the clock */
	u64 paused; /* ns of stretches that took too long for us alone */
	u64 start;  /* the first instruction that is not skipped */
	u32 skip, steps, done, edges;
	u32 generation; /* of the process */
	u32 next;       /* instruction before which something is due */
	int stop;
};

struct state {
	struct interp m;
	u64 first[32]; /* SHADOW_STATE of them */
	/* The program whose pages are remembered, how often its mapping had changed, its number. */
	u64 program, changes, mapping;
	u64 mappings; /* numbers given out */
	struct shadow_reading reading;
	u32 watched; /* words of it */
	u32 moved;   /* words that are told of */
	u32 follows; /* words are of interest in this burst */
	u32 pad;
	struct progress p;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state);
} states SEC(".maps");

#include "collect/shadow_memory.h"
#include "isa/interp_run.h"

#include "collect/shadow_loop.h"

/* ---- the beginning and the end of a burst ---- */

#define HARDIRQ_ONE 0x010000 /* of the preemption count */
#define HARDIRQ_ALL 0x0f0000
#define NMI_ONE     0x100000
#define NMI_ALL     0xf00000

/* The preemption count as it was before our own interrupt. */
static __always_inline u32 count_before(u32 count)
{
	if (count & NMI_ALL)
		return count - NMI_ONE - HARDIRQ_ONE;
	return count & HARDIRQ_ALL ? count - HARDIRQ_ONE : count;
}

/* Kernel code asks its preemption count whether it runs in an interrupt. */
static __always_inline void restore_count(struct state *s, u64 address)
{
	u64 count;

	s->first[20] = s->first[21] = 0;
	if (!s->m.kernel || !address)
		return;
	count = count_before((u32)peek(address));
	interp_store(&s->m, address, 4, count, 0);
	s->first[20] = address;
	s->first[21] = count;
}

/* A number for memory that is not the memory seen before. */
static __always_inline u64 new_mapping(struct state *s)
{
	s->mappings++;
	if (s->mappings > 4095) {
		INTERP_ROLLED
		for (u32 i = 0; i < INTERP_PAGES; i++)
			s->m.page[i].tag = 0;
		INTERP_ROLLED
		for (u32 i = 0; i < INTERP_REGIONS; i++)
			s->m.region[i].tag = 0;
		s->mappings = 1;
		s->program = 0;
	}
	return s->mappings;
}

/*
 * Pages of a program are remembered from burst to burst as the processor does: as long as the
 * kernel, which counts these, has not told it to forget some. The kernel's stack is of a task.
 */
static __always_inline void look_at_memory(
	struct state *s, const struct task_struct *task, const struct mm_struct *mm)
{
	u64 program = 0, changes = 0;

	s->m.pgd = 0;
	s->m.stack = peek((u64)task + bpf_core_field_offset(struct task_struct, stack));
	if (mm) {
		s->m.pgd = peek((u64)mm + bpf_core_field_offset(struct mm_struct, pgd));
		program = peek((u64)mm + bpf_core_field_offset(struct mm_struct, context.ctx_id));
		changes = peek((u64)mm + bpf_core_field_offset(struct mm_struct, context.tlb_gen));
	}
	if (s->m.kernel) {
		s->m.mapping = new_mapping(s);
		return;
	}
	if (program != s->program || changes != s->changes) {
		s->mapping = new_mapping(s);
		s->program = program;
		s->changes = changes;
	}
	s->m.mapping = s->mapping;
}

static __always_inline void begin(struct state *s, struct bpf_perf_event_data *ctx,
	const struct shadow_cpu *c, struct task_struct *task)
{
	struct interp *m = &s->m;
	u64 flags = ctx->regs.eflags, gs = task->thread.gsbase;

	m->epoch++;
	if (!m->epoch)
		m->epoch = 1;
	m->r[0] = ctx->regs.rax;
	m->r[1] = ctx->regs.rcx;
	m->r[2] = ctx->regs.rdx;
	m->r[3] = ctx->regs.rbx;
	m->r[4] = ctx->regs.rsp;
	m->r[5] = ctx->regs.rbp;
	m->r[6] = ctx->regs.rsi;
	m->r[7] = ctx->regs.rdi;
	m->r[8] = ctx->regs.r8;
	m->r[9] = ctx->regs.r9;
	m->r[10] = ctx->regs.r10;
	m->r[11] = ctx->regs.r11;
	m->r[12] = ctx->regs.r12;
	m->r[13] = ctx->regs.r13;
	m->r[14] = ctx->regs.r14;
	m->r[15] = ctx->regs.r15;
	m->ip = ctx->regs.rip;
	m->code_page = 1ull << 62; /* none */
	m->base[0] = m->kernel ? 0 : task->thread.fsbase;
	barrier_var(gs); /* or one load is made of two pointers' */
	m->base[1] = m->kernel ? c->gs : gs;
	interp_unpack_flags(m, flags, INTERP_FLAGS | INTERP_DF);
	m->unknown = m->unknown_low = m->unknown_flags = m->known_xmm = 0;
	m->stored = m->failed = m->ninputs = 0;
	m->filter = 0;
	m->keeps = c->orders.values;
	restore_count(s, c->preempt);
	if (!m->keeps)
		return;
	for (u32 i = 0; i < INTERP_INPUTS / 64; i++)
		m->lost[i] = 0;
	for (u32 i = 0; i < INTERP_REGISTERS; i++)
		s->first[i] = m->r[i];
	s->first[16] = m->ip;
	s->first[17] = m->base[0];
	s->first[18] = m->base[1];
	s->first[19] = flags;
}

/* Finds room for a burst in one piece. */
static __always_inline u32 reserve(struct shadow_cpu *c, u32 words, u64 *at)
{
	u64 head = c->head, room = SHADOW_WORDS - (head - c->tail),
	    left = SHADOW_WORDS - head % SHADOW_WORDS;

	*at = words > left ? head + left : head;
	if (*at + words - head > room) {
		c->dropped++;
		return 0;
	}
	return 1;
}

/* Hands a burst over. */
static __always_inline void commit(struct shadow_cpu *c, u64 at, u32 words)
{
	u64 tail = *(const volatile u64 *)&c->tail; /* user space moves it */
	u64 before = c->head - tail, after = at + words - tail;

	if (at != c->head)
		c->buffer[c->head % SHADOW_WORDS] = 0;
	barrier(); /* x86 stores in order: user space sees the burst before the new head */
	c->head = at + words;
	if (before < SHADOW_WORDS / 2 && after >= SHADOW_WORDS / 2) {
		u64 nothing = 0;

		bpf_ringbuf_output(&doorbell, &nothing, sizeof nothing, BPF_RB_FORCE_WAKEUP);
	}
}

struct copy {
	struct shadow_cpu *c;
	const struct state *s;
	u64 at;
	u32 inputs;
};

static long copy_word(u32 i, struct copy *w)
{
	const struct state *s = w->s;
	u32 k = i;
	u64 word;

	if (k < SHADOW_STATE) {
		word = s->first[k % 32];
	} else if (k < SHADOW_STATE + w->inputs) {
		k -= SHADOW_STATE;
		word = s->m.input[k % INTERP_INPUTS];
	} else {
		k -= SHADOW_STATE + w->inputs;
		word = s->m.lost[k % (INTERP_INPUTS / 64)];
	}
	w->c->buffer[(w->at + i) % SHADOW_WORDS] = word;
	return 0;
}

/* What was read is known only now; returns the words of the burst, 0: there is no room. */
static __always_inline u32 copy_inputs(struct shadow_cpu *c, struct state *s, u64 *at)
{
	u32 inputs = s->m.ninputs, words = SHADOW_STATE + inputs + (inputs + 63) / 64;
	struct copy w = {.c = c, .s = s, .inputs = inputs};

	if (!reserve(c, SHADOW_HEAD + words, at))
		return 0;
	w.at = *at + SHADOW_HEAD;
	bpf_loop(words, copy_word, &w, 0);
	return SHADOW_HEAD + words;
}

#include "collect/shadow_words.h"

static __always_inline u32 generation_of(const struct task_struct *task)
{
	return ((u32)(task->start_time >> 10) * 31 + (u32)task->self_exec_id) & 0xffffff;
}

/* The kernel's samples have orders of their own. */
static __always_inline u32 is_left_out(const struct bpf_perf_event_data *ctx)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	u32 pid = task->tgid, place = pid % SHADOW_LEFT_OUT;
	const u64 *word = bpf_map_lookup_elem(&left_out, &place);

	return (s64)ctx->regs.rip >= 0 && word && *word == SHADOW_PROCESS(pid, generation_of(task));
}

/* Whether the CPU's share of time has some left; counts what passed since the last look. */
static __always_inline u32 may_begin(struct shadow_cpu *c, u64 now)
{
	u64 passed = now - c->last;

	c->last = now;
	if (passed > 1000000000)
		passed = 1000000000;
	c->credit += (s64)(passed * c->orders.share >> 16);
	if (c->credit > 1000000) /* a millisecond may be saved up */
		c->credit = 1000000;
	return c->credit > 0;
}

static long read_word(u32 i, struct state **to)
{
	struct state *s = *to;
	u32 place = (u32)s->reading.ns % SHADOW_WATCHES; /* until all is read */
	const struct shadow_watch *w = bpf_map_lookup_elem(&watches, &place);
	u64 address, page;

	if (!w || i >= w->n)
		return 1;
	address = w->address[i % SHADOW_WATCHED];
	page = place_of(&s->m, address);
	s->reading.word[i % SHADOW_WATCHED][0] = page ? address : 0;
	s->reading.word[i % SHADOW_WATCHED][1] = page ? peek(page + (address & 4088)) : 0;
	s->watched = i + 1;
	return 0;
}

/* Reads what user space wants to follow in this thread. By itself, for the verifier. */
__attribute__((noinline)) int read_watched(struct state *s, u64 now)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	u32 place = (u32)task->pid % SHADOW_WATCHES;
	const struct shadow_watch *w = bpf_map_lookup_elem(&watches, &place);

	if (!s || !w || w->thread != SHADOW_PROCESS((u32)task->pid, generation_of(task)))
		return 0;
	s->reading.ns = place;
	s->reading.pc = s->m.ip;
	bpf_loop(SHADOW_WATCHED, read_word, &s, 0);
	s->reading.ns = task->se.sum_exec_runtime + (now - task->se.exec_start);
	return 0;
}

/* Words of what follows the head when inputs are not kept. */
static __always_inline u32 words_told(const struct state *s)
{
	return 2 * s->p.edges + s->moved * SHADOW_MOVED_SIZE + (s->watched ? SHADOW_READING : 0);
}

/* Writes down what came of it, also without edges: where bursts begin counts. */
static __always_inline void report(
	struct shadow_cpu *c, struct state *s, const struct task_struct *task, u64 start)
{
	const struct progress *p = &s->p;
	u64 at = p->at;
	u32 words = s->m.keeps ? copy_inputs(c, s, &at) : SHADOW_HEAD + words_told(s);
	struct shadow_burst *head = (struct shadow_burst *)&c->buffer[at % SHADOW_WORDS];

	c->steps += p->done - p->skip;
	if (!words)
		return;
	head->words = words;
	head->generation = p->generation;
	head->pid = task->tgid;
	head->tid = task->pid;
	head->time = start;
	head->start = p->start;
	head->skipped = p->skip;
	head->steps = p->done - p->skip;
	head->edges = p->edges;
	head->inputs = s->m.keeps ? s->m.ninputs : 0;
	head->stop = p->stop;
	head->kernel = s->m.kernel;
	head->moved = s->moved;
	head->watched = s->watched;
	head->failed = s->m.failed;
	head->end = s->m.ip;
	commit(c, at, words);
}

/* The time that all of it took. */
static __always_inline void account(struct shadow_cpu *c, struct progress *p, u64 start)
{
	u64 spent = look(p) - start, own = spent - p->paused;

	c->credit -= spent;
	c->ns += spent;
	if (spent > c->longest)
		c->longest = spent;
	if (own > c->longest_own)
		c->longest_own = own;
	if (spent > SHADOW_LONG_NS)
		c->nlong++;
	if (own > SHADOW_LONG_NS)
		c->nlong_own++;
}

#define ROOM_TO_TELL \
	(SHADOW_HEAD + 2 * SHADOW_EDGES + SHADOW_MOVED * SHADOW_MOVED_SIZE + SHADOW_READING)

/* The selector of 32-bit code, with Xen's bits above. */
#define USER32_CS 0x23

/* The interpreter knows the instructions of 64-bit code only. */
static __always_inline bool is_foreign(struct bpf_perf_event_data *ctx)
{
	u64 cs = ctx->regs.cs;

	barrier_var(cs); /* the kernel lets us load all of it, and not a part */
	return (cs & 0xff) == USER32_CS;
}

static __always_inline void interpret(struct bpf_perf_event_data *ctx, struct shadow_cpu *c,
	struct state *s, u64 start, bool by_calls)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	struct progress *p = &s->p;
	/* The last digits of the time are random enough, and at hand. */
	u32 steps = c->orders.steps, random = (u32)((start ^ c->ns) * 0x9e3779b97f4a7c15ull >> 32);

	if ((s64)ctx->regs.rip < 0 ? !c->orders.kernel : !c->orders.user || !mm || is_foreign(ctx)) {
		c->refused++;
		return;
	}
	if (!c->orders.values && !reserve(c, ROOM_TO_TELL, &p->at))
		return;
	s->m.kernel = (s64)ctx->regs.rip < 0;
	look_at_memory(s, task, mm);
	begin(s, ctx, c, task);
	s->follows = c->orders.watch & ~s->m.keeps & 1;
	s->watched = s->moved = 0;
	if (s->follows)
		read_watched(s, start);
	/* Lengths mixed, so that the ends of bursts do not always fall on the same instructions. */
	if (steps > 16 && !c->orders.exact)
		steps = 16 + (random >> 16) % (steps - 15);
	p->skip = c->orders.skip ? (random & 0xffff) % (c->orders.skip + 1) : 0;
	p->steps = p->skip + steps;
	p->deadline = start + c->orders.most_ns;
	p->looked = start;
	p->paused = 0;
	p->done = p->edges = 0;
	p->start = s->m.ip;
	p->next = p->skip && p->skip < 16 ? p->skip : 16;
	p->generation = generation_of(task); /* now, so that nobody waits for it at the end */
	p->stop = INTERP_DONE;
	if (by_calls)
		run_by_calls(c, s);
	else
		run(c, s);
	c->bursts++;
	c->stops[p->stop & 15]++;
	if (s->follows)
		tell_words(s, p->at + SHADOW_HEAD + 2 * p->edges);
	if (p->done > p->skip)
		report(c, s, task, start);
	account(c, p, start);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, bool by_calls)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct shadow_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	struct state *s = bpf_map_lookup_elem(&states, &cpu);
	u64 now;

	if (!c || !s || c->busy)
		return 0;
	if (c->orders.choosy && is_left_out(ctx)) {
		c->left_out++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (!may_begin(c, now)) {
		c->withheld++;
		return 0;
	}
	c->busy = 1; /* another event's interrupt may come in between */
	interpret(ctx, c, s, now, by_calls);
	c->busy = 0;
	return 0;
}

/* User space loads one of the two. */
SEC("perf_event")
int shadow_sample(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, false);
}

SEC("perf_event")
int shadow_sample_by_calls(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, true);
}

#include "collect/shadow_find.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
