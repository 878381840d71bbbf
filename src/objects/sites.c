#include "objects/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

#define LEVELS 6 /* calls that tell paths apart, at most OBJECTS_DEPTH */

/*
 * Sizes of frames by the return address into them, in one word so that threads need no lock: the
 * address, and above it the size in words. IRREGULAR: it is not the same every time.
 */
#define SIZES     (1 << 15)
#define ADDRESS   (((uint64_t)1 << 48) - 1)
#define IRREGULAR 0xffff
static uint64_t sizes[SIZES];

/* Paths, by a hash of their return addresses; the number of a path is its place here + 1. */
#define PATHS (1 << 16)
static struct path {
	uint64_t key;
	uint32_t count;
} paths[PATHS];
static uint32_t npaths;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93;
	x ^= x >> 29;
	return x;
}

static uint64_t *size_slot(uint64_t pc)
{
	return &sizes[mix(pc) >> 20 & (SIZES - 1)];
}

/* 0: not known. */
static uint32_t size_of(uint64_t pc)
{
	uint64_t slot = __atomic_load_n(size_slot(pc), __ATOMIC_RELAXED);

	return (slot & ADDRESS) == pc ? (uint32_t)(slot >> 48) : 0;
}

static void learn_size(uint64_t pc, uint64_t bytes)
{
	uint64_t words = bytes / 8;
	uint32_t known = size_of(pc);

	if (!words || words >= IRREGULAR || bytes % 8 || (known && known != words))
		words = IRREGULAR;
	__atomic_store_n(size_slot(pc), pc | words << 48, __ATOMIC_RELAXED);
}

/* ---- the slow way ---- */

struct walk {
	uint64_t pc[OBJECTS_DEPTH + 2], stack[OBJECTS_DEPTH + 2];
	uint64_t from; /* the stack of the first frame that is wanted */
	uint32_t n;
};

/* A frame has the stack pointer that it has when the call comes back. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	uint64_t stack = _Unwind_GetCFA(c);

	if (stack < w->from)
		return _URC_NO_REASON;
	if (w->n == OBJECTS_DEPTH + 1)
		return _URC_END_OF_STACK;
	w->pc[w->n] = _Unwind_GetIP(c);
	w->stack[w->n++] = stack;
	return w->pc[w->n - 1] ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void walk(struct walk *w, uint64_t stack)
{
	w->n = 0;
	w->from = stack;
	_Unwind_Backtrace(take_frame, w);
	while (w->n && !w->pc[w->n - 1])
		w->n--;
	for (uint32_t i = 0; i + 1 < w->n; i++)
		learn_size(w->pc[i], w->stack[i + 1] - w->stack[i]);
	if (w->n && w->n <= OBJECTS_DEPTH) /* nobody called it: paths end there */
		learn_size(w->pc[w->n - 1], 0);
}

/* ---- the fast way ---- */

/* Return addresses from the frame on outwards; *whole when sizes were known for all of them. */
static uint32_t follow(const void *frame, uint64_t *pc, bool *whole)
{
	const uint64_t *stack = (const uint64_t *)frame + 2;
	uint32_t n = 0;

	pc[n++] = stack[-1];
	*whole = true;
	while (n < LEVELS) {
		uint32_t words = size_of(pc[n - 1]);

		if (words == IRREGULAR)
			break;
		if (!words) {
			*whole = false;
			break;
		}
		stack += words;
		pc[n] = stack[-1];
		if (!pc[n])
			break;
		n++;
	}
	return n;
}

/* What follow() says must be what unwinding says; where it is not, frames change their size. */
static bool agree(const struct walk *w, const uint64_t *pc, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (i >= w->n || w->pc[i] != pc[i]) {
			if (i)
				learn_size(pc[i - 1], 0);
			return false;
		}
	return true;
}

static void note_path(uint32_t number, const uint64_t *pc, uint32_t n)
{
	uint64_t words[OBJECTS_DEPTH + 1] = {number};

	memcpy(words + 1, pc, n * sizeof *pc);
	log_images();
	log_note(OBJECTS_PATH, words, n + 1);
}

/* The place of a key, or the free one where it would be; NULL: there is none. */
static struct path *find(uint64_t key)
{
	for (uint32_t i = 0; i < 64; i++) {
		struct path *p = &paths[(mix(key) + i) & (PATHS - 1)];

		if (!p->key || p->key == key)
			return p;
	}
	return NULL;
}

static uint64_t key_of(const uint64_t *pc, uint32_t n)
{
	uint64_t key = n;

	for (uint32_t i = 0; i < n; i++)
		key = mix(key ^ pc[i]) + i;
	return key | 1;
}

uint32_t sites_find(const void *frame, uint32_t *ordinal)
{
	uint64_t pc[OBJECTS_DEPTH], key = 0, none = 0;
	struct path *p = NULL;
	struct walk w;
	uint32_t n = 0;
	bool whole;

	for (int tries = 0; tries < LEVELS + 2; tries++) {
		n = follow(frame, pc, &whole);
		key = key_of(pc, n);
		p = whole ? find(key) : NULL;
		if (whole && (!p || p->key == key))
			break;
		walk(&w, (uint64_t)frame + 16);
		if (!w.n || !whole)
			continue;
		if (agree(&w, pc, n))
			break;
	}
	*ordinal = 0;
	if (!p || !whole)
		return 0;
	if (p->key != key) {
		if (npaths >= PATHS / 4 * 3 || !__atomic_compare_exchange_n(&p->key, &none, key,
						       false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return p->key == key ? (uint32_t)(p - paths) + 1 : 0;
		__atomic_fetch_add(&npaths, 1, __ATOMIC_RELAXED);
		note_path((uint32_t)(p - paths) + 1, pc, n);
	}
	*ordinal = __atomic_fetch_add(&p->count, 1, __ATOMIC_RELAXED);
	return (uint32_t)(p - paths) + 1;
}

void sites_forget(void)
{
	memset(paths, 0, sizeof paths);
	npaths = 0;
}
