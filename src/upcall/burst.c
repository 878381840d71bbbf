#include "isa/interp_ops.h"
#include "upcall/upcall_internal.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static uint64_t draw(struct upcall_thread *t, uint64_t below)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (uint64_t)((unsigned __int128)t->random * below >> 64);
}

/* ---- memory ---- */

/* Whether this burst comes to a line for the first time; lines it cannot remember count as old. */
static bool first_touch(struct upcall_thread *t, uint64_t address)
{
	uint64_t line = address >> 6;

	for (unsigned i = 0; i < 8; i++) {
		struct upcall_line *l = &t->lines[(line + i) % UPCALL_LINES];

		if (l->epoch != t->epoch) {
			*l = (struct upcall_line){.address = line, .epoch = t->epoch};
			return true;
		}
		if (l->address == line)
			return false;
	}
	return false;
}

/*
 * The way into the kernel and back leaves few translations of addresses in place. They are brought
 * back by a load from the other end of the page, so that what is measured is the cache alone.
 */
static void warm_page(struct upcall_thread *t, uint64_t address)
{
	const uint64_t a_page = 1ull << 63; /* where no line is */
	uint64_t word;

	if (first_touch(t, a_page | address >> 12 << 6))
		upcall_load(address ^ 2048, &word);
}

/*
 * The interpreter reads code through here too; only loads of data are measured, and of each line
 * the first, before anything else has touched it.
 */
static int read_word(void *arg, uint64_t address, uint64_t *word)
{
	struct upcall_thread *t = arg;
	uint32_t cycles;
	int rc;

	if (address - (t->m.ip & ~31ull) < 64 || !first_touch(t, address))
		return upcall_load(address, word);
	warm_page(t, address);
	/* Once for nothing, so that the code of the load itself is not waited for. */
	upcall_load_timed((uint64_t)&t->time, word, &cycles);
	rc = upcall_load_timed(address, word, &cycles);
	if (rc == 0) {
		cycles = cycles > t->clock ? cycles - t->clock : 1;
		t->latency = cycles > t->latency ? cycles : t->latency;
	}
	return rc;
}

/* Whether the burst itself stored to any of these bytes. */
static bool is_overlaid(const struct interp *m, uint64_t address, unsigned bytes)
{
	if (!m->stored)
		return false;
	for (size_t i = 0; i < INTERP_WORDS; i++) {
		const struct interp_word *w = &m->word[i];

		if (w->epoch == m->epoch && w->address + 8 > address &&
			w->address < address + bytes)
			return true;
	}
	return false;
}

static bool is_arithmetic(uint32_t op)
{
	return op == INTERP_OP_RESULT || op == INTERP_OP_XCOMPARE32 || op == INTERP_OP_XCOMPARE64 ||
	       op == INTERP_OP_XWIDEN;
}

/*
 * Floating-point arithmetic on memory: the interpreter leaves most operands alone, since it does
 * not know the results anyhow.
 */
static void read_vector(struct upcall_thread *t, struct culprit_step *s)
{
	uint64_t word[3] = {0}, base = s->load & ~7ull;
	unsigned shift = (s->load & 7) * 8, n = (unsigned)(s->load & 7) + s->load_size;

	if (!is_arithmetic(t->m.effect.op) || !(s->has & CULPRIT_LOADS) || !s->load_size ||
		s->load_size > 16 || is_overlaid(&t->m, s->load, s->load_size))
		return;
	for (unsigned i = 0; i * 8 < n; i++) {
		if (read_word(t, base + i * 8, &word[i]) < 0)
			return;
	}
	for (unsigned i = 0; i < 2; i++)
		s->vector[1][i] = shift ? word[i] >> shift | word[i + 1] << (64 - shift) : word[i];
	if (s->load_size < 8)
		s->vector[1][0] &= ~0ull >> (64 - s->load_size * 8);
	if (s->load_size <= 8)
		s->vector[1][1] = 0;
	s->has |= CULPRIT_HAS_VECTOR1;
}

/* What reading the clock takes right now: it changes with the processor's own clock rate. */
static uint32_t time_clock(void)
{
	uint64_t least = UINT32_MAX;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = culprit_cycles(), took = culprit_cycles() - before;

		least = took < least ? took : least;
	}
	return (uint32_t)least;
}

/* ---- the state to begin with ---- */

static uint64_t read_fs(void)
{
	uint64_t base;

	if (upcall_process.reads_base)
		__asm__("rdfsbase %0" : "=r"(base));
	else
		__asm__("mov %%fs:0, %0" : "=r"(base)); /* where the ABI keeps it */
	return base;
}

static uint64_t read_gs(void)
{
	uint64_t base = 0;

	if (upcall_process.reads_base)
		__asm__("rdgsbase %0" : "=r"(base));
	return base;
}

static void begin(struct upcall_thread *t)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
		REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	const ucontext_t *uc = t->sample;
	const greg_t *from = uc->uc_mcontext.gregs;
	struct interp *m = &t->m;

	if (!++t->epoch) {
		memset(t->lines, 0, sizeof t->lines);
		t->epoch = 1;
	}
	t->clock = time_clock();
	interp_begin(m, read_word, t);
	for (unsigned i = 0; i < 16; i++)
		m->r[i] = (uint64_t)from[order[i]];
	m->ip = (uint64_t)from[REG_RIP];
	m->base[0] = read_fs();
	m->base[1] = read_gs();
	interp_set_flags(m, (uint64_t)from[REG_EFL]);
	if (uc->uc_mcontext.fpregs) {
		memcpy(m->xmm, uc->uc_mcontext.fpregs->_xmm, sizeof m->xmm);
		m->known_xmm = 0xffff;
	}
}

/* ---- bursts ---- */

static void take(void *arg, uint64_t pc, uint64_t value, uint64_t context)
{
	struct upcall_thread *t = arg;

	upcall_emit(t, t->kind, pc, value, context);
}

static void take_value(void *arg, uint64_t pc, unsigned kind, uint64_t site, uint64_t value)
{
	upcall_emit(arg, kind, pc, value, site);
}

/* What is kept without plug-ins, as of bursts that were interpreted in the interrupt. */
static void keep(struct upcall_thread *t)
{
	const struct upcall_orders *o = &upcall_process.shared->orders;
	const struct interp_effect *e = &t->m.effect;

	if (o->edges && e->has & (INTERP_BRANCH | INTERP_INDIRECT))
		upcall_emit(t, UPCALL_EDGE, e->ip, e->next, 0);
	if (o->values)
		capture_step(&t->capture, &t->m, take_value, t);
}

static void run_plugins(struct upcall_thread *t)
{
	struct culprit_burst b = {.pid = (uint32_t)t->pid,
		.tid = (uint32_t)t->tid,
		.cpu = t->cpu,
		.time = t->time,
		.upcall = 1};

	for (size_t i = 0; i < upcall_process.nplugins; i++) {
		const struct plugin *p = &upcall_process.plugins[i];

		t->kind = p->kind;
		plugin_run(p, t->state[i], &t->steps, &b, take, t);
	}
}

static enum interp_stop interpret(struct upcall_thread *t)
{
	const struct upcall_orders *o = &upcall_process.shared->orders;
	uint64_t skip = draw(t, o->skip + 1ull), steps = 1 + draw(t, o->steps);
	enum interp_stop stop = INTERP_GOES_ON;

	/* The paper's section 7: sampling interrupts prefer some instructions over others. */
	while (skip-- && stop == INTERP_GOES_ON)
		stop = interp_step(&t->m);
	if (stop != INTERP_GOES_ON)
		return stop;
	steps_look(&t->steps, &t->m);
	capture_begin(&t->capture, t->m.r[INTERP_RCX]);
	while (steps--) {
		struct culprit_step *s;

		t->latency = 0;
		stop = interp_step(&t->m);
		if (stop != INTERP_GOES_ON)
			return stop;
		s = steps_add(&t->steps, &t->m);
		if (!s)
			break;
		read_vector(t, s);
		if (t->latency && s->has & CULPRIT_LOADS) {
			s->latency = t->latency;
			s->has |= CULPRIT_TIMED;
		}
		keep(t);
	}
	return INTERP_DONE;
}

void upcall_burst(struct upcall_thread *t)
{
	struct upcall_sums *sums = &upcall_process.shared->sums;
	struct timespec now;
	enum interp_stop stop;
	uint64_t word;

	/* Sandboxes may have taken the time-stamp counter away, and with it every clock. */
	if (upcall_load_timed((uint64_t)&t->time, &word, &t->clock) < 0) {
		atomic_store(&upcall_process.barred, true);
		return;
	}
	begin(t);
	steps_begin(&t->steps);
	upcall_emit_begin(t);
	stop = interpret(t);
	upcall_add(&sums->bursts, 1);
	upcall_add(&sums->steps, t->steps.n);
	upcall_add(&sums->stops[stop & 15], 1);
	if (!t->steps.n)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	t->time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	t->cpu = (uint32_t)sched_getcpu();
	steps_contexts(&t->steps);
	run_plugins(t);
	upcall_emit_end(t);
}
