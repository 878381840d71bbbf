/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interpreter in the sampling interrupt (ASPLOS 2000, section 3.2), in shadow: it reads the
 * interrupted program and changes nothing of it.
 *
 * User memory is read through the page tables and the kernel's direct map of RAM. That is several
 * times as quick as the helper for reading user memory, cannot fault, and never touches a device:
 * their pages are special, and refused. The kernel's own memory is read only in the direct map, in
 * its image and on the interrupted task's stack.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

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
struct mm_struct {
	void *pgd;
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase, gsbase;
} __attribute__((preserve_access_index));

struct bpf_array {
	void *pptrs[1];
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	u64 start_time;
	u64 self_exec_id;
	struct mm_struct *mm;
	void *stack;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

/* Stands for any two words of memory. */
struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym;

const volatile u64 direct_map, direct_map_size; /* where RAM is mapped */
const volatile u64 image_start, image_end;      /* the kernel's text and read-only data */
const volatile u64 frame_mask;                  /* of a page table entry: the physical address */
const volatile u64 device_mark;                 /* the bit of one that is a device's */
const volatile u32 levels;                      /* of page tables: 4 or 5 */
const volatile u32 stack_size;                  /* of a task in the kernel */

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

struct state {
	struct interp m;
	u64 first[32]; /* SHADOW_STATE of them */
	u64 edge[2 * SHADOW_EDGES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state);
} states SEC(".maps");

/* ---- memory ---- */

#define PRESENT  0x001
#define USER     0x004
#define UNCACHED 0x010
#define HUGE     0x080
#define SPECIAL  0x200 /* no ordinary page: a device, or one that the kernel keeps for itself */

/* Reads kernel memory; an address that is not mapped reads as 0. */
static __always_inline u64 peek(u64 address)
{
	struct timespec64 *two =
		bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct timespec64));

	return two->tv_sec;
}

/* Where a user address is in the direct map that begins at base, 0: nowhere; *entry is the last one
 * of the tables on the way. */
static __always_inline u64 walk(u64 base, u64 pgd, u64 address, u64 *entry)
{
	u32 shift = levels == 5 ? 48 : 39;
	u64 table = pgd, e;

	INTERP_ROLLED
	for (u32 level = 0; level < 5; level++) {
		e = peek(table + (address >> (shift & 63) & 511) * 8);
		if ((e & (PRESENT | USER)) != (PRESENT | USER))
			return 0;
		if (shift == 12 || (shift <= 30 && e & HUGE)) {
			u64 inside = (1ull << (shift & 63)) - 1;

			*entry = e;
			return base + (e & frame_mask & ~inside) + (address & inside);
		}
		table = base + (e & frame_mask);
		shift -= 9;
	}
	return 0;
}

/* The page of an address that the program may read, unless it is a device's; 0: none. */
static __always_inline u64 user_place(const struct interp *m, u64 address)
{
	u64 entry = 0, place = m->pgd ? walk(direct_map, m->pgd, address & ~4095ull, &entry) : 0;

	return entry & (SPECIAL | UNCACHED | device_mark) ? 0 : place;
}

static __always_inline u64 kernel_place(const struct interp *m, u64 address)
{
	if (address - direct_map < direct_map_size || address - m->stack < stack_size ||
		(address >= image_start && address < image_end))
		return address & ~4095ull;
	return 0;
}

/* Looks the page of an address up; 0: cannot be read. */
__attribute__((noinline)) u64 find_page(struct interp *m, u64 address)
{
	struct interp_page *p;

	if (!m)
		return 0;
	p = &m->page[(address >> 12) % INTERP_PAGES];
	p->address = address & ~4095ull;
	p->epoch = m->epoch;
	if ((s64)address < 0)
		p->place = m->kernel ? kernel_place(m, address) : 0;
	else
		p->place = user_place(m, address);
	return p->place;
}

/* The page of an address, remembered for the length of the burst. */
static __always_inline u64 place_of(struct interp *m, u64 address)
{
	struct interp_page *p = &m->page[(address >> 12) % INTERP_PAGES];

	if (p->address != (address & ~4095ull) || p->epoch != m->epoch)
		return find_page(m, address);
	return p->place;
}

/* An input that cannot be read is kept as the word that says so, with its number in the order. */
static __attribute__((always_inline)) int interp_memory(struct interp *m, u64 address, u64 *word)
{
	u64 place, value = 0;
	u32 n;

	place = place_of(m, address);
	n = m->ninputs;

	if (place)
		value = peek(place + (address & 4095));
	if (m->keeps) {
		m->input[n % INTERP_INPUTS] = value;
		if (!place)
			m->lost[n / 64 % (INTERP_INPUTS / 64)] |= 1ull << (n & 63);
		m->ninputs = n + 1;
	}
	*word = value;
	return place ? 0 : -1;
}

/* Into line n. */
__attribute__((noinline)) int interp_memory_line(struct interp *m, u64 address, u32 n)
{
	u64 *word, place;

	if (!m)
		return -1;
	word = m->line[n % INTERP_LINES].code;
	place = place_of(m, address);

	if (!place) { /* as one word that cannot be read */
		if (m->keeps) {
			u32 k = m->ninputs++;

			m->lost[k / 64 % (INTERP_INPUTS / 64)] |= 1ull << (k & 63);
		}
		return -1;
	}
	place += address & 4095;
	word[0] = peek(place);
	word[1] = peek(place + 8);
	word[2] = peek(place + 16);
	word[3] = peek(place + 24);
	if (m->keeps) {
		u32 k = m->ninputs;

		for (u32 i = 0; i < 4; i++)
			m->input[(k + i) % INTERP_INPUTS] = word[i];
		m->ninputs = k + 4;
	}
	return 0;
}

/* What is read for running again is read by lines. */
static __always_inline int interp_memory_code(struct interp *m, u64 address, u64 *code)
{
	u64 place;

	if (m->keeps || (address & 4095) > 4096 - 8)
		return -1;
	place = place_of(m, address);
	if (!place)
		return -1;
	*code = peek(place + (address & 4095));
	return 0;
}

#include "isa/interp_run.h"

/* ---- a burst ---- */

/* Two lines of code, and a repeated cmps that reads two words of each operand an element. */
#define INPUTS_A_STEP (2 * 4 + INTERP_ELEMENTS * 4)

struct progress {
	struct state *s;
	u64 deadline;
	u64 looked; /* at the clock */
	u64 paused; /* ns of stretches that took too long for us alone */
	u64 start;  /* the first instruction that is not skipped */
	u32 skip, done, edges;
	int stop;
};

/* Returns the time; a stretch of 16 instructions that took very long was a hypervisor's pause. */
static __always_inline u64 look(struct progress *p)
{
	u64 now = bpf_ktime_get_ns();

	if (now - p->looked > SHADOW_PAUSE_NS)
		p->paused += now - p->looked;
	p->looked = now;
	return now;
}

static long step(u32 index, struct progress *p)
{
	struct state *s = p->s;
	u64 from = s->m.ip;
	int stop;

	if (index % 16 == 15 && look(p) > p->deadline) {
		p->stop = INTERP_TIME;
		return 1;
	}
	if (s->m.keeps && s->m.ninputs > INTERP_INPUTS - INPUTS_A_STEP) {
		p->stop = INTERP_ROOM;
		return 1;
	}
	stop = interp_one(&s->m);
	if (stop) {
		p->stop = stop;
		return 1;
	}
	p->done = index + 1;
	if (index == p->skip)
		p->start = from;
	if (index >= p->skip && interp_chooses(INTERP_E_OP(s->m.insn.entry)) &&
		p->edges < SHADOW_EDGES) {
		s->edge[p->edges * 2 % (2 * SHADOW_EDGES)] = from;
		s->edge[(p->edges * 2 + 1) % (2 * SHADOW_EDGES)] = s->m.ip;
		p->edges++;
	}
	return 0;
}

/* ---- its beginning and its end ---- */

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
	m->kernel = (s64)m->ip < 0;
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

struct copy {
	struct shadow_cpu *c;
	const struct state *s;
	u64 at;
	u32 state, inputs, edges;
};

static long copy_word(u32 i, struct copy *w)
{
	const struct state *s = w->s;
	u32 k = i;
	u64 word;

	if (k < w->state) {
		word = s->first[k % 32];
	} else if (k < w->state + w->inputs) {
		k -= w->state;
		word = s->m.input[k % INTERP_INPUTS];
	} else if (k < w->state + w->inputs + w->edges) {
		k -= w->state + w->inputs;
		word = s->edge[k % (2 * SHADOW_EDGES)];
	} else {
		k -= w->state + w->inputs + w->edges;
		word = s->m.lost[k % (INTERP_INPUTS / 64)];
	}
	w->c->buffer[(w->at + i) % SHADOW_WORDS] = word;
	return 0;
}

/* Puts the burst into the buffer, whole and in one piece. */
static __always_inline void emit(
	struct shadow_cpu *c, struct state *s, const struct shadow_burst *head)
{
	struct copy w = {.c = c, .s = s};
	u64 at = c->head, room = SHADOW_WORDS - (at - c->tail),
	    left = SHADOW_WORDS - at % SHADOW_WORDS;
	u32 lost = 0, words;

	if (head->inputs) {
		w.state = SHADOW_STATE;
		w.inputs = head->inputs;
		lost = (head->inputs + 63) / 64;
	} else {
		w.edges = 2 * head->edges;
	}
	words = SHADOW_HEAD + w.state + w.inputs + w.edges + lost;
	if (words > left) {
		if (room < left + words)
			goto full;
		c->buffer[at % SHADOW_WORDS] = 0;
		at += left;
	} else if (room < words) {
		goto full;
	}
	{
		const u64 *from = (const u64 *)head;

		for (u32 i = 0; i < SHADOW_HEAD; i++)
			c->buffer[(at + i) % SHADOW_WORDS] = from[i];
	}
	w.at = at + SHADOW_HEAD;
	bpf_loop(words - SHADOW_HEAD, copy_word, &w, 0);
	c->buffer[at % SHADOW_WORDS] = (c->buffer[at % SHADOW_WORDS] & ~0xffffffffull) | words;
	barrier(); /* x86 stores in order: user space sees the burst before the new head */
	c->head = at + words;
	if (SHADOW_WORDS - room < SHADOW_WORDS / 2 &&
		SHADOW_WORDS - room + words >= SHADOW_WORDS / 2) {
		u64 nothing = 0;

		bpf_ringbuf_output(&doorbell, &nothing, sizeof nothing, BPF_RB_FORCE_WAKEUP);
	}
	return;
full:
	c->dropped++;
}

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

/* Writes down what came of it. */
static __always_inline void report(struct shadow_cpu *c, struct state *s, const struct progress *p,
	const struct task_struct *task, u64 start)
{
	struct shadow_burst head = {0};

	c->steps += p->done - p->skip;
	head.generation = generation_of(task);
	head.pid = task->tgid;
	head.tid = task->pid;
	head.time = start;
	head.start = p->start;
	head.skipped = p->skip;
	head.steps = p->done - p->skip;
	head.edges = p->edges;
	head.inputs = s->m.keeps ? s->m.ninputs : 0;
	head.stop = p->stop;
	head.kernel = s->m.kernel;
	head.failed = s->m.failed;
	head.end = s->m.ip;
	emit(c, s, &head); /* also without edges: where bursts begin counts */
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

static __always_inline void interpret(
	struct bpf_perf_event_data *ctx, struct shadow_cpu *c, struct state *s, u64 start)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	struct progress p = {.s = s, .stop = INTERP_DONE, .looked = start};
	u32 steps = c->orders.steps, random = bpf_get_prandom_u32();

	if ((s64)ctx->regs.rip < 0 ? !c->orders.kernel : !c->orders.user || !mm) {
		c->refused++;
		return;
	}
	s->m.pgd = mm ? peek((u64)mm + bpf_core_field_offset(struct mm_struct, pgd)) : 0;
	s->m.stack = peek((u64)task + bpf_core_field_offset(struct task_struct, stack));
	begin(s, ctx, c, task);
	/* Lengths mixed, so that the ends of bursts do not always fall on the same instructions. */
	if (steps > 16 && !c->orders.exact)
		steps = 16 + (random >> 16) % (steps - 15);
	p.skip = c->orders.skip ? (random & 0xffff) % (c->orders.skip + 1) : 0;
	p.deadline = start + c->orders.most_ns;
	bpf_loop(p.skip + steps, step, &p, 0);
	c->bursts++;
	c->stops[p.stop & 15]++;
	if (p.done > p.skip)
		report(c, s, &p, task, start);
	account(c, &p, start);
}

SEC("perf_event")
int shadow_sample(struct bpf_perf_event_data *ctx)
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
	interpret(ctx, c, s, now);
	c->busy = 0;
	return 0;
}

/* ---- finding the direct map ---- */

/* User space asks for its own word at an address that it knows; only the right base finds it. */
u64 sought_address, sought_word, found_base, found_entry;

struct search {
	u64 pgd, top;
};

/* The page table itself lies in the direct map, which begins at some gigabyte below it. */
static long try_base(u32 i, struct search *f)
{
	u64 base = f->top - ((u64)i << 30), entry = 0;
	u64 place = walk(base, f->pgd, sought_address, &entry);

	if (place && peek(place) == sought_word) {
		found_base = base;
		found_entry = entry;
		return 1;
	}
	return 0;
}

SEC("raw_tp")
int find_direct_map(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	struct search f = {0};

	(void)ctx;
	if (!mm)
		return 0;
	f.pgd = peek((u64)mm + bpf_core_field_offset(struct mm_struct, pgd));
	f.top = f.pgd & ~0x3fffffffull;
	bpf_loop(1 << 17, try_base, &f, 0);
	return 0;
}

/* ---- finding what is the CPU's own ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} own SEC(".maps");

/* Places in the per-CPU section; user space sets them. What is found: bases of gs and section. */
u64 place_of_base, place_of_task, found_gs, found_section;

u64 own_map, own_value; /* addresses, which go through memory to become numbers */

struct own_search {
	u64 task;
};

/* The section is somewhere behind the kernel's text, or at 0 in older kernels. */
static long try_section(u32 i, struct own_search *f)
{
	u64 section = i ? image_start + (u64)(i - 1) * 4096 : 0;

	if (peek(section + place_of_base + found_gs) != found_gs ||
		peek(section + place_of_task + found_gs) != f->task)
		return 0;
	found_section = section;
	return 1;
}

/*
 * This CPU's copy of a per-CPU array lies as far from the array's per-CPU address as all that is
 * per CPU: that is the base of gs. Its own word then shows where the section is.
 */
SEC("raw_tp")
int find_own(void *ctx)
{
	struct own_search f = {.task = (u64)bpf_get_current_task()};
	u32 first = 0;

	(void)ctx;
	own_map = (u64)&own;
	own_value = (u64)bpf_map_lookup_elem(&own, &first);
	barrier();
	found_section = ~0ull;
	found_gs = own_value - peek(own_map + bpf_core_field_offset(struct bpf_array, pptrs));
	bpf_loop(1 << 15, try_section, &f, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
