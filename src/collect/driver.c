#include "collect/driver.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "calls/map.h"
#include "collect/complaint.h"
#include "collect/driver.skel.h"
#include "collect/driver_teach.h"
#include "collect/driver_user.h"
#include "collect/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inode of the initial pid namespace, PROC_PID_INIT_INO in the kernel. */
#define FIRST_PID_NAMESPACE 0xeffffffc

/* What copies of a CPU may cost at once, and in a second. */
#define STACKS_SAVED    (8192 * DRIVER_COPY_COST)
#define STACKS_A_SECOND (128 * DRIVER_COPY_COST)

_Static_assert(WHERE_MAIN == STACK_MAIN && WHERE_THREAD == STACK_THREAD &&
		       WHERE_SIGNAL == STACK_SIGNAL && WHERE_OTHER == STACK_OTHER,
	"heights count from the same bases on both sides");
_Static_assert((int)CONTEXTS_INFERRED == DRIVER_INFER && (int)CONTEXTS_JUDGED == DRIVER_JUDGE &&
		       (int)CONTEXTS_COPIED == DRIVER_COPY && (int)CONTEXTS_CHAIN == DRIVER_CHAIN,
	"contexts are told apart by the same means on both sides");

struct driver {
	struct driver_bpf **instances; /* one for each event, sharing the maps of the first */
	size_t nevents;
	uint8_t *cpus; /* cpu_of() them */
	size_t stride;
	unsigned ncpus;
	struct ring_buffer *doorbell;
	uint64_t reported[DRIVER_EVENTS];
	unsigned paths;  /* DRIVER_INFER, ... */
	uint32_t judges; /* one sample in so many is looked at, whatever is known */
	struct driver_seen *seen;
	struct ring_buffer *stacks;
	uint64_t given;           /* when copies were last given out */
	uint64_t saved, a_second; /* what they may cost on each CPU: at once, and in a second */
	VEC(struct driver_stack *) young;
	struct stack_delivery *delivery; /* under way */
};

/* The part of a CPU's tables that is only there with contexts comes last. */
static struct driver_cpu *cpu_of(const struct driver *d, unsigned cpu)
{
	return (struct driver_cpu *)(d->cpus + cpu * d->stride);
}

static size_t stride_of(unsigned paths)
{
	return paths ? sizeof(struct driver_cpu) : offsetof(struct driver_cpu, contexts);
}

/* Where all stacks are copied, there is more on the way. */
static uint32_t stacks_room(const struct driver *d)
{
	bool all = d->paths == DRIVER_COPY || d->paths == DRIVER_JUDGE;

	return all ? 4 * DRIVER_STACKS : DRIVER_STACKS;
}

/* An instance's maps are those of the first one, or made to measure. */
static int prepare_maps(struct driver *d, struct driver_bpf *b)
{
	const struct driver_bpf *first = d->instances[0];
	int r;

	if (first == b) {
		r = bpf_map__set_max_entries(b->maps.cpus, d->ncpus);
		if (r == 0 && !d->paths)
			r = bpf_map__set_value_size(b->maps.cpus, d->stride);
		if (r == 0 && !d->paths)
			r = bpf_map__set_value_size(b->maps.seen, sizeof(uint32_t));
		if (r == 0 && d->paths)
			r = bpf_map__set_max_entries(b->maps.stacks, stacks_room(d));
		return r;
	}
	r = bpf_map__reuse_fd(b->maps.cpus, bpf_map__fd(first->maps.cpus));
	if (r == 0)
		r = bpf_map__reuse_fd(b->maps.seen, bpf_map__fd(first->maps.seen));
	if (r == 0)
		r = bpf_map__reuse_fd(b->maps.stacks, bpf_map__fd(first->maps.stacks));
	return r ? r : bpf_map__reuse_fd(b->maps.doorbell, bpf_map__fd(first->maps.doorbell));
}

static int load_instance(struct driver *d, size_t event)
{
	struct driver_bpf *b = driver_bpf__open();
	int r;

	if (!b)
		return -errno;
	d->instances[event] = b;
	b->rodata->event_number = event;
	b->rodata->contexts = d->paths != DRIVER_NO_PATHS;
	b->rodata->how = d->paths;
	b->rodata->judges = d->judges;
	r = prepare_maps(d, b);
	return r ? r : driver_bpf__load(b);
}

static int explain_load(int code, const char *complaint, struct err *e)
{
	if (code == -EPERM || code == -EACCES)
		return err_set(
			e, -EPERM, "BPF is not allowed: it needs CAP_BPF and CAP_PERFMON, or root");
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return err_set(e, -EOPNOTSUPP,
			"BPF: this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)");
	return err_errno(e, code, "BPF: cannot load the sampler%s", complaint);
}

static int load(struct driver *d, struct err *e)
{
	const char *complaint;
	int r = 0;

	complaint_begin();
	for (size_t i = 0; i < d->nevents && r == 0; i++)
		r = load_instance(d, i);
	complaint = complaint_end();
	return r ? explain_load(r, complaint, e) : 0;
}

struct stack_delivery {
	uint64_t until;
	driver_stack_fn *fn;
	void *arg;
};

/* What is too young waits: records of where its process has its code may still come. */
static int take_stack(void *arg, void *data, size_t size)
{
	struct driver *d = arg;
	const struct driver_stack *s = data;

	if (!d->delivery || size < sizeof *s || s->size > size - sizeof *s)
		return 0;
	if (s->time <= d->delivery->until)
		d->delivery->fn(d->delivery->arg, s, (const uint8_t *)(s + 1));
	else
		*vec_add(&d->young) = xmemdup(s, sizeof *s + s->size);
	return 0;
}

static int ignore_ring(void *arg, void *data, size_t size)
{
	(void)arg, (void)data, (void)size;
	return 0;
}

/*
 * What is not used is saved up: programs show most of their paths when they begin. What one CPU has
 * left over is for all.
 */
static void give_stacks(struct driver *d, uint64_t more)
{
	uint64_t each, sum = more * d->ncpus;

	for (unsigned i = 0; i < d->ncpus; i++)
		sum += __atomic_load_n(&cpu_of(d, i)->stacks_left, __ATOMIC_RELAXED);
	each = sum / d->ncpus < d->saved ? sum / d->ncpus : d->saved;
	for (unsigned i = 0; i < d->ncpus; i++)
		__atomic_store_n(&cpu_of(d, i)->stacks_left, (uint32_t)each, __ATOMIC_RELAXED);
}

static int map_contexts(struct driver *d, const struct driver_bpf *b, struct err *e)
{
	void *p = mmap(NULL, sizeof *d->seen, PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(b->maps.seen), 0);

	if (p == MAP_FAILED)
		return err_errno(e, -errno, "BPF: cannot map the filter of contexts");
	d->seen = p;
	d->stacks = ring_buffer__new(bpf_map__fd(b->maps.stacks), take_stack, d, NULL);
	if (!d->stacks)
		return err_errno(e, -errno, "BPF: cannot map the ring of stacks");
	return 0;
}

static int map_everything(struct driver *d, struct err *e)
{
	struct driver_bpf *b = d->instances[0];
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	void *p = mmap(NULL, d->ncpus * d->stride, PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(b->maps.cpus), 0);

	if (p == MAP_FAILED)
		return err_errno(e, -errno, "BPF: cannot map the sampler's tables");
	d->cpus = p;
	d->doorbell = ring_buffer__new(bpf_map__fd(b->maps.doorbell), ignore_ring, NULL, NULL);
	if (!d->doorbell)
		return err_errno(e, -errno, "BPF: cannot map the sampler's ring buffer");
	for (unsigned i = 0; i < d->ncpus; i++)
		cpu_of(d, i)->base[0] = now;
	if (!d->paths)
		return 0;
	d->given = now;
	give_stacks(d, d->saved);
	return map_contexts(d, b, e);
}

/*
 * The program sees the numbers of the initial pid namespace, perf records those of ours. In another
 * namespace the two would name different processes.
 */
static int check_namespace(struct err *e)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_PID_NAMESPACE)
		return err_set(e, -EOPNOTSUPP,
			"BPF: this is not the initial pid namespace (start the container with the "
			"host's)");
	return 0;
}

int driver_create(const struct driver_options *o, struct driver **out, struct err *e)
{
	struct driver *d;
	int r;

	if (o->nevents > DRIVER_EVENTS)
		return err_set(
			e, -EINVAL, "BPF: %zu events, at most %d fit", o->nevents, DRIVER_EVENTS);
	r = check_namespace(e);
	if (r < 0)
		return r;
	d = xcalloc(1, sizeof *d);
	d->instances = xcalloc(o->nevents, sizeof *d->instances);
	d->nevents = o->nevents;
	d->ncpus = o->cpus;
	d->paths = o->paths;
	d->saved = o->budgeted ? o->stacks_saved : STACKS_SAVED;
	d->a_second = o->budgeted ? o->stacks_a_second : STACKS_A_SECOND;
	d->judges = (uint32_t)fmax(DRIVER_JUDGES, o->rate / DRIVER_JUDGED);
	d->stride = stride_of(o->paths);
	r = load(d, e);
	if (r == 0)
		r = map_everything(d, e);
	if (r < 0) {
		driver_destroy(d);
		return r;
	}
	*out = d;
	return 0;
}

void driver_destroy(struct driver *d)
{
	if (!d)
		return;
	ring_buffer__free(d->doorbell);
	ring_buffer__free(d->stacks);
	if (d->seen)
		munmap(d->seen, sizeof *d->seen);
	if (d->cpus)
		munmap(d->cpus, d->ncpus * d->stride);
	for (size_t i = d->nevents; i-- > 0;)
		driver_bpf__destroy(d->instances[i]);
	vec_each (s, &d->young)
		free(*s);
	vec_deinit(&d->young);
	free(d->instances);
	free(d);
}

int driver_program(const struct driver *d, size_t event)
{
	return bpf_program__fd(d->instances[event]->progs.driver_sample);
}

int driver_chain(struct driver *d, int program, uint32_t every, struct err *e)
{
	uint32_t key = 0;

	if (bpf_map_update_elem(bpf_map__fd(d->instances[0]->maps.next), &key, &program, BPF_ANY) <
		0)
		return err_errno(e, -errno, "BPF: cannot chain the interpreter to the sampler");
	for (unsigned i = 0; i < d->ncpus; i++)
		cpu_of(d, i)->every = every;
	return 0;
}

void driver_set_pairs(struct driver *d, uint32_t every)
{
	for (unsigned i = 0; i < d->ncpus; i++) {
		cpu_of(d, i)->pair_every = every;
		__atomic_store_n(&cpu_of(d, i)->wait, every, __ATOMIC_RELEASE);
	}
}

int driver_fd(const struct driver *d)
{
	return ring_buffer__epoll_fd(d->doorbell);
}

static void sample_of(const struct driver_cpu *c, const struct driver_entry *e,
	const struct driver_context *context, unsigned cpu, struct sample *out)
{
	bool side = e->tag & DRIVER_TAG_SIDE;

	*out = (struct sample){.pc = e->pc,
		.time = c->base[side] + ((uint64_t)e->seen << DRIVER_SEEN_SHIFT),
		.pid = (int32_t)e->pid,
		.tid = (int32_t)e->tid,
		.cpu = cpu,
		.cgroup = e->cgroup,
		.count = e->count,
		.event = e->tag & DRIVER_TAG_EVENT,
		.kernel = e->tag & DRIVER_TAG_KERNEL};
	if (context) {
		out->where = context->where;
		out->user = context->user;
		memcpy(out->caller, context->caller, sizeof out->caller);
	}
}

static void empty_overflow(struct driver *d, unsigned cpu, uint64_t until, driver_fn *fn, void *arg)
{
	struct driver_cpu *c = cpu_of(d, cpu);
	uint64_t head = __atomic_load_n(&c->head, __ATOMIC_ACQUIRE), at = c->tail;
	struct sample s;

	for (; at != head; at++) {
		sample_of(c, &c->overflow[at % DRIVER_OVERFLOW],
			d->paths ? &c->overflow_context[at % DRIVER_OVERFLOW] : NULL, cpu, &s);
		if (s.time > until)
			break;
		fn(arg, &s);
	}
	__atomic_store_n(&c->tail, at, __ATOMIC_RELEASE);
}

void driver_service(struct driver *d, uint64_t until, driver_fn *fn, void *arg)
{
	ring_buffer__consume(d->doorbell);
	for (unsigned i = 0; i < d->ncpus; i++)
		empty_overflow(d, i, until, fn, arg);
}

void driver_swap(struct driver *d)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < d->ncpus; i++) {
		struct driver_cpu *c = cpu_of(d, i);

		c->base[!c->active] = now;
		__atomic_store_n(&c->active, !c->active, __ATOMIC_RELEASE);
	}
}

static void empty_table(struct driver *d, unsigned cpu, driver_fn *fn, void *arg)
{
	struct driver_cpu *c = cpu_of(d, cpu);
	struct driver_bucket *table = c->table[!c->active];
	const struct driver_context_bucket *contexts = c->contexts[!c->active];

	for (size_t i = 0; i < DRIVER_BUCKETS * DRIVER_WAYS; i++) {
		size_t bucket = i / DRIVER_WAYS, way = i % DRIVER_WAYS;
		struct driver_entry *e = &table[bucket].way[way];
		struct sample s;

		if (!e->count)
			continue;
		sample_of(c, e, d->paths ? &contexts[bucket].way[way] : NULL, cpu, &s);
		fn(arg, &s);
		*e = (struct driver_entry){0};
	}
}

void driver_collect(struct driver *d, uint64_t until, driver_fn *fn, void *arg)
{
	driver_service(d, until, fn, arg);
	for (unsigned i = 0; i < d->ncpus; i++)
		empty_table(d, i, fn, arg);
}

void driver_pairs(struct driver *d, uint64_t until, driver_pair_fn *fn, void *arg)
{
	for (unsigned i = 0; i < d->ncpus; i++) {
		struct driver_cpu *c = cpu_of(d, i);
		uint64_t head = __atomic_load_n(&c->pair_head, __ATOMIC_ACQUIRE), at = c->pair_tail;

		for (; at != head && c->pair[at % DRIVER_PAIRS].time <= until; at++)
			fn(arg, &c->pair[at % DRIVER_PAIRS]);
		__atomic_store_n(&c->pair_tail, at, __ATOMIC_RELEASE);
	}
}

static void take_young(struct driver *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->young.n; i++) {
		struct driver_stack *s = d->young.p[i];

		if (s->time > d->delivery->until) {
			d->young.p[kept++] = s;
			continue;
		}
		d->delivery->fn(d->delivery->arg, s, (const uint8_t *)(s + 1));
		free(s);
	}
	d->young.n = kept;
}

void driver_stacks(struct driver *d, uint64_t until, driver_stack_fn *fn, void *arg)
{
	struct stack_delivery delivery = {until, fn, arg};
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	uint64_t more = (now - d->given) * d->a_second / 1000000000;

	if (!d->paths)
		return;
	d->delivery = &delivery;
	take_young(d);
	ring_buffer__consume(d->stacks);
	d->delivery = NULL;
	if (!more && d->a_second)
		return;
	d->given = now;
	give_stacks(d, more < d->saved ? more : d->saved);
}

void driver_want(struct driver *d, const struct sample *s)
{
	if (d->seen)
		__atomic_store_n(&d->seen->slot[s->where >> WHERE_SLOT_SHIFT].mark, DRIVER_WANTED,
			__ATOMIC_RELAXED);
}

void driver_ask(struct driver *d, const struct sample *s, uint64_t ask)
{
	if (d->seen)
		__atomic_store_n(&d->seen->slot[s->where >> WHERE_SLOT_SHIFT].ask,
			ask | ASK_ANSWERED, __ATOMIC_RELAXED);
}

/* A word of a stack; 0: it is not there. */
static uint64_t word_at(const struct driver_stack *s, const uint8_t *bytes, uint64_t at)
{
	uint64_t word = 0;

	if (!s->trail && 8 * at + sizeof word <= s->size)
		memcpy(&word, bytes + 8 * at, sizeof word);
	for (size_t i = 0; s->trail && i < s->size / sizeof word; i++) {
		memcpy(&word, bytes + i * sizeof word, sizeof word);
		if (word >> CALLER_SHIFT == at)
			return CALLER_ADDRESS(word);
	}
	return s->trail ? 0 : word;
}

/* What the context of a stack would have told, as the kernel hashes it. */
static uint64_t hash_told(const struct driver_stack *s, const uint8_t *bytes, uint64_t ask)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < DRIVER_CALLERS && ASK_AT(ask, i); i++)
		hash = DRIVER_HASH_TOLD(hash,
			driver_place_in(s, CALLER_ADDRESS(word_at(s, bytes, ASK_AT(ask, i) - 1))));
	return DRIVER_HASH_BOTH(s->hash, hash);
}

static void mark_told(struct driver *d, uint64_t hash)
{
	struct driver_slot *slots = d->seen->slot;
	uint32_t mark = DRIVER_MARK(hash);
	size_t slot = DRIVER_SLOT(hash), other = slot ^ 1;

	if (slots[slot].told == mark || slots[other].told == mark)
		return;
	if (slots[slot].told)
		slot = slots[other].told ? slot ^ (mark >> 31) : other;
	__atomic_store_n(&slots[slot].told, mark, __ATOMIC_RELAXED);
}

void driver_answer(
	struct driver *d, const struct driver_stack *s, const uint8_t *bytes, uint64_t ask)
{
	size_t slot = s->context.where >> WHERE_SLOT_SHIFT;

	/* In the meantime it may have become another's. */
	if (!d->seen || d->seen->slot[slot].mark != DRIVER_MARK(s->hash))
		return;
	if (ASK_AT(ask, 0))
		mark_told(d, hash_told(s, bytes, ask));
	__atomic_store_n(&d->seen->slot[slot].ask, ask | ASK_ANSWERED, __ATOMIC_RELAXED);
}

void driver_teach(struct driver *d, const struct driver_stack *s, const struct stack_step *step)
{
	if (d->seen)
		driver_steps_teach(d->seen, s, step);
}

bool driver_hurries(const struct driver *d)
{
	return d->young.n;
}

uint64_t driver_dropped(struct driver *d, size_t event)
{
	uint64_t total = 0, fresh;

	for (unsigned i = 0; i < d->ncpus; i++)
		total += __atomic_load_n(&cpu_of(d, i)->dropped[event], __ATOMIC_RELAXED);
	fresh = total - d->reported[event];
	d->reported[event] = total;
	return fresh;
}

void driver_statistics(const struct driver *d, struct sampler_statistics *out)
{
	for (unsigned i = 0; i < d->ncpus; i++) {
		const struct driver_cpu *c = cpu_of(d, i);

		out->samples += c->hits + c->misses;
		out->hits += c->hits;
		out->evictions += c->head;
		out->pairs += c->pair_head;
		out->pairs_begun += c->begun;
		out->pairs_apart += c->apart;
		out->pairs_lapsed += c->lapsed;
		out->pairs_dropped += c->pairs_lost;
		out->stacks += c->stacks;
		out->trails += c->trails;
		out->stacks_held += c->stacks_held;
		out->stacks_lost += c->stacks_lost;
		out->stacks_gone += c->stacks_gone;
		for (size_t ev = 0; ev < d->nevents; ev++)
			out->dropped += c->dropped[ev];
	}
	for (size_t i = 0; i < d->nevents; i++) {
		struct bpf_prog_info info = {0};
		__u32 size = sizeof info;

		if (bpf_obj_get_info_by_fd(driver_program(d, i), &info, &size) == 0) {
			out->bpf_run_ns += info.run_time_ns;
			out->bpf_runs += info.run_cnt;
		}
	}
	out->map_bytes += d->ncpus * d->stride;
	if (d->paths)
		out->map_bytes += sizeof *d->seen + stacks_room(d);
}
