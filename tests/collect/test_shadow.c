/* The interpreter in the sampling interrupt, on loops of which everything is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>

#include "collect/shadow_rig.h"
#include "isa/interp_ops.h"
#include "values/capture.h"

enum { ENOUGH = 4000 };

static struct rig rig;

static void open_or_skip(
	const struct shadow_options *o, uint32_t every, shadow_fn *burst, void *arg)
{
	if (!rig_open(&rig, o, every, burst, arg)) {
		if (geteuid() == 0)
			fail();
		print_message("needs root: the interpreter cannot be had\n");
		skip();
	}
}

static uint64_t all_stops(const struct shadow_statistics *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < INTERP_STOPS; i++)
		sum += s->stops[i];
	return sum;
}

static void check_books(const struct sampler_statistics *s)
{
	assert_int_equal(all_stops(&s->shadow), s->shadow.bursts);
	assert_int_equal(s->shadow.stops[INTERP_GOES_ON], 0);
	assert_true(s->shadow.map_bytes > 0);
	assert_true(s->map_bytes > s->shadow.map_bytes);
	assert_true(s->shadow.longest <= s->shadow.ns);
}

/* ---- edges ---- */

struct edges {
	uint64_t taken, fell, back, out, wrong, bursts, with_values, starts, wrong_starts;
};

static void count_edge(void *arg, uint64_t from, uint64_t to)
{
	struct edges *e = arg;

	if (!rig_inside(from, pattern_run_, pattern_end))
		return;
	if (rig_at(from, pattern_branch) && rig_at(to, pattern_taken))
		e->taken++;
	else if (rig_at(from, pattern_branch) && rig_at(to, pattern_branch + 2))
		e->fell++;
	else if (rig_at(from, pattern_back) && rig_at(to, pattern_loop))
		e->back++;
	else if (rig_at(from, pattern_back) && rig_at(to, pattern_end))
		e->out++;
	else
		e->wrong++;
}

/* From where it says that it began, the first branch on the way is the first edge. */
static void check_start(struct edges *e, const struct shadow_burst *b, const uint64_t *words)
{
	bool before = b->start <= (uintptr_t)pattern_branch;

	if (!b->edges || !rig_inside(b->start, pattern_loop, pattern_end))
		return;
	e->starts++;
	e->wrong_starts +=
		!(before ? rig_at(words[0], pattern_branch) : rig_at(words[0], pattern_back));
}

static void take_edges(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct edges *e = arg;

	check_start(e, b, words);
	e->bursts++;
	e->with_values += b->inputs != 0;
	burst_edges(b, words, count_edge, arg);
}

/* Five standard errors of a share among n. */
static double bound(double share, uint64_t n)
{
	return 5 * sqrt(share * (1 - share) / (double)n);
}

static void check_edges(bool by_calls)
{
	const struct shadow_options o = {.steps = 256,
		.skip = 64,
		.share = 0.5,
		.user = true,
		.kernel = true,
		.by_calls = by_calls};
	struct sampler_statistics s;
	struct edges e = {0};

	open_or_skip(&o, 1, take_edges, &e);
	while (e.taken + e.fell < ENOUGH && rig_patient(&rig)) {
		pattern_run(20000000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, &s);
	assert_true(e.taken + e.fell >= ENOUGH);
	assert_int_equal(e.wrong, 0);
	assert_int_equal(e.with_values, 0);
	assert_true(e.starts > e.bursts / 2);
	assert_int_equal(e.wrong_starts, 0);
	double n = (double)(e.taken + e.fell);
	assert_float_equal((double)e.taken / n, 0.75, bound(0.75, e.taken + e.fell));
	/* The loop's own branch runs as often, but for the ends of bursts. */
	assert_float_equal((double)(e.back + e.out) / n, 1, 0.1);
	assert_true(e.out <= e.bursts);
	check_books(&s);
	assert_int_equal(s.shadow.dropped, 0);
	assert_true(s.shadow.bursts >= e.bursts);
	assert_true(s.shadow.steps > s.shadow.bursts * 16);
	assert_true(s.shadow.stops[INTERP_DONE] + s.shadow.stops[INTERP_TIME] > e.bursts / 2);
}

static void test_edges(void **state)
{
	(void)state;
	check_edges(false);
}

/* As on an older kernel. */
static void test_edges_by_calls(void **state)
{
	(void)state;
	check_edges(true);
}

/* One in four samples is asked for. Lengths are mixed, so the ends of bursts are not all at one
 * place. */
struct lengths {
	uint64_t seen[4]; /* quarters of the possible lengths */
	uint64_t beyond, skipped;
};

static void take_lengths(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct lengths *l = arg;

	(void)words;
	if (b->stop != INTERP_DONE || !rig_inside(b->start, pattern_run_, pattern_end))
		return;
	if (b->steps < 16 || b->steps > 64 || b->skipped > 32)
		l->beyond++;
	else
		l->seen[(b->steps - 16) / 13 & 3]++;
	l->skipped += b->skipped;
}

static void test_lengths(void **state)
{
	(void)state;
	const struct shadow_options o = {.steps = 64, .skip = 32, .share = 0.5, .user = true};
	struct sampler_statistics s;
	struct lengths l = {0};

	open_or_skip(&o, 4, take_lengths, &l);
	while (l.seen[0] + l.seen[1] + l.seen[2] + l.seen[3] < 300 && rig_patient(&rig)) {
		pattern_run(20000000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, &s);
	assert_int_equal(l.beyond, 0);
	for (int i = 0; i < 4; i++)
		assert_true(l.seen[i] > 30);
	uint64_t asked = s.shadow.bursts + s.shadow.withheld + s.shadow.refused;
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	assert_true(asked * 4 <= s.samples);
	assert_true(asked * 4 + 3 * cpus >= s.samples);
	assert_true(l.skipped > 300 * 8 && l.skipped < 3000 * 32);
}

/* ---- the order of bursts ---- */

struct order {
	uint64_t last, bursts, wrong;
};

static void take_order(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct order *o = arg;

	(void)words;
	o->bursts++;
	o->wrong += b->time < o->last;
	o->last = b->time;
}

/* A thread that goes from CPU to CPU between two drains. */
static void test_in_order(void **state)
{
	(void)state;
	const struct shadow_options o = {.steps = 64, .share = 0.5, .user = true};
	struct sampler_statistics s;
	struct order order = {0};
	cpu_set_t before, one;

	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	open_or_skip(&o, 1, take_order, &order);
	for (int i = 0; i < 12; i++) {
		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		sched_setaffinity(0, sizeof one, &one); /* where there is but one CPU, there */
		pattern_run(4000000);
	}
	sched_setaffinity(0, sizeof before, &before);
	rig_close(&rig, &s);
	assert_true(order.bursts > 10);
	assert_int_equal(order.wrong, 0);
}

/* ---- words that count ---- */

struct words {
	uint64_t moved, wrong, readings, behind;
	uint64_t last, last_ns;
	bool asked;
};

static uint64_t *counting; /* two words */

static void take_reading(struct words *w, const struct shadow_reading *r)
{
	if (r->word[0][0] != (uintptr_t)counting)
		return;
	w->behind += w->readings && (r->word[0][1] < w->last || r->ns <= w->last_ns);
	w->readings++;
	w->last = r->word[0][1];
	w->last_ns = r->ns;
}

/* Asks for the word as soon as a burst has told of it. */
static void take_words(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct words *w = arg;
	const struct shadow_moved *moved;
	size_t n = burst_moved(b, words, &moved);
	const struct shadow_reading *r = burst_reading(b, words);
	struct shadow_watch watch = {.thread = SHADOW_PROCESS(b->tid, b->generation), .n = 1};

	for (size_t i = 0; i < n; i++) {
		if (moved[i].address != (uintptr_t)counting)
			continue;
		w->moved++;
		w->wrong += moved[i].change != 3 * (int64_t)moved[i].times || moved[i].size != 8 ||
			    !rig_at(moved[i].by, counting_store);
	}
	if (r)
		take_reading(w, r);
	watch.address[0] = (uintptr_t)counting;
	if (w->moved && !w->asked)
		sampler_watch(rig.s, &watch);
	w->asked = w->moved > 0;
}

static void test_words(void **state)
{
	const struct shadow_options o = {
		.steps = 64, .share = 0.5, .user = true, .kernel = true, .watch = true};
	uint64_t room[0x20000 / sizeof(uint64_t)] = {0}; /* as far as that from its stack pointer */
	struct sampler_statistics s;
	struct words w = {0};

	(void)state;
	counting = &room[sizeof room / sizeof *room - 2];
	open_or_skip(&o, 1, take_words, &w);
	while (w.readings < 200 && rig_patient(&rig)) {
		counting_run(counting, 1000000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, &s);
	check_books(&s);
	assert_true(w.moved > 0);
	assert_int_equal(w.wrong, 0);
	assert_true(w.readings >= 200);
	/* The thread may have gone on on another CPU, whose clock is not quite the same. */
	assert_true(w.behind <= w.readings / 20);
	assert_int_equal(counting[0] % 3, 0);
}

/* ---- values ---- */

struct seen {
	uint64_t table[2 * VALUES_TABLE];
	struct capture capture;
	uint64_t bursts, wrong;
	uint64_t loads, products, again, bad; /* instructions of the loop */
	uint64_t strides, bad_strides, arguments, bad_arguments;
	uint64_t kernel, user, longest;
};

static void seen_init(struct seen *v)
{
	*v = (struct seen){0};
	for (uint64_t i = 0; i < VALUES_TABLE; i++)
		v->table[i] = 1000000007 * i + 3;
}

static void take_value(void *arg, uint64_t pc, enum value_kind kind, uint64_t site, uint64_t value)
{
	struct seen *v = arg;

	if (rig_at(pc, values_load) && kind == VALUE_STRIDE) {
		v->strides++;
		v->bad_strides += value != 8 && value != -8ull * (VALUES_TABLE - 1);
	}
	if (!rig_at(pc, values_leaf) || kind < VALUE_ENTRY0 || kind > VALUE_ENTRY5)
		return;
	v->arguments++;
	v->bad_arguments += !rig_at(site, values_call);
	if (kind == VALUE_ENTRY0)
		v->bad_arguments += value != VALUES_ARGUMENT;
	if (kind == VALUE_ENTRY1)
		v->bad_arguments += value % VALUES_FACTOR || value > v->table[63] * VALUES_FACTOR;
}

/* What the instruction found, against what is in the table. */
static void check_step(struct seen *v, const struct interp_effect *e)
{
	uint64_t i = (e->address - (uintptr_t)v->table) / 8;
	bool known = e->has & INTERP_HAS_VALUE;

	if (rig_at(e->ip, values_load)) {
		v->loads++;
		v->bad += !known || i >= VALUES_TABLE || e->value != v->table[i];
	} else if (rig_at(e->ip, values_multiply)) {
		v->products++;
		v->bad += !known || e->value % VALUES_FACTOR;
	} else if (rig_at(e->ip, values_again)) {
		i -= VALUES_TABLE;
		v->again++;
		v->bad += !known || i >= VALUES_TABLE || e->value != v->table[i] * VALUES_FACTOR;
	}
}

static void take_step(void *arg, const struct interp *m)
{
	struct seen *v = arg;

	check_step(v, &m->effect);
	capture_step(&v->capture, m, take_value, v);
}

static void take_burst(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct seen *v = arg;

	v->bursts++;
	v->kernel += b->kernel != 0;
	v->user += b->kernel == 0;
	if (b->words > v->longest)
		v->longest = b->words;
	if (!b->inputs)
		return;
	capture_begin(&v->capture, words[INTERP_RCX]);
	v->wrong += !burst_replay(b, words, &rig.machine, take_step, v);
}

static void test_values(void **state)
{
	(void)state;
	const struct shadow_options o = {.values = true,
		.steps = 256,
		.skip = 64,
		.share = 0.5,
		.user = true,
		.kernel = true};
	struct sampler_statistics s;
	struct seen v;

	seen_init(&v);
	open_or_skip(&o, 1, take_burst, &v);
	while (v.loads < ENOUGH && rig_patient(&rig)) {
		values_run(v.table, 3000000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, &s);
	assert_true(v.loads >= ENOUGH);
	assert_int_equal(v.wrong, 0);
	assert_int_equal(v.bad, 0);
	assert_int_equal(v.bad_strides, 0);
	assert_int_equal(v.bad_arguments, 0);
	assert_true(v.products > ENOUGH / 2 && v.again > ENOUGH / 2);
	assert_true(v.strides > ENOUGH / 2);
	assert_true(v.arguments > ENOUGH); /* several for each call */
	check_books(&s);
}

/* ---- modes ---- */

/* Some of the kernel and some of user mode. */
static void mixed_work(struct seen *v)
{
	static char page[65536];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 300; i++) {
		assert_int_equal(read(zero, page, sizeof page), sizeof page);
		syscall(SYS_getppid);
		values_run(v->table, 1000);
	}
	close(zero);
}

static void run_modes(bool user, bool kernel, struct seen *v, struct sampler_statistics *s)
{
	const struct shadow_options o = {.values = true,
		.steps = 64,
		.skip = 16,
		.share = 0.5,
		.user = user,
		.kernel = kernel};

	seen_init(v);
	open_or_skip(&o, 1, take_burst, v);
	while ((v->kernel < (kernel ? 50 : 0) || v->user < (user ? 50 : 0)) && rig_patient(&rig)) {
		mixed_work(v);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, s);
	assert_int_equal(v->wrong, 0);
	assert_int_equal(v->bad, 0);
	check_books(s);
}

static void test_user_only(void **state)
{
	(void)state;
	struct sampler_statistics s;
	struct seen v;

	run_modes(true, false, &v, &s);
	assert_true(v.user >= 50);
	assert_int_equal(v.kernel, 0);
	assert_true(s.shadow.refused > 0);
}

static void test_kernel_only(void **state)
{
	(void)state;
	struct sampler_statistics s;
	struct seen v;

	run_modes(false, true, &v, &s);
	assert_true(v.kernel >= 50);
	assert_int_equal(v.user, 0);
	assert_true(s.shadow.refused > 0);
	assert_int_equal(v.loads, 0);
}

/* What the kernel keeps by CPU, beyond gs. */
struct percpu {
	uint64_t bursts, loads, known, interrupted, wrong;
};

static void take_percpu_step(void *arg, const struct interp *m)
{
	struct percpu *p = arg;

	if (m->insn.prefix & INTERP_P_GS && m->effect.has & INTERP_LOADS) {
		p->loads++;
		p->known += !m->loaded_unknown;
	}
}

static void take_percpu(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct percpu *p = arg;

	if (!b->kernel || !b->inputs || !words[20])
		return;
	p->bursts++;
	/* Code of a system call runs in no interrupt, though ours came in between. */
	p->interrupted += (words[21] & 0xff0000) != 0;
	p->wrong += !burst_replay(b, words, &rig.machine, take_percpu_step, p);
}

static void test_percpu(void **state)
{
	(void)state;
	const struct shadow_options o = {
		.values = true, .steps = 128, .share = 0.5, .kernel = true};
	struct sampler_statistics s;
	struct percpu p = {0};
	struct seen v;
	int rounds = 0;

	seen_init(&v);
	open_or_skip(&o, 1, take_percpu, &p);
	while ((p.loads < 200 || rounds < 5) && rig_patient(&rig)) {
		mixed_work(&v);
		sampler_drain(rig.s, &rig.sink);
		if (++rounds == 5 && !p.bursts)
			break;
	}
	rig_close(&rig, &s);
	if (!p.bursts) {
		print_message("this kernel does not tell where it keeps what is a CPU's own\n");
		skip();
	}
	assert_true(p.loads >= 200);
	assert_true(p.known * 10 > p.loads * 9);
	assert_int_equal(p.interrupted, 0);
	assert_int_equal(p.wrong, 0);
}

static void test_no_mode(void **state)
{
	(void)state;
	struct sampler_statistics s;
	struct seen v;
	const struct shadow_options o = {.steps = 64, .share = 0.5};

	seen_init(&v);
	open_or_skip(&o, 1, take_burst, &v);
	do {
		mixed_work(&v);
		sampler_drain(rig.s, &rig.sink);
		sampler_statistics(rig.s, &s);
	} while (s.shadow.refused < 50 && rig_patient(&rig));
	rig_close(&rig, &s);
	assert_true(s.shadow.refused >= 50);
	assert_int_equal(v.bursts, 0);
	assert_int_equal(s.shadow.bursts, 0);
	assert_int_equal(s.shadow.ns, 0);
}

/* ---- who is left out ---- */

struct choice {
	struct shadow_burst user, kernel; /* the last of each */
	uint64_t nuser, nkernel;
};

static void take_choice(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct choice *c = arg;

	(void)words;
	*(b->kernel ? &c->kernel : &c->user) = *b;
	*(b->kernel ? &c->nkernel : &c->nuser) += 1;
}

/* Works until there are so many more samples of this process that went no further. */
static void work_until_left_out(struct seen *v, struct sampler_statistics *s, uint64_t more)
{
	uint64_t enough;

	sampler_statistics(rig.s, s);
	enough = s->shadow.left_out + more;
	while (s->shadow.left_out < enough && rig_patient(&rig)) {
		mixed_work(v);
		sampler_drain(rig.s, &rig.sink);
		sampler_statistics(rig.s, s);
	}
	assert_true(s->shadow.left_out >= enough);
}

static void work_until_seen(struct seen *v, const struct choice *c)
{
	while ((c->nuser < 20 || c->nkernel < 20) && rig_patient(&rig)) {
		mixed_work(v);
		sampler_drain(rig.s, &rig.sink);
	}
	assert_true(c->nuser >= 20 && c->nkernel >= 20);
}

static void test_left_out(void **state)
{
	(void)state;
	const struct shadow_options o = {
		.steps = 32, .share = 0.5, .user = true, .kernel = true, .choosy = true};
	struct sampler_statistics s;
	struct choice c = {0};
	struct seen v;

	seen_init(&v);
	open_or_skip(&o, 1, take_choice, &c);
	work_until_seen(&v, &c);
	sampler_statistics(rig.s, &s);
	assert_int_equal(s.shadow.left_out, 0);

	sampler_leave_out(rig.s, &c.user);
	sampler_drain(rig.s, &rig.sink);
	c.nuser = c.nkernel = 0;
	work_until_left_out(&v, &s, 50);
	assert_int_equal(c.nuser, 0);
	assert_true(c.nkernel > 0);

	sampler_leave_out(rig.s, &c.kernel);
	sampler_drain(rig.s, &rig.sink);
	c.nuser = c.nkernel = 0;
	work_until_left_out(&v, &s, 50);
	assert_int_equal(c.nuser + c.nkernel, 0);

	/* Its pid after another exec is another program. */
	c.user.generation ^= 1;
	sampler_leave_out(rig.s, &c.user);
	sampler_take_in(rig.s, 0);
	work_until_seen(&v, &c);

	sampler_leave_out(rig.s, &c.user);
	sampler_drain(rig.s, &rig.sink);
	work_until_left_out(&v, &s, 20);
	sampler_take_in(rig.s, getpid());
	c.nuser = 0;
	work_until_seen(&v, &c);
	rig_close(&rig, &s);
	check_books(&s);
}

/* ---- room ---- */

/* Not aligned, so that every element takes two words of either side. */
static void compare_strings(const uint64_t *a, const uint64_t *b)
{
	const char *x = (const char *)a + 1, *y = (const char *)b + 3;
	uint64_t n = 60000;

	__asm__ volatile("repe cmpsq" : "+S"(x), "+D"(y), "+c"(n) : : "memory", "cc");
}

/* More words than a burst may keep: it ends there, and what it kept is enough to run it again. */
static void test_inputs_fill(void **state)
{
	(void)state;
	const struct shadow_options o = {.values = true, .steps = 4000, .share = 0.9, .user = true};
	static uint64_t words[2][61000];
	struct sampler_statistics s;
	struct seen v;

	seen_init(&v);
	memset(words, 1, sizeof words);
	open_or_skip(&o, 1, take_burst, &v);
	do {
		for (int i = 0; i < 200; i++)
			compare_strings(words[0], words[1]);
		sampler_drain(rig.s, &rig.sink);
		sampler_statistics(rig.s, &s);
	} while ((v.bursts < 200 || s.shadow.stops[INTERP_ROOM] < 1) && v.bursts < 3000 &&
		 rig_patient(&rig));
	rig_close(&rig, &s);
	assert_int_equal(v.wrong, 0);
	assert_true(v.bursts >= 200);
	assert_true(v.longest <= SHADOW_MOST);
	check_books(&s);
}

static void test_nobody_drains(void **state)
{
	(void)state;
	const struct shadow_options o = {.values = true, .steps = 512, .share = 0.9, .user = true};
	struct sampler_statistics s;
	struct seen v;

	seen_init(&v);
	open_or_skip(&o, 1, NULL, &v);
	do {
		values_run(v.table, 3000000);
		sampler_drain(rig.s, &rig.sink); /* samples, but no bursts */
		sampler_statistics(rig.s, &s);
	} while (s.shadow.dropped < 20 && rig_patient(&rig));
	assert_true(s.shadow.dropped >= 20);
	/* What did find room is whole, and from now on there is room again. */
	rig.sink.burst = take_burst;
	sampler_drain(rig.s, &rig.sink);
	assert_true(v.bursts > 0);
	uint64_t kept = v.bursts;
	for (int i = 0; i < 10; i++) {
		values_run(v.table, 300000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, &s);
	assert_int_equal(v.wrong, 0);
	assert_int_equal(v.bad, 0);
	assert_true(v.bursts > kept);
	assert_true(v.bursts + s.shadow.dropped <= s.shadow.bursts);
	check_books(&s);
}

/* ---- the share of time ---- */

static void run_share(double share, unsigned rounds, struct sampler_statistics *s, uint64_t *wall)
{
	const struct shadow_options o = {
		.steps = 256, .share = share, .user = true, .kernel = true};
	struct edges e = {0};

	open_or_skip(&o, 1, take_edges, &e);
	for (unsigned i = 0; i < rounds; i++) {
		pattern_run(20000000);
		sampler_drain(rig.s, &rig.sink);
	}
	rig_close(&rig, s);
	*wall = io_clock_ns(CLOCK_MONOTONIC) - rig.opened;
	check_books(s);
}

/* A CPU starts with what a second earns, and may overdraw by one burst. */
static void test_share_is_kept(void **state)
{
	(void)state;
	const double share = 0.0005;
	double cpus = (double)sysconf(_SC_NPROCESSORS_CONF);
	struct sampler_statistics s;
	uint64_t wall;

	run_share(share, 30, &s, &wall);
	assert_true(s.shadow.bursts > 0);
	assert_true(s.shadow.withheld > 0);
	assert_true((double)s.shadow.ns <=
		    cpus * (share * ((double)wall + 1e9) + (double)s.shadow.longest));
}

static void test_no_share(void **state)
{
	(void)state;
	struct sampler_statistics s;
	uint64_t wall;

	run_share(0, 3, &s, &wall);
	assert_int_equal(s.shadow.bursts, 0);
	assert_true(s.shadow.withheld > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_edges_by_calls),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_user_only),
		cmocka_unit_test(test_kernel_only),
		cmocka_unit_test(test_percpu),
		cmocka_unit_test(test_no_mode),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_inputs_fill),
		cmocka_unit_test(test_nobody_drains),
		cmocka_unit_test(test_share_is_kept),
		cmocka_unit_test(test_no_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
