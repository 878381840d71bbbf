/*
 * Loads that conflict with a store shortly before them: today's kin of the replay traps in the
 * ASPLOS 2000 paper's section 5.2.
 *
 * Within WINDOW instructions, which may be in flight together, a load is reported
 *   - as blocked, when the youngest store that wrote any of its bytes did not write all of them:
 *     nothing can be forwarded, the load waits until the store is in the cache;
 *   - as a 4K alias, when the lowest 12 bits of addresses overlap those of a store to other memory:
 *     processors compare these first, and may hold the load back for nothing.
 * As in the paper nobody knows whether the conflict really cost time: samples tell.
 *
 * The data-dependence filter. Stores leave for the cache in the order of the program, so what began
 * after one has left cannot conflict with it or with any older one. A load is therefore not
 * reported
 *   - against stores before a locked instruction, xchg with memory, mfence or cpuid: these wait
 * until all earlier stores have left;
 *   - against a store S (or older) when a register of its address was computed, in however many
 * steps and also by way of memory, from a load that was itself blocked by S or by a younger store:
 *     that load had its value after S had left.
 * Dependence by way of branches is none: processors predict them and go on.
 *
 * A value is the distance from the load to the store in bytes of code (56 bits, signed) with what
 * it is in the highest byte.
 */
#include <culprit/plugin.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW = 48, STORES = 64, PAGE = 4096, WIDEST = 64 };
enum { BLOCKED = 1, ALIAS = 2 };

struct store {
	uint64_t address, pc;
	uint32_t after; /* as of registers */
	uint16_t size, index;
};

struct history {
	struct store store[STORES]; /* by number, modulo STORES */
	uint32_t count;             /* number of the youngest; the first is 1 */
	uint32_t left;              /* up to this number all have left, whoever asks */
	uint32_t after[16]; /* a register's value came when all up to this number had left */
};

static bool overlap(const struct store *s, const struct culprit_step *l)
{
	return s->address < l->load + l->load_size && l->load < s->address + s->size;
}

static bool covers(const struct store *s, const struct culprit_step *l)
{
	return s->address <= l->load && l->load + l->load_size <= s->address + s->size;
}

static bool is_alias(const struct store *s, const struct culprit_step *l)
{
	uint64_t distance = (l->load - s->address) % PAGE;

	return distance < s->size || PAGE - distance < l->load_size;
}

static uint32_t latest(const struct history *h, uint16_t registers)
{
	uint32_t after = 0;

	for (unsigned i = 0; i < 16; i++) {
		if (registers >> i & 1 && h->after[i] > after)
			after = h->after[i];
	}
	return after;
}

static uint64_t value_of(unsigned what, const struct culprit_step *l, const struct store *s)
{
	return (uint64_t)what << 56 | ((s->pc - l->pc) & ~0ull >> 8);
}

/* Which store the load waited for; `floor` had left before it began. Its result comes after *after.
 */
static uint64_t look(
	const struct history *h, const struct culprit_step *l, uint32_t floor, uint32_t *after)
{
	uint64_t alias = 0;

	for (uint32_t n = h->count; n > floor && h->count - n < STORES; n--) {
		const struct store *s = &h->store[n % STORES];

		if (l->index - s->index > WINDOW)
			break;
		if (overlap(s, l)) {
			if (covers(s, l)) { /* forwarded, as soon as the store has its data */
				*after = s->after > *after ? s->after : *after;
				return alias;
			}
			*after = n > *after ? n : *after;
			return value_of(BLOCKED, l, s);
		}
		if (!alias && is_alias(s, l))
			alias = value_of(ALIAS, l, s);
	}
	return alias;
}

static void add_store(struct history *h, const struct culprit_step *s, uint32_t after)
{
	h->store[++h->count % STORES] = (struct store){.address = s->store,
		.pc = s->pc,
		.after = after,
		.size = s->store_size,
		.index = s->index};
}

static void burst(void *state, const unsigned char config[CULPRIT_CONFIG_SIZE],
	const struct culprit_burst *b, culprit_emit *emit, void *arg)
{
	struct history h;

	(void)state, (void)config;
	memset(&h, 0, sizeof h);
	for (size_t i = 0; i < b->n; i++) {
		const struct culprit_step *s = b->steps[i];
		uint32_t after = latest(&h, s->reads), floor = latest(&h, s->address);
		uint64_t value = 0;

		if (s->has & CULPRIT_DRAINS)
			h.left = h.count; /* its own load waits too */
		floor = floor > h.left ? floor : h.left;
		if (s->has & CULPRIT_LOADS && s->load_size && s->load_size <= WIDEST)
			value = look(&h, s, floor, &after);
		if (value)
			emit(arg, s->pc, value, s->context);
		if (s->has & CULPRIT_STORES && s->store_size && s->store_size <= WIDEST)
			add_store(&h, s, after);
		if (s->has & CULPRIT_DRAINS)
			h.left = h.count;
		for (unsigned r = 0; r < 16; r++) {
			if (s->writes >> r & 1)
				h.after[r] = after;
		}
	}
}

static int format(uint64_t value, char *text, size_t n)
{
	int64_t distance = (int64_t)(value << 8) >> 8;

	return snprintf(text, n, "%s the store at %s0x%llx",
		value >> 56 == BLOCKED ? "blocked by" : "4K alias of", distance < 0 ? "-" : "+",
		(unsigned long long)(distance < 0 ? -distance : distance));
}

const struct culprit_plugin culprit_plugin = {CULPRIT_PLUGIN(.name = "conflicts",
	.about = "stores that a load may have waited for, by their distance", .burst = burst,
	.format = format)};
