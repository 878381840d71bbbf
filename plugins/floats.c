/*
 * Operands of floating-point arithmetic (scalar and packed SSE and AVX, 128 bits of it), as bits.
 * Denormals, which many processors handle some hundred cycles late, count as one value, and so do
 * NaNs: of the many there are each would be rare. All others are kept as they are, so exact
 * integers and constants stand out by themselves.
 */
#include <culprit/plugin.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* How wide the operands are; 0: not arithmetic. */
static unsigned operand_size(const struct culprit_step *s)
{
	switch (s->opcode) {
	case 0x12e: /* ucomis, comis */
	case 0x12f:
		return s->prefix == CULPRIT_NONE ? 4 : 8;
	case 0x151: /* sqrt */
	case 0x152: /* rsqrt */
	case 0x153: /* rcp */
	case 0x158: /* add */
	case 0x159: /* mul */
	case 0x15c: /* sub */
	case 0x15d: /* min */
	case 0x15e: /* div */
	case 0x15f: /* max */
	case 0x1c2: /* cmp */
		return s->prefix == CULPRIT_NONE || s->prefix == CULPRIT_F3 ? 4 : 8;
	}
	return 0;
}

static bool has_one_operand(const struct culprit_step *s)
{
	return s->opcode >= 0x151 && s->opcode <= 0x153;
}

static bool is_scalar(const struct culprit_step *s)
{
	return s->prefix == CULPRIT_F3 || s->prefix == CULPRIT_F2 || s->opcode == 0x12e ||
	       s->opcode == 0x12f;
}

static uint64_t canonical(uint64_t bits, unsigned size)
{
	uint64_t fraction = size == 4 ? 0x007fffff : 0x000fffffffffffff;
	uint64_t exponent = size == 4 ? 0x7f800000 : 0x7ff0000000000000;

	if (!(bits & exponent) && bits & fraction)
		return 1; /* the smallest denormal */
	if ((bits & exponent) == exponent && bits & fraction)
		return exponent | (fraction + 1) >> 1; /* the usual quiet NaN */
	return bits;
}

static void emit_operand(const struct culprit_step *s, const uint64_t operand[2], unsigned size,
	culprit_emit *emit, void *arg)
{
	unsigned bytes = is_scalar(s) ? size : 16;

	for (unsigned at = 0; at < bytes; at += size) {
		uint64_t bits = 0;

		memcpy(&bits, (const char *)operand + at, size);
		emit(arg, s->pc, canonical(bits, size), s->context);
	}
}

static void burst(void *state, const unsigned char config[CULPRIT_CONFIG_SIZE],
	const struct culprit_burst *b, culprit_emit *emit, void *arg)
{
	(void)state, (void)config;
	for (size_t i = 0; i < b->n; i++) {
		const struct culprit_step *s = b->steps[i];
		unsigned size = operand_size(s);

		if (size && s->has & CULPRIT_HAS_VECTOR0 && !has_one_operand(s))
			emit_operand(s, s->vector[0], size, emit, arg);
		if (size && s->has & CULPRIT_HAS_VECTOR1)
			emit_operand(s, s->vector[1], size, emit, arg);
	}
}

/* Doubles with nothing in their upper half are denormals (or 0), as are floats that small. */
static int format(uint64_t value, char *text, size_t n)
{
	uint32_t low = (uint32_t)value;
	double d;
	float f;

	memcpy(&f, &low, sizeof f);
	memcpy(&d, &value, sizeof d);
	if (value >> 32 == 0)
		d = (double)f;
	if (value == 1)
		return snprintf(text, n, "denormal");
	if (isnan(d))
		return snprintf(text, n, "NaN");
	return snprintf(text, n, "%.*g", value >> 32 ? 17 : 9, d);
}

static const struct culprit_capture captures[] = {
	{.opcode = 0x150, .opcode_mask = 0xfff0},
	{.opcode = 0x12e, .opcode_mask = 0xfffe},
	{.opcode = 0x1c2, .opcode_mask = 0xffff},
};

const struct culprit_plugin culprit_plugin = {
	CULPRIT_PLUGIN(.name = "floats", .about = "operands of floating-point arithmetic",
		.captures = captures, .ncaptures = 3, .burst = burst, .format = format)};
