/*
 * The run time of bursts (burst.h). A thread's state and buffer are its own memory, which children
 * of fork have copies of; only whole bursts are copied to the file. A signal handler that comes
 * here while its thread is here finds `busy` and does nothing but make sure that there is room.
 */
#include "rt/burst.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "rt/runtime.h"
#include "rt/sys.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* What the last bursts of a thread have cost, for rates that follow a share of the time. */
struct burst_cost {
	uint64_t begun, ended; /* a burst: by the time stamp counter */
	uint64_t checks;       /* that were passed before it */
	uint64_t tick;         /* 256ths of a clock tick from check to check; a running mean */
	uint64_t excess;       /* ticks that a burst takes longer than its checks would; as well */
};

struct burst_thread {
	uint64_t owner;       /* process and thread; of another: not made for this one */
	const uint64_t *same; /* not 0: it is still the process that made it */
	bool busy, active;
	struct burst_file *file;
	struct burst_chunk *chunk; /* in it; NULL: none is to be had */
	uint64_t number;           /* of the chunk */
	bool told;                 /* the environment says rates: */
	struct burst_rates rates;
	int64_t left;     /* checks to the next burst, beyond those in CHECK */
	uint64_t changed; /* of the file, when left was made */
	struct burst_cost cost;
	char path[RT_PATH]; /* of the file, which another image's may not be */
	uint64_t buffer[BURST_BUFFER + BURST_ROOM];
};

/* In the image's own memory, for all threads. */
struct burst_image {
	struct burst_file *file;    /* mapped; NULL: not yet */
	struct burst_thread thread; /* of those that get none */
};

#define WINDOW (BURST_PAGE + BURST_CHUNKS * BURST_CHUNK)

static struct burst_image *image_memory(void)
{
	return rt_here(rt_header.buffer);
}

static int64_t *word(uint64_t offset)
{
	return (int64_t *)(rt_thread_pointer() + offset);
}

static uint64_t identity(void)
{
	return (uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0) << 32 |
	       (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0);
}

static void rewind_buffer(struct burst_thread *t)
{
	*word(BURST_LIMIT) = (int64_t)(t->buffer + BURST_BUFFER);
	*word(BURST_CURSOR) = (int64_t)t->buffer;
}

static void copy(void *to, const void *from, uint64_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* ---- chunks ---- */

/* One that was read, or else a new one. */
static uint64_t find_chunk(struct burst_file *f, bool *fresh)
{
	for (uint64_t i = 0; i < f->chunks && i < f->most && i < BURST_CHUNKS; i++) {
		uint8_t empty = BURST_EMPTY;

		if (!__atomic_load_n(&f->empty, __ATOMIC_RELAXED))
			break;
		if (f->state[i] != BURST_EMPTY ||
			!__atomic_compare_exchange_n(&f->state[i], &empty, BURST_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_sub(&f->empty, 1, __ATOMIC_RELAXED);
		*fresh = false;
		return i;
	}
	*fresh = true;
	return __atomic_fetch_add(&f->chunks, 1, __ATOMIC_RELAXED);
}

/* A new one is made part of the file; its pages are mapped at once, which is faster. */
static long make_chunk(struct burst_thread *t, uint64_t number)
{
	uint64_t offset = BURST_PAGE + number * BURST_CHUNK;
	long fd = sys_open(t->path), result;

	if (sys_failed(fd))
		return fd;
	result = rt_make_room(fd, offset, offset + BURST_CHUNK);
	sys_close(fd);
	return result;
}

static struct burst_chunk *chunk_at(struct burst_file *f, uint64_t number)
{
	uint64_t at = (uint64_t)f + BURST_PAGE + number * BURST_CHUNK;

	sys_call(SYS_madvise, (long)at, BURST_CHUNK, MADV_POPULATE_WRITE, 0);
	return (struct burst_chunk *)at;
}

/* The next chunk; the last one is full, if it was of this process. */
static void next_chunk(struct burst_thread *t, uint64_t me)
{
	struct burst_file *f = t->file;
	uint64_t number;
	bool fresh;

	if (t->chunk && t->owner >> 32 == me >> 32)
		__atomic_store_n(&f->state[t->number], BURST_FULL, __ATOMIC_SEQ_CST);
	t->owner = me;
	t->chunk = NULL;
	number = find_chunk(f, &fresh);
	if (number >= f->most || number >= BURST_CHUNKS ||
		(fresh && sys_failed(make_chunk(t, number))))
		return;
	t->chunk = chunk_at(f, number);
	t->number = number;
	*t->chunk =
		(struct burst_chunk){(uint32_t)(me >> 32), (uint32_t)me, rt_thread_pointer(), 0};
	f->order[number] = __atomic_fetch_add(&f->given, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&f->state[number], BURST_TAKEN, __ATOMIC_SEQ_CST);
}

/* A file that nobody prepared is empty: its pages would end the program by SIGBUS. */
static long map_file(long fd)
{
	struct stat st;
	long result = sys_call(SYS_fstat, fd, (long)&st, 0, 0);

	if (sys_failed(result))
		return result;
	if (st.st_size < BURST_PAGE)
		return -EBADMSG;
	result = sys_map(0, WINDOW, MAP_NORESERVE, fd, 0);
	if (sys_failed(result) || ((struct burst_file *)result)->magic == BURST_MAGIC)
		return result;
	sys_unmap((uint64_t)result, WINDOW);
	return -EBADMSG;
}

/*
 * The whole file as it may become, seen by all threads of the process: what a page costs when it
 * is touched first, it costs once. Without it the program runs on and records nothing.
 */
static struct burst_file *open_window(void)
{
	struct burst_file **shared = &image_memory()->file, *none = NULL;
	long fd, at;

	if (*shared)
		return *shared;
	fd = sys_open(rt_header.path);
	at = sys_failed(fd) ? fd : map_file(fd);
	if (!sys_failed(fd))
		sys_close(fd);
	if (sys_failed(at)) {
		rt_complain_of_bursts(rt_header.path, at);
		return NULL;
	}
	if (__atomic_compare_exchange_n(shared, &none, (struct burst_file *)at, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return (struct burst_file *)at;
	sys_unmap((uint64_t)at, WINDOW);
	return none;
}

static uint64_t clock(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/*
 * What is in the buffer goes to the file; a child of fork begins a chunk of its own. Who it is, is
 * asked anew when a burst is over.
 */
static void keep(struct burst_thread *t, uint32_t flags)
{
	uint64_t n = (uint64_t)((uint64_t *)*word(BURST_CURSOR) - t->buffer), size, me;
	struct burst_head *head;

	rewind_buffer(t);
	if (!n || !t->file)
		return;
	n = n < BURST_BUFFER + BURST_ROOM ? n : BURST_BUFFER + BURST_ROOM;
	size = sizeof *head + n * sizeof *t->buffer;
	me = flags & BURST_GOES_ON && *t->same ? t->owner : identity();
	if (me != t->owner || !t->chunk || t->chunk->used + size > BURST_CHUNK_ROOM)
		next_chunk(t, me);
	if (!t->chunk) {
		__atomic_fetch_add(&t->file->lost, 1, __ATOMIC_RELAXED);
		return;
	}
	head = (struct burst_head *)((char *)(t->chunk + 1) + t->chunk->used);
	*head = (struct burst_head){(uint32_t)n, flags, clock()};
	copy(head + 1, t->buffer, n * sizeof *t->buffer);
	__atomic_store_n(&t->chunk->used, t->chunk->used + size, __ATOMIC_RELEASE);
}

/* ---- rates ---- */

#define NAME "CULPRIT_BURSTS="

/* Behind the name, or NULL. */
static const char *is_entry(const char *entry)
{
	const char *name = NAME;

	while (*name && *entry == *name) {
		entry++;
		name++;
	}
	return *name ? NULL : entry;
}

/* What the process's environment says at its start; the buffer is not in use yet. */
static void ask_environment(struct burst_thread *t)
{
	char *text = (char *)t->buffer, *end;
	long fd = sys_call(
		     SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0),
	     n;

	if (sys_failed(fd))
		return;
	n = sys_call(SYS_read, fd, (long)text, sizeof t->buffer - 1, 0);
	sys_close(fd);
	if (sys_failed(n))
		return;
	text[n] = 0;
	for (end = text + n; text < end; text++) {
		const char *value = is_entry(text);

		if (value)
			t->told = burst_rates_parse(value, &t->rates);
		while (*text)
			text++;
	}
}

static struct burst_rates rates_of(const struct burst_thread *t)
{
	if (!t->file)
		return (struct burst_rates){BURST_NEVER, 1, 0};
	return t->told && !t->file->changed ? t->rates : t->file->rates;
}

/* Not all at once: at the end of each portion it is seen whether rates have changed. */
#define PORTION ((int64_t)1 << 20)

static void wait_for(struct burst_thread *t, int64_t checks)
{
	int64_t now = checks < PORTION ? checks : PORTION;

	t->left = checks - now;
	t->cost.checks += (uint64_t)now;
	*word(BURST_CHECK) = now;
	*word(BURST_INSTR) = 0;
}

static uint64_t mean(uint64_t before, uint64_t now)
{
	return before ? before - before / 4 + now / 4 : now;
}

#define EXCESS_MOST ((uint64_t)1 << 34)

static int64_t between(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

/*
 * As many checks as make what a burst takes longer than the same checks without recording the
 * wanted share of the time. By no more than a factor of two from what it was: a burst in which
 * others had the CPU says nothing.
 */
static int64_t checks_for_share(struct burst_thread *t, const struct burst_rates *r)
{
	struct burst_cost *c = &t->cost;
	uint64_t now = clock(), took = now - c->begun, usual, excess;
	int64_t before = (int64_t)c->checks, wanted = r->check;

	if (c->ended && c->checks) {
		c->tick = mean(c->tick, (c->begun - c->ended) * 256 / c->checks + 1);
		usual = c->tick * (uint64_t)r->instr / 256;
		excess = took > usual ? took - usual : 1;
		c->excess = mean(c->excess, excess < EXCESS_MOST ? excess : EXCESS_MOST);
		wanted = (int64_t)(c->excess * 256000000 / r->share / c->tick);
		wanted = between(wanted, before / 2, 2 * before);
	}
	c->ended = now;
	c->checks = 0;
	return between(wanted, r->instr, BURST_NEVER);
}

static int64_t checks_to_next(struct burst_thread *t)
{
	struct burst_rates r = rates_of(t);

	t->changed = t->file ? t->file->changed : 0;
	return r.share ? checks_for_share(t, &r) : r.check;
}

/* Whether the time for a burst has not come. */
static bool is_early(struct burst_thread *t)
{
	bool fresh = t->file && t->changed != t->file->changed;

	if (fresh) {
		struct burst_rates r = rates_of(t);

		t->changed = t->file->changed;
		t->left = r.check < t->left ? r.check : t->left;
	}
	if (!t->left)
		return false;
	wait_for(t, t->left);
	return true;
}

/* ---- threads ---- */

#define PAGE 4096

static const uint64_t never; /* the same process */

/* A word that children of fork find to be 0. */
static const uint64_t *make_same(uint64_t page)
{
	if (sys_failed(sys_call(SYS_madvise, (long)page, PAGE, MADV_WIPEONFORK, 0)))
		return &never;
	*(uint64_t *)page = 1;
	return (const uint64_t *)page;
}

/* Memory that nobody reads, when none is to be had. */
static struct burst_thread *make_thread(void)
{
	uint64_t size = (sizeof(struct burst_thread) + PAGE - 1) / PAGE * PAGE;
	long at = sys_call6(SYS_mmap, 0, (long)(size + PAGE), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool failed = sys_failed(at);
	struct burst_thread *t = failed ? &image_memory()->thread : (struct burst_thread *)at;

	t->same = failed ? &never : make_same((uint64_t)at + size);
	t->file = failed ? NULL : open_window();
	copy(t->path, rt_header.path, RT_PATH);
	ask_environment(t);
	return t;
}

/*
 * The thread's own, made when it has none. Where glibc takes a stack again, a new thread finds what
 * the last one there had: it goes on with that under its own name.
 */
static struct burst_thread *this_thread(void)
{
	struct burst_thread *t = (struct burst_thread *)*word(BURST_THREAD);

	if (t)
		return t;
	t = make_thread();
	t->owner = identity();
	t->left = rates_of(t).check < BURST_NEVER ? 0 : BURST_NEVER; /* no burst is the first */
	rewind_buffer(t);
	*word(BURST_INSTR) = 0;
	*word(BURST_CHECK) = -1;
	*word(BURST_THREAD) = (int64_t)t;
	return t;
}

/* In a signal handler that came while its thread is here; not where another thread never left. */
static bool is_nested(const struct burst_thread *t)
{
	return t->busy && t->owner == identity();
}

/* ---- for the instrumented copies ---- */

uint64_t rt_burst_room(uint64_t bytes, uint64_t unused __attribute__((unused)))
{
	struct burst_thread *t = this_thread();

	if ((uint64_t)*word(BURST_CURSOR) + bytes <= (uint64_t)*word(BURST_LIMIT))
		return 0;
	if (is_nested(t)) {
		rewind_buffer(t);
		return 0;
	}
	t->busy = true;
	if (t->active || *word(BURST_CHECK) < 0)
		keep(t, BURST_GOES_ON);
	else
		rewind_buffer(t);
	t->busy = false;
	return 0;
}

static void begin(struct burst_thread *t)
{
	int64_t instr = rates_of(t).instr;

	t->active = true;
	++*word(BURST_COUNT);
	t->cost.begun = clock();
	*word(BURST_INSTR) =
		instr > 0 ? instr - 1 : 0; /* one that never ends stops at every check */
}

/* 0: go on in the instrumented copy; 1: over to the other. */
uint64_t rt_burst_turn(uint64_t first, uint64_t second)
{
	struct burst_thread *t = this_thread();
	bool goes_on;

	(void)first, (void)second;
	if (is_nested(t))
		return 1;
	if (!t->active && *word(BURST_CHECK) >= 0) { /* it came back here by a return */
		rewind_buffer(t);
		*word(BURST_INSTR) = 0;
		return 1;
	}
	if (!t->active) {
		if (is_early(t))
			return 1;
		begin(t);
		return 0;
	}
	goes_on = rates_of(t).instr <= 0;
	t->busy = true;
	keep(t, goes_on ? BURST_GOES_ON : 0);
	*word(BURST_INSTR) = 0;
	t->active = goes_on;
	if (!goes_on)
		wait_for(t, checks_to_next(t));
	t->busy = false;
	return !goes_on;
}
