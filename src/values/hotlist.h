/*
 * Hot lists: which values of a stream are frequent and how frequent they are, in fixed space (the
 * data reduction of the ASPLOS 2000 paper).
 *
 * Two algorithms stand behind one interface. Space-Saving keeps bounds that always hold; counting
 * samples (the paper's choice) keep unbiased estimates and bounds that hold in 99 of 100 cases.
 * Lists of one pool share algorithm, capacity, memory and random numbers; the same seed and the
 * same calls give the same lists. A list of zeros is empty. Two lists, of any capacities, merge to
 * one that summarises both streams. Sums saturate. Not thread-safe: one pool per thread.
 */
#ifndef CULPRIT_VALUES_HOTLIST_H
#define CULPRIT_VALUES_HOTLIST_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct cursor;
struct hotlist_pool;

/*
 * The default is the first: at the same size its errors are a fraction of the other's on all
 * streams of bench/hotlists.c, short ones above all, and what it prints as bounds are bounds.
 */
enum hotlist_algorithm { HOTLIST_SPACE_SAVING, HOTLIST_COUNTING, HOTLIST_ALGORITHMS };

#define HOTLIST_CAPACITY     16 /* default: no value with a share over 1/16 can be missing */
#define HOTLIST_CAPACITY_MAX 64

struct hot_entry {
	uint64_t value, count;
	uint64_t doubt; /* about count, in the algorithm's terms */
};

/* Private but for total; the most frequent entry is inside, for those who see little else. */
struct hotlist {
	uint64_t total; /* weight of all values that came */
	struct hot_entry top;
	struct hot_entry *rest; /* in no order, none above top */
	uint16_t n : 7;         /* entries, top included */
	uint16_t level : 6;     /* counting samples: values enter with probability 2^-level */
	uint16_t space : 3;     /* rest has room for 2^space - 1 */
	uint16_t tag;           /* the owner's */
	uint32_t streams;       /* counting samples: how many were put together */
};

/* Capacity is 2 to HOTLIST_CAPACITY_MAX. */
struct hotlist_pool *hotlist_pool_create(
	enum hotlist_algorithm algorithm, unsigned capacity, uint64_t seed);
void hotlist_pool_destroy(struct hotlist_pool *pool);
void hotlist_pool_clear(struct hotlist_pool *pool); /* voids all lists; keeps most memory */
enum hotlist_algorithm hotlist_pool_algorithm(const struct hotlist_pool *pool);
unsigned hotlist_pool_capacity(const struct hotlist_pool *pool);
size_t hotlist_pool_bytes(const struct hotlist_pool *pool);

static inline uint64_t hotlist_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The rest of hotlist_add. */
void hotlist_add_other(
	struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight);

/* A value came `weight` times. */
static inline void hotlist_add(
	struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight)
{
	if (h->n && h->top.value == value) {
		h->total = hotlist_sum(h->total, weight);
		h->top.count = hotlist_sum(h->top.count, weight);
	} else {
		hotlist_add_other(pool, h, value, weight);
	}
}

/* Adds what `from`, of a pool with the same algorithm, has seen. */
void hotlist_merge(struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from);

/* Empties a list and gives its memory back to the pool. */
void hotlist_release(struct hotlist_pool *pool, struct hotlist *h);

struct hot_value {
	uint64_t value;
	uint64_t low, high; /* how often it came at least and at most */
	uint64_t count;     /* the estimate, between the two */
	double share;       /* count / total */
	double error;       /* the farther bound's distance from count, / total */
};
/* The values by descending count, then by value; returns how many. */
size_t hotlist_read(const struct hotlist_pool *pool, const struct hotlist *h,
	struct hot_value out[HOTLIST_CAPACITY_MAX]);
/* How often a value that is not in the list may have come. */
uint64_t hotlist_absent(const struct hotlist_pool *pool, const struct hotlist *h);

/*
 * What came is itself a sample of what the program did: half the width of the 95% confidence
 * interval (Wilson's) of a share seen in n independent samples.
 */
double hotlist_sampling_error(double share, uint64_t n);

/*
 * Packs a list that is not empty. Unpacks one packed by a pool of the same algorithm and at least
 * this capacity into an empty list; -EBADMSG (and the list stays empty).
 */
void hotlist_pack(const struct hotlist_pool *pool, const struct hotlist *h, struct buf *out);
int hotlist_unpack(struct hotlist_pool *pool, struct hotlist *h, struct cursor *c);

#endif
