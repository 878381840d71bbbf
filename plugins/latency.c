/*
 * Load latencies, by level of the memory hierarchy (the ASPLOS 2000 paper's section 5.3).
 *
 * Hardly two latencies are equal. Before the recording those of this machine are measured in the
 * same way; a load then belongs to the level whose latency is nearest (by ratio), and its value is
 * that level's: cycles to a precision of 8, and the level in the lowest three bits. What takes more
 * than four times as long as memory (page faults, interrupts) is "longer", by powers of two.
 *
 * The first two levels differ by some ten cycles. Where what is measured for the first varies by as
 * much, as in virtual machines whose clock rate changes, they are one, "L1 or L2". Where the clock
 * goes in steps as large as the third level's latency (26 cycles on Zen 5) all caches are one.
 *
 * Arguments: four limits in cycles, instead of measuring: "latency,10:40:150:2000".
 */
#include <culprit/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { L1, L2, L3, MEMORY, LEVELS, LONGER = LEVELS, NEAR, CACHED };
enum { LINE = 64, TARGETS = 16, ROUNDS = 5, STRIDE = 4096 + 3 * LINE, SAMPLES = 512 };

struct bins {
	uint32_t typical[LEVELS]; /* cycles */
	uint32_t limit[LEVELS];   /* below it: this level */
};
_Static_assert(sizeof(struct bins) <= CULPRIT_CONFIG_SIZE, "it must fit the configuration");

/* ---- this machine ---- */

struct bench {
	volatile uint8_t *targets, *evictor;
	uint32_t sample[SAMPLES];
	uint32_t step;   /* all times that were read are multiples of it */
	uint64_t random; /* orders that no prefetcher foresees */
};

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t median(struct bench *b, size_t n)
{
	qsort(b->sample, n, sizeof *b->sample, by_size);
	return b->sample[n / 2];
}

static void count_step(struct bench *b, uint32_t time)
{
	while (time) {
		uint32_t rest = b->step % time;

		b->step = time;
		time = rest;
	}
}

static uint32_t time_load(struct bench *b, volatile uint8_t *p)
{
	uint64_t before = culprit_cycles();
	uint32_t time;

	(void)*p;
	time = (uint32_t)(culprit_cycles() - before);
	count_step(b, time);
	return time;
}

static uint32_t time_nothing(struct bench *b)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		uint64_t before = culprit_cycles();

		b->sample[i] = (uint32_t)(culprit_cycles() - before);
		count_step(b, b->sample[i]);
	}
	return median(b, SAMPLES);
}

static uint64_t draw(struct bench *b) /* xorshift64 */
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	return b->random ^= b->random << 17;
}

/* Reads a power of two of lines, each once: what is read in order some caches keep apart. */
static void walk(struct bench *b, size_t bytes)
{
	size_t lines = bytes / LINE, at = draw(b);

	for (size_t i = 0; i < lines; i++) {
		at = (at * 5 + 1) & (lines - 1);
		(void)b->evictor[at * LINE];
	}
}

/* Puts the targets in the cache, then `evict` bytes of other lines, and times the targets. */
static uint32_t time_behind(struct bench *b, size_t evict, unsigned rounds)
{
	unsigned order[TARGETS] = {0}, k;
	size_t n = 0;

	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < TARGETS; i++) {
			(void)b->targets[i * STRIDE];
			k = (unsigned)(draw(b) % (i + 1));
			order[i] = order[k];
			order[k] = i;
		}
		walk(b, evict);
		for (unsigned i = 0; i < TARGETS; i++)
			b->sample[n++] = time_load(b, b->targets + order[i] * STRIDE);
	}
	return median(b, n);
}

static uint32_t time_memory(struct bench *b)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		volatile uint8_t *p = b->targets + i % TARGETS * STRIDE;

		__asm__ volatile("clflush (%0)\n\tmfence" ::"r"(p) : "memory");
		b->sample[i] = time_load(b, p);
	}
	return median(b, SAMPLES);
}

static size_t cache_size(int name, size_t otherwise)
{
	long n = sysconf(name);

	return n > 0 ? (size_t)n : otherwise;
}

/* One of several rounds: in each something else may have disturbed one of the levels. */
static void measure_once(struct bench *b, size_t first, size_t second, uint32_t to[LEVELS])
{
	uint32_t clock = time_nothing(b);

	to[L1] = time_behind(b, 0, SAMPLES / TARGETS);
	to[L2] = time_behind(b, first, SAMPLES / TARGETS);
	to[L3] = time_behind(b, second, 8);
	to[MEMORY] = time_memory(b);
	for (int i = 0; i < LEVELS; i++)
		to[i] = to[i] > clock ? to[i] - clock : 1;
}

/* Returns how far the rounds are apart in what they say of the first level. */
static uint32_t measure_rounds(struct bench *b, size_t first, size_t second, struct bins *to)
{
	uint32_t round[ROUNDS][LEVELS], spread = 0;

	for (unsigned r = 0; r < ROUNDS; r++)
		measure_once(b, first, second, round[r]);
	for (unsigned i = 0; i < LEVELS; i++) {
		for (unsigned r = 0; r < ROUNDS; r++)
			b->sample[r] = round[r][i];
		to->typical[i] = median(b, ROUNDS);
		if (i == L1)
			spread = b->sample[ROUNDS - 1] - b->sample[0];
	}
	return spread;
}

/* The geometric mean, as an integer. */
static uint32_t between(uint32_t a, uint32_t b)
{
	uint64_t product = (uint64_t)a * b, root = a < b ? a : b;

	while ((root + 1) * (root + 1) <= product)
		root++;
	return (uint32_t)root;
}

/* Where two levels cannot be told apart the limits coincide, and loads count for the nearer. */
static void set_limits(struct bins *b, uint32_t spread, uint32_t step)
{
	for (int i = 1; i < LEVELS; i++) {
		if (b->typical[i] < b->typical[i - 1])
			b->typical[i] = b->typical[i - 1];
	}
	for (int i = 0; i < MEMORY; i++)
		b->limit[i] = between(b->typical[i], b->typical[i + 1]) + 1;
	b->limit[MEMORY] = 4 * b->typical[MEMORY];
	if (b->typical[L2] - b->typical[L1] <= spread + 2)
		b->limit[L1] = 0;
	if (step > 2 && b->typical[L3] - b->typical[L1] <= 2 * step)
		b->limit[L1] = b->limit[L2] = 0;
}

static size_t power_of_two(size_t least)
{
	size_t n = LINE;

	while (n < least)
		n *= 2;
	return n;
}

/* Four times the first level is sure to displace it, twice the second what is there. */
static const char *measure(struct bins *to)
{
	size_t near = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32768), most = 32 << 20;
	size_t far = cache_size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
	size_t first = power_of_two(4 * near < far / 2 ? 4 * near : far / 2);
	size_t second = power_of_two(2 * far < most ? 2 * far : most);
	struct bench b = {.targets = malloc(TARGETS * STRIDE),
		.evictor = malloc(second),
		.random = 88172645463325252};
	const char *why = NULL;

	if (b.targets && b.evictor) {
		memset((void *)b.targets, 1, TARGETS * STRIDE);
		memset((void *)b.evictor, 1, second);
		uint32_t spread = measure_rounds(&b, first, second, to);

		set_limits(to, spread, b.step);
	} else {
		why = "there is no memory to measure latencies with";
	}
	free((void *)b.targets);
	free((void *)b.evictor);
	return why;
}

static const char *prepare(const char *arguments, unsigned char config[CULPRIT_CONFIG_SIZE])
{
	struct bins b = {0};
	const char *why = NULL;

	if (*arguments) {
		char end;

		if (sscanf(arguments, "%u:%u:%u:%u%c", &b.limit[0], &b.limit[1], &b.limit[2],
			    &b.limit[3], &end) != LEVELS)
			return "takes four limits in cycles, as in latency,10:40:150:2000";
		for (int i = 0; i < LEVELS; i++)
			b.typical[i] = b.limit[i];
	} else {
		why = measure(&b);
	}
	memcpy(config, &b, sizeof b);
	return why;
}

/* ---- bursts ---- */

static uint64_t bin(const struct bins *b, uint32_t cycles)
{
	uint32_t level = L1, value;

	while (level < LEVELS && cycles >= b->limit[level])
		level++;
	value = level < LEVELS ? b->typical[level] : 1u << (31 - __builtin_clz(cycles | 1));
	if (level == L3 && !b->limit[L2])
		level = CACHED;
	else if (level == L2 && !b->limit[L1])
		level = NEAR;
	return (value & ~7u) | (level + 1);
}

static void burst(void *state, const unsigned char config[CULPRIT_CONFIG_SIZE],
	const struct culprit_burst *b, culprit_emit *emit, void *arg)
{
	struct bins bins;

	(void)state;
	memcpy(&bins, config, sizeof bins);
	for (size_t i = 0; i < b->n; i++)
		emit(arg, b->steps[i]->pc, bin(&bins, b->steps[i]->latency), b->steps[i]->context);
}

static int format(uint64_t value, char *text, size_t n)
{
	static const char *const names[8] = {
		"?", "L1", "L2", "L3", "memory", "longer", "L1 or L2", "L1 to L3"};

	return snprintf(text, n, "%s, about %llu cycles", names[value & 7],
		(unsigned long long)((value & ~7ull) + 4));
}

static const struct culprit_capture captures[] = {{.has = CULPRIT_LOADS | CULPRIT_TIMED}};

const struct culprit_plugin culprit_plugin = {CULPRIT_PLUGIN(.name = "latency",
	.about = "how far loads had to go, in cycles", .captures = captures, .ncaptures = 1,
	.prepare = prepare, .burst = burst, .format = format)};
