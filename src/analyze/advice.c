#include "analyze/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * The thresholds: values a rule needs, the least share (its lower bound) that must be alike, and
 * the least share of all samples that must be at stake.
 */
enum { SPECIALISE, DEVIRTUALISE, DIVISION, COPY, HOIST, PREFETCH, DENORMAL, NARROW, RULES };

static const struct limits {
	const char *name;
	uint64_t samples;
	double share, hot;
} limits[RULES] = {
	[SPECIALISE] = {"specialise", 100, 0.90, 0.01},
	[DEVIRTUALISE] = {"devirtualise", 100, 0.90, 0.005},
	[DIVISION] = {"division", 100, 0.90, 0.005},
	[COPY] = {"copy", 100, 0.90, 0.005},
	[HOIST] = {"hoist", 100, 0.99, 0.005},
	[PREFETCH] = {"prefetch", 100, 0.90, 0.005},
	[DENORMAL] = {"denormals", 100, 0.05, 0.005},
	[NARROW] = {"narrow", 100, 0.95, 0.005},
};

enum {
	COPY_MOST = 256,   /* bytes that are worth being inlined */
	STRIDE_LEAST = 64, /* a line of cache */
	LOOP_MOST = 64,    /* the bound of a loop that is worth being unrolled, ... */
	BODY_MOST = 64,    /* ... and its instructions */
};
#define LATENCY_SHARE 0.20 /* of loads that go beyond the second level */
#define WAIT_SHARE    0.10 /* of the procedure's samples at the load and the instruction behind it */

/* ---- shares ---- */

#define Z95 1.96

/* The ends of Wilson's interval: side -1 the lower, 1 the upper. */
static double wilson(uint64_t count, uint64_t samples, int side)
{
	double n = (double)samples, p = (double)count / n, zz = Z95 * Z95 / n;
	double half = Z95 * sqrt(p * (1 - p) / n + zz / (4 * n));
	double end = (p + zz / 2 + side * half) / (1 + zz);

	return end < 0 ? 0 : end > 1 ? 1 : end;
}

double value_share_low(uint64_t count, uint64_t samples)
{
	return samples ? wilson(count < samples ? count : samples, samples, -1) : 0;
}

void value_share_set(struct value_share *v, uint64_t samples)
{
	v->share = samples ? (double)v->count / (double)samples : 0;
	v->low = value_share_low(v->least, samples);
	v->high = samples ? wilson(v->most < samples ? v->most : samples, samples, 1) : 1;
}

bool value_is_pointer(uint64_t value)
{
	/* Position-independent code, heaps, stacks; or the kernel's half, but no small negative. */
	return (value >= 1ull << 40 && value < 1ull << 47) ||
	       (value >= 0xffff800000000000 && value < 0xffffffff00000000);
}

/* ---- what the rules ask of lists ---- */

static bool enough(const struct advice_list *l, int rule)
{
	return l->n && l->samples >= limits[rule].samples;
}

static bool invariant(const struct advice_list *l, int rule)
{
	return enough(l, rule) && l->values[0].low >= limits[rule].share;
}

/* How many of the values certainly have a property. */
static uint64_t count_such(
	const struct advice_list *l, bool (*is)(uint64_t value, unsigned arg), unsigned arg)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n; i++)
		if (is(l->values[i].value, arg))
			sum = hotlist_sum(sum, l->values[i].least);
	return sum;
}

static bool all_such(
	const struct advice_list *l, bool (*is)(uint64_t value, unsigned arg), unsigned arg)
{
	for (size_t i = 0; i < l->n; i++)
		if (!is(l->values[i].value, arg))
			return false;
	return true;
}

static bool is_power(uint64_t value, unsigned arg)
{
	(void)arg;
	return value && !(value & (value - 1));
}

/* The latency plug-in has the level in the lowest bits: 3 is L3, 4 memory, 5 what takes longer. */
static bool is_far(uint64_t value, unsigned arg)
{
	(void)arg;
	return (value & 7) >= 3 && (value & 7) <= 5;
}

static bool fits_bits(uint64_t value, unsigned bits)
{
	return value < 1ull << bits;
}

static bool is_denormal(uint64_t value, unsigned bytes)
{
	if (bytes == 4)
		return !(value & 0x7f800000) && value & 0x007fffff;
	return !(value & 0x7ff0000000000000) && value & 0x000fffffffffffff;
}

/* ---- what advice is made of ---- */

struct advising {
	const struct advice_case *c;
	struct advice *out;
	size_t n;
};

static char *begin(struct advising *a, int rule, unsigned kind)
{
	struct advice *advice;
	bool entry = kind >= VALUE_ENTRY0 && kind <= VALUE_ENTRY5;

	if (a->n == ADVICE_MOST || (entry ? a->c->hot : a->c->near) < limits[rule].hot)
		return NULL;
	advice = &a->out[a->n++];
	advice->kind = kind;
	advice->rule = limits[rule].name;
	return advice->text;
}

/* A lower bound in per cent, which rounding must not raise. */
static double percent_down(double share)
{
	return floor(1000 * share) / 10;
}

/* "97.3% (at least 95.1%) of 812 values" */
struct how_often {
	char text[96];
};

static struct how_often how_often(uint64_t count, uint64_t samples, double low, const char *what)
{
	struct how_often h;

	snprintf(h.text, sizeof h.text, "%.1f%% (at least %.1f%%) of %" PRIu64 " %s",
		100.0 * (double)count / (double)samples, percent_down(low), samples, what);
	return h;
}

static struct how_often top_often(const struct advice_list *l, const char *what)
{
	return how_often(l->values[0].count, l->samples, l->values[0].low, what);
}

/* ---- the rules ---- */

static void specialise_argument(struct advising *a, unsigned argument)
{
	const struct advice_list *l = &a->c->lists[VALUE_ENTRY0 + argument];
	char *text;

	if (a->c->is_stub || advice_is_copy(a->c->procedure) ||
		!(a->c->arguments >> argument & 1) || !invariant(l, SPECIALISE) ||
		value_is_pointer(l->values[0].value))
		return;
	text = begin(a, SPECIALISE, VALUE_ENTRY0 + argument);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"argument %u (%s) is 0x%" PRIx64 " in %s: make a version of %.80s for it",
			argument + 1, isa_argument_name(argument), l->values[0].value,
			top_often(l, "calls").text, a->c->procedure);
}

static void specialise_source(struct advising *a)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *l = &a->c->lists[VALUE_SOURCE];
	char *text;

	if (!r || r->constant_source || r->constant_result || r->moves_stack ||
		r->operation == OPERATION_MOVE || r->operation == OPERATION_ADDRESS ||
		r->operation == OPERATION_DIVIDE || r->operation == OPERATION_COMPARE ||
		a->c->in_code || !invariant(l, SPECIALISE) || value_is_pointer(l->values[0].value))
		return;
	text = begin(a, SPECIALISE, VALUE_SOURCE);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"%s is 0x%" PRIx64 " in %s: make a version of %.80s for it",
			a->c->texts->source, l->values[0].value, top_often(l, "values").text,
			a->c->procedure);
}

/* Not for what it compares, which is predicted, but for the loop that the compiler can unroll. */
static bool specialise_bound(struct advising *a, unsigned kind, const char *operand)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *l = &a->c->lists[kind];
	char *text;

	if (!r || r->operation != OPERATION_COMPARE || !a->c->loop || a->c->loop > BODY_MOST ||
		r->constant_source || (kind == VALUE_SOURCE && a->c->in_code) ||
		!invariant(l, SPECIALISE) || !l->values[0].value || l->values[0].value > LOOP_MOST)
		return false;
	text = begin(a, SPECIALISE, kind);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"the loop ends at %s, which is 0x%" PRIx64
			" in %s: make a version of %.80s for it, whose loop can be unrolled",
			operand, l->values[0].value, top_often(l, "values").text, a->c->procedure);
	return true;
}

static void specialise(struct advising *a)
{
	for (unsigned i = 0; i < 6; i++)
		specialise_argument(a, i);
	specialise_source(a);
	/* Either side may be the bound. */
	if (a->c->texts && !specialise_bound(a, VALUE_SOURCE, a->c->texts->source))
		specialise_bound(a, VALUE_RESULT, a->c->texts->result);
}

/* Where the linker decides (a jump or call through a fixed slot to elsewhere) nothing can be won.
 */
static bool linker_decides(const struct advice_case *c)
{
	return c->is_stub || (c->roles->fixed_address && c->leaves);
}

static void devirtualise(struct advising *a)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *l = &a->c->targets;
	const char *name = a->c->target ? a->c->target : "one target";
	char *text;

	if (!r || !invariant(l, DEVIRTUALISE) || linker_decides(a->c) ||
		(r->kind != INSN_CALL_INDIRECT && r->kind != INSN_JUMP_INDIRECT))
		return;
	text = begin(a, DEVIRTUALISE, VALUE_TARGET);
	if (!text)
		return;
	if (r->kind == INSN_CALL_INDIRECT)
		snprintf(text, ADVICE_TEXT,
			"goes to %.120s in %s: compare with it and call it directly, so that it "
			"can be inlined",
			name, top_often(l, "calls").text);
	else
		snprintf(text, ADVICE_TEXT,
			"goes to %.120s in %s: test for this case before the jump", name,
			top_often(l, "jumps").text);
}

static const char *instead_of_division(uint64_t divisor)
{
	return divisor == 1           ? "leave the division out"
	       : is_power(divisor, 0) ? "shift"
				      : "divide by a constant";
}

static void guard_division(struct advising *a)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *l = &a->c->lists[VALUE_SOURCE];
	uint64_t powers;
	double low;
	char *text;

	if (!r || r->operation != OPERATION_DIVIDE || !enough(l, DIVISION))
		return;
	powers = count_such(l, is_power, 0);
	low = value_share_low(powers, l->samples);
	if (l->values[0].low >= limits[DIVISION].share) {
		text = begin(a, DIVISION, VALUE_SOURCE);
		if (text)
			snprintf(text, ADVICE_TEXT,
				"the divisor %s is 0x%" PRIx64 " in %s: test for it and %s",
				a->c->texts->source, l->values[0].value,
				top_often(l, "divisions").text,
				instead_of_division(l->values[0].value));
	} else if (low >= limits[DIVISION].share) {
		text = begin(a, DIVISION, VALUE_SOURCE);
		if (text)
			snprintf(text, ADVICE_TEXT,
				"the divisor %s is a power of two in %s: test for it and shift",
				a->c->texts->source,
				how_often(powers, l->samples, low, "divisions").text);
	}
}

static void inline_copy(struct advising *a)
{
	const struct roles *r = a->c->roles;
	bool string = r && r->repeats &&
		      (r->operation == OPERATION_COPY || r->operation == OPERATION_FILL);
	bool called = advice_is_copy(a->c->procedure);
	unsigned kind = called ? VALUE_ENTRY2 : VALUE_LENGTH;
	const struct advice_list *l = &a->c->lists[kind];
	uint64_t bytes;
	char *text;

	if ((!string && !called) || !invariant(l, COPY) || l->values[0].value > COPY_MOST)
		return;
	bytes = l->values[0].value * (called ? 1 : r->size);
	if (bytes > COPY_MOST || !(text = begin(a, COPY, kind)))
		return;
	snprintf(text, ADVICE_TEXT, "the size is %" PRIu64 " bytes in %s: write it as moves%s",
		bytes, top_often(l, called ? "calls" : "times").text,
		called ? " at the call (a constant size lets the compiler do it)" : "");
}

static void hoist_load(struct advising *a)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *value = &a->c->lists[VALUE_RESULT];
	const struct advice_list *address = &a->c->lists[VALUE_ADDRESS];
	char *text;

	if (!r || !r->loads || r->stores || r->operation != OPERATION_MOVE || !a->c->in_loop ||
		a->c->is_stored || !invariant(value, HOIST) ||
		(!r->fixed_address && !invariant(address, HOIST)))
		return;
	text = begin(a, HOIST, VALUE_RESULT);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"loads 0x%" PRIx64 " from the same address in %s: load it once before the "
			"loop",
			value->values[0].value, top_often(value, "values").text);
}

static bool is_slow(const struct advice_case *c)
{
	const struct advice_list *l = &c->lists[VALUE_LATENCY];

	if (enough(l, PREFETCH))
		return value_share_low(count_such(l, is_far, 0), l->samples) >= LATENCY_SHARE;
	return c->waits >= WAIT_SHARE;
}

static void prefetch_stride(struct advising *a)
{
	const struct advice_list *l = &a->c->lists[VALUE_STRIDE];
	int64_t stride;
	char *text;

	if (!a->c->roles || !a->c->roles->loads || !invariant(l, PREFETCH) || !is_slow(a->c))
		return;
	stride = (int64_t)l->values[0].value;
	if (stride > -STRIDE_LEAST && stride < STRIDE_LEAST)
		return;
	text = begin(a, PREFETCH, VALUE_STRIDE);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"goes on by %" PRId64 " bytes in %s and is waited for: prefetch some steps "
			"ahead, or put what is read side by side",
			stride, top_often(l, "steps").text);
}

static void avoid_denormals(struct advising *a)
{
	const struct advice_list *l = &a->c->lists[VALUE_FLOAT];
	uint64_t count;
	double low;
	char *text;

	if (!a->c->roles || !a->c->roles->float_size || !enough(l, DENORMAL))
		return;
	count = count_such(l, is_denormal, a->c->roles->float_size);
	low = value_share_low(count, l->samples);
	if (low < limits[DENORMAL].share || !(text = begin(a, DENORMAL, VALUE_FLOAT)))
		return;
	snprintf(text, ADVICE_TEXT,
		"%s are denormal: flush them to zero (FTZ, DAZ) or scale the data",
		how_often(count, l->samples, low, "operands").text);
}

/* ---- narrower types ---- */

/* All values listed fit, and those listed are nearly all; *low is the bound. */
static bool nearly_all_fit(const struct advice_list *l, unsigned bits, double *low)
{
	if (!enough(l, NARROW) || !all_such(l, fits_bits, bits))
		return false;
	*low = value_share_low(count_such(l, fits_bits, bits), l->samples);
	return *low >= limits[NARROW].share;
}

static uint64_t largest(const struct advice_list *l)
{
	uint64_t most = 0;

	for (size_t i = 0; i < l->n; i++)
		most = l->values[i].value > most ? l->values[i].value : most;
	return most;
}

/* A dividend is below (quotient + 1) * divisor, so nobody needs to have seen it. */
static void narrow_division(struct advising *a)
{
	const struct advice_list *divisor = &a->c->lists[VALUE_SOURCE];
	const struct advice_list *quotient = &a->c->lists[VALUE_RESULT];
	double low, low2;
	char *text;

	if (!nearly_all_fit(divisor, 32, &low) || !nearly_all_fit(quotient, 31, &low2) ||
		(largest(quotient) + 1) * largest(divisor) > UINT32_MAX)
		return;
	text = begin(a, NARROW, VALUE_SOURCE);
	if (text)
		snprintf(text, ADVICE_TEXT,
			"dividend and divisor are below 2^32 in at least %.1f%% of %" PRIu64
			" divisions: divide 32-bit numbers where they are",
			percent_down(low < low2 ? low : low2), divisor->samples);
}

static void narrow_load(struct advising *a)
{
	const struct roles *r = a->c->roles;
	const struct advice_list *l = &a->c->lists[VALUE_RESULT];
	const struct advice_list *address = &a->c->lists[VALUE_ADDRESS];
	unsigned bits = 8;
	double low;
	char *text;

	if (!r->loads || r->stores || r->on_stack || r->fixed_address || r->float_size ||
		!a->c->in_loop || r->operation != OPERATION_MOVE || r->memory_size != 8)
		return;
	/* A single word takes no room worth saving. */
	if (address->n && address->values[0].low >= 0.5)
		return;
	if (!nearly_all_fit(l, bits, &low))
		bits = 32;
	if (!nearly_all_fit(l, bits, &low) || !(text = begin(a, NARROW, VALUE_RESULT)))
		return;
	snprintf(text, ADVICE_TEXT,
		"of the 64-bit numbers read, at least %.1f%% of %" PRIu64
		" are below 2^%u: a narrower type takes less of the caches",
		percent_down(low), l->samples, bits);
}

static void narrow(struct advising *a)
{
	const struct roles *r = a->c->roles;

	if (!r)
		return;
	if (r->operation == OPERATION_DIVIDE && r->size == 8)
		narrow_division(a);
	else
		narrow_load(a);
}

/* ---- all of it ---- */

bool advice_is_copy(const char *procedure)
{
	static const char *const names[] = {"memcpy", "memmove", "mempcpy", "memset"};

	procedure += strspn(procedure, "_");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = strlen(names[i]);

		/* "memcpy", "memcpy@plt", "memcpy_avx_unaligned_erms"; not "memcpyish". */
		if (!strncmp(procedure, names[i], n) &&
			(!procedure[n] || procedure[n] == '@' || procedure[n] == '_'))
			return true;
	}
	return false;
}

size_t advise(const struct advice_case *c, struct advice out[ADVICE_MOST])
{
	static void (*const rules[RULES])(struct advising *) = {
		[SPECIALISE] = specialise,
		[DEVIRTUALISE] = devirtualise,
		[DIVISION] = guard_division,
		[COPY] = inline_copy,
		[HOIST] = hoist_load,
		[PREFETCH] = prefetch_stride,
		[DENORMAL] = avoid_denormals,
		[NARROW] = narrow,
	};
	struct advising a = {.c = c, .out = out};

	for (int i = 0; i < RULES; i++)
		rules[i](&a);
	return a.n;
}
