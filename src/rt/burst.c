/*
 * The run time of bursts (burst.h). A thread's state and buffer are its own memory, which children
 * of fork have copies of; only whole bursts are copied to the file. A signal handler that comes
 * here while its thread is here finds `busy` and does nothing but make sure that there is room.
 */
#include "rt/burst.h"

#include <stdbool.h>

#include "rt/runtime.h"
#include "rt/sys.h"

struct burst_thread {
	uint64_t owner; /* process and thread; of another: not made for this one */
	bool busy, active;
	struct burst_file *file;   /* its page, and ... */
	struct burst_chunk *chunk; /* ... a chunk mapped behind it; NULL: none is to be had */
	char path[RT_PATH];        /* of the file, which another image's may not be */
	struct burst_record buffer[BURST_BUFFER + BURST_ROOM];
};

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

/* The next chunk of the file, mapped where the last one was. */
static void next_chunk(struct burst_thread *t)
{
	uint64_t window = (uint64_t)t->file, number, offset;
	long fd, result;

	t->chunk = NULL;
	number = __atomic_fetch_add(&t->file->chunks, 1, __ATOMIC_RELAXED);
	if (number >= t->file->most)
		return;
	fd = sys_open(t->path);
	if (sys_failed(fd))
		return;
	offset = BURST_PAGE + number * BURST_CHUNK;
	result = rt_make_room(fd, offset, offset + BURST_CHUNK);
	if (!sys_failed(result))
		result = sys_map(window + BURST_PAGE, BURST_CHUNK, MAP_FIXED, fd, offset);
	sys_close(fd);
	if (sys_failed(result))
		return;
	t->chunk = (struct burst_chunk *)(window + BURST_PAGE);
	*t->chunk = (struct burst_chunk){(uint32_t)(t->owner >> 32), (uint32_t)t->owner, 0};
}

/* Where its file is seen: the first page, and room for a chunk. */
static bool open_window(struct burst_thread *t)
{
	long fd = sys_open(rt_header.path), at, result;

	if (sys_failed(fd))
		return false;
	at = sys_call6(SYS_mmap, 0, BURST_PAGE + BURST_CHUNK, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	result = sys_failed(at) ? at : sys_map((uint64_t)at, BURST_PAGE, MAP_FIXED, fd, 0);
	sys_close(fd);
	if (sys_failed(result))
		return false;
	t->file = (struct burst_file *)at;
	copy(t->path, rt_header.path, RT_PATH);
	return t->file->magic == BURST_MAGIC;
}

static uint64_t clock(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* What is in the buffer goes to the file; a child of fork begins a chunk of its own. */
static void keep(struct burst_thread *t, uint32_t flags)
{
	uint64_t n = (uint64_t)((struct burst_record *)*word(BURST_CURSOR) - t->buffer), size, me;
	struct burst_head *head;

	rewind_buffer(t);
	if (!n || !t->file)
		return;
	n = n < BURST_BUFFER + BURST_ROOM ? n : BURST_BUFFER + BURST_ROOM;
	size = sizeof *head + n * sizeof(struct burst_record);
	me = identity();
	if (me != t->owner || !t->chunk || t->chunk->used + size > BURST_CHUNK_ROOM) {
		t->owner = me;
		next_chunk(t);
	}
	if (!t->chunk) {
		__atomic_fetch_add(&t->file->lost, 1, __ATOMIC_RELAXED);
		return;
	}
	head = (struct burst_head *)((char *)(t->chunk + 1) + t->chunk->used);
	*head = (struct burst_head){(uint32_t)n, flags, clock()};
	copy(head + 1, t->buffer, n * sizeof(struct burst_record));
	__atomic_store_n(&t->chunk->used, t->chunk->used + size, __ATOMIC_RELEASE);
}

/* ---- threads ---- */

#define FOREVER ((int64_t)1 << 62)

/* Memory that nobody reads, when none is to be had. */
static struct burst_thread *make_thread(void)
{
	struct burst_thread *t;
	long at = sys_call6(SYS_mmap, 0, sizeof *t, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	t = sys_failed(at) ? rt_here(rt_header.buffer) : (struct burst_thread *)at;
	if (sys_failed(at) || !open_window(t))
		t->file = NULL;
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
	int64_t instr = t->file ? t->file->instr : 1;

	t->active = true;
	*word(BURST_INSTR) =
		instr > 0 ? instr - 1 : 0; /* one that never ends stops at every check */
}

static bool never_ends(const struct burst_thread *t)
{
	return t->file && t->file->instr <= 0;
}

/* 0: go on in the instrumented copy; 1: over to the other. */
uint64_t rt_burst_turn(uint64_t first, uint64_t second)
{
	struct burst_thread *t = this_thread();

	(void)first, (void)second;
	if (is_nested(t))
		return 1;
	if (!t->active && *word(BURST_CHECK) >= 0) { /* it came back here by a return */
		rewind_buffer(t);
		*word(BURST_INSTR) = 0;
		return 1;
	}
	if (!t->active) {
		begin(t);
		return 0;
	}
	t->busy = true;
	keep(t, never_ends(t) ? BURST_GOES_ON : 0);
	t->busy = false;
	*word(BURST_INSTR) = 0;
	if (never_ends(t))
		return 0;
	t->active = false;
	*word(BURST_CHECK) = t->file ? t->file->check : FOREVER;
	return 1;
}
