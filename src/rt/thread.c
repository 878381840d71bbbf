/*
 * Blocks of counters for threads (rt.h). A block belongs to a process and the thread control block
 * that its thread lies in, where there is one thread at a time: the next thread there has the block
 * again, whether its word is still there (glibc keeps stacks) or zero. A block whose control block
 * has another word there, or is no memory any more, is nobody's, and so are those of processes
 * that ended; other threads take them over. Nothing waits, for a signal handler may come here
 * while its thread is here.
 */
#include "rt/runtime.h"
#include "rt/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#define TRIES     32 /* blocks that are looked at for one that is nobody's */
#define TCB_ALIGN 6  /* zero bits of a thread control block's address ... */
#define TCB_BITS  41 /* ... and how many the others are; a pid has 22 */

struct claim {
	const struct rt_header *header;
	struct rt_threads *threads;
	struct rt_directory *directory;
	uint64_t counters, me;
};

static uint64_t *word_of(const struct rt_threads *t, uint64_t thread)
{
	return (uint64_t *)(thread + RT_WORD(RT_WORD_NONE) + t->word);
}

static uint64_t offset_of(const struct rt_header *h, uint64_t block)
{
	return h->size + RT_DIRECTORY + block * h->block;
}

static uint64_t displacement_of(const struct claim *c, uint64_t block)
{
	return c->threads->region + offset_of(c->header, block) - c->counters;
}

static uint64_t owner_of(uint64_t process, uint64_t thread)
{
	return process << TCB_BITS | thread >> TCB_ALIGN;
}

static uint64_t thread_of(uint64_t owner)
{
	return (owner & (((uint64_t)1 << TCB_BITS) - 1)) << TCB_ALIGN;
}

/* ---- whose a block is ---- */

/* By the kernel, which does not mind when there is no such memory; the lower half has to do. */
static bool has_word(const struct claim *c, uint64_t thread, uint64_t value)
{
	static const struct timespec at_once;
	long result = sys_call6(SYS_futex, (long)word_of(c->threads, thread), FUTEX_WAIT_PRIVATE,
		(long)(uint32_t)value, (long)&at_once, 0, 0);

	return result != -EAGAIN && result != -EFAULT;
}

static bool is_nobodys(const struct claim *c, uint64_t block, uint64_t owner)
{
	uint64_t process = owner >> TCB_BITS;

	if (!owner)
		return false;
	if (process != c->me >> TCB_BITS)
		return sys_call(SYS_kill, (long)process, 0, 0, 0) == -ESRCH;
	return !has_word(c, thread_of(owner), displacement_of(c, block));
}

/*
 * Its owner may just be setting his word: then he looks whether the block is still his, after
 * that, and we look at the word again after the block is ours. One of the two sees the other.
 */
static bool take_over(const struct claim *c, uint64_t block)
{
	uint64_t *owner = &c->directory->owner[block], before = *owner, mine = c->me;

	if (!is_nobodys(c, block, before) || !__atomic_compare_exchange_n(owner, &before, c->me,
						     false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	if (is_nobodys(c, block, before))
		return true;
	__atomic_compare_exchange_n(
		owner, &mine, before, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return false;
}

static uint32_t blocks_used(const struct claim *c)
{
	uint32_t used = __atomic_load_n(&c->directory->used, __ATOMIC_ACQUIRE);

	return used < c->header->blocks ? used : (uint32_t)c->header->blocks;
}

/* ---- finding one ---- */

static bool find_own(const struct claim *c, uint64_t *block)
{
	for (uint32_t i = 0, n = blocks_used(c); i < n; i++) {
		if (c->directory->owner[i] != c->me)
			continue;
		*block = i;
		return true;
	}
	return false;
}

/* From a place that differs from thread to thread, so that they do not fight for one. */
static bool find_left(const struct claim *c, uint64_t *block)
{
	uint32_t n = blocks_used(c);
	uint32_t from = n ? (uint32_t)((c->me * 0x9e3779b97f4a7c15) >> 32) % n : 0;

	for (uint32_t i = 0; i < n && i < TRIES; i++) {
		*block = (from + i) % n;
		if (take_over(c, *block))
			return true;
	}
	return false;
}

static bool find_new(const struct claim *c, long fd, uint64_t *block)
{
	if (blocks_used(c) == c->header->blocks)
		return false;
	*block = __atomic_fetch_add(&c->directory->used, 1, __ATOMIC_ACQ_REL);
	if (*block >= c->header->blocks || sys_failed(rt_make_room(fd, offset_of(c->header, *block),
						   offset_of(c->header, *block + 1))))
		return false;
	__atomic_store_n(&c->directory->owner[*block], c->me, __ATOMIC_RELEASE);
	return true;
}

static bool find(const struct claim *c, long fd, uint64_t *block)
{
	return find_own(c, block) || find_left(c, block) || find_new(c, fd, block);
}

/* Blocks that were mapped before are mapped again, which does no harm. */
static bool map_block(const struct claim *c, long fd, uint64_t block)
{
	uint64_t offset = offset_of(c->header, block);

	return !sys_failed(
		sys_map(c->threads->region + offset, c->header->block, MAP_FIXED, fd, offset));
}

/* The displacement of one that is ours; 0: there is none. */
static uint64_t get_block(const struct claim *c, long fd)
{
	uint64_t *word = word_of(c->threads, rt_thread_pointer()), block;

	while (find(c, fd, &block) && map_block(c, fd, block)) {
		__atomic_store_n(word, displacement_of(c, block), __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&c->directory->owner[block], __ATOMIC_SEQ_CST) == c->me)
			return displacement_of(c, block);
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	}
	return 0;
}

/* Together with all others, but by a displacement of its own: not asked for again. */
static uint64_t count_together(const struct claim *c)
{
	uint64_t displacement = c->threads->region - c->counters;

	__atomic_fetch_add(&c->directory->short_of, 1, __ATOMIC_RELAXED);
	*word_of(c->threads, rt_thread_pointer()) = displacement;
	return displacement;
}

uint64_t rt_thread_block(void)
{
	const struct rt_header *h = &rt_header;
	struct claim c = {.header = h, .threads = rt_here(h->threads)};
	uint64_t displacement = 0;
	long fd;

	if (!c.threads->word)
		return 0;
	c.directory = (struct rt_directory *)(c.threads->region + h->size);
	c.counters = (uint64_t)rt_here(h->counters);
	c.me = owner_of((uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0), rt_thread_pointer());
	fd = sys_open(h->path);
	if (!sys_failed(fd)) {
		displacement = get_block(&c, fd);
		sys_close(fd);
	}
	return displacement ? displacement : count_together(&c);
}

/* ---- the image ---- */

/* FNV-1a */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	while (*text)
		h = (h ^ (uint8_t)*text++) * 0x100000001b3;
	return h;
}

/* A library that was here before, at the same place, has its old word: threads still hold it. */
static uint64_t take_word(struct rt_process *p, uint64_t counters, uint64_t name)
{
	for (uint64_t i = RT_WORD_IMAGES; i < RT_WORD_NONE; i++) {
		struct rt_word *w = &p->words[i];
		uint64_t before = 0;

		if (__atomic_compare_exchange_n(&w->counters, &before, counters, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			w->name = name;
		else if (before != counters || w->name != name)
			continue;
		return i;
	}
	return RT_WORD_NONE;
}

static long make_region(const struct rt_header *h, uint64_t *region)
{
	uint64_t size = offset_of(h, h->blocks);
	long at;

	if (*region)
		return 0;
	at = sys_call6(SYS_mmap, 0, (long)size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!sys_failed(at))
		*region = (uint64_t)at;
	return sys_failed(at) ? at : 0;
}

static long start(const struct rt_header *h, long fd)
{
	struct rt_threads *t = rt_here(h->threads);
	uint64_t head = h->size + RT_DIRECTORY, word;
	struct rt_process *p = rt_process();
	struct rt_directory *d;
	long result;

	if (!p)
		return -ENOMEM;
	word = take_word(p, (uint64_t)rt_here(h->counters), hash(h->path));
	if (word == RT_WORD_NONE)
		return -ENOSPC;
	result = make_region(h, &p->words[word].region);
	if (!sys_failed(result))
		result = sys_map(p->words[word].region, head, MAP_FIXED, fd, 0);
	if (sys_failed(result))
		return result;
	d = (struct rt_directory *)(p->words[word].region + h->size);
	d->magic = RT_DIRECTORY_MAGIC;
	d->block = h->block;
	t->region = p->words[word].region;
	__atomic_store_n(&t->word, 8 * (word - RT_WORD_NONE), __ATOMIC_RELEASE);
	return 0;
}

/* All of the process count together: whoever reads the counts must know. */
static void tell_short(const struct rt_header *h, long fd)
{
	long at = sys_map(0, RT_DIRECTORY, 0, fd, h->size);
	struct rt_directory *d = (struct rt_directory *)at;

	if (sys_failed(at))
		return;
	d->magic = RT_DIRECTORY_MAGIC;
	d->block = h->block;
	__atomic_fetch_add(&d->short_of, 1, __ATOMIC_RELAXED);
	sys_unmap((uint64_t)at, RT_DIRECTORY);
}

void rt_threads_start(const struct rt_header *h, long fd)
{
	if (sys_failed(start(h, fd)))
		tell_short(h, fd);
}
