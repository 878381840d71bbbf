#include "analyze/fingerprint.h"

#include "base/hmap.h"
#include "base/vec.h"
#include "isa/decode.h"

#include <string.h>

typedef VEC(uint64_t) hash_list;

/* Copies what is the same in every build: '%' for a register, '$' for a constant, '(' for memory.
 */
static size_t shape(const char *text, char *out, size_t size)
{
	size_t n = 0, depth = 0;
	bool fresh = false; /* at the first letter of an operand */

	for (; *text && *text != ' ' && n + 1 < size; text++)
		out[n++] = *text;
	for (; *text && *text != '#' && n + 1 < size; text++) {
		if (*text == '(' && !depth++)
			out[n++] = '(';
		else if (*text == ')' && depth)
			depth--;
		else if ((*text == '%' || *text == '$') && !depth && fresh)
			out[n++] = *text;
		fresh = *text == ' ' || *text == ',' || *text == '*';
	}
	return n;
}

static void decode(const uint8_t *code, size_t size, hash_list *insns)
{
	char text[256], shaped[64];
	struct insn in;

	for (size_t at = 0, step; at < size; at += step) {
		step = isa_text(code + at, size - at, 0, ISA_ATT, NULL, NULL, text, sizeof text);
		/* Gaps are filled as addresses want it. */
		if (!isa_decode(code + at, size - at, 0, &in) && in.filler)
			continue;
		*vec_add(insns) = hash_bytes(shaped, shape(text, shaped, sizeof shaped));
	}
}

static int compare_hashes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void fingerprint_make(const void *code, size_t size, struct fingerprint *out)
{
	enum { RUN = 3 };
	hash_list insns = {0}, runs = {0};

	*out = (struct fingerprint){0};
	decode(code, size, &insns);
	out->insns = (uint32_t)insns.n;
	if (insns.n && insns.n < RUN)
		*vec_add(&runs) = hash_bytes(insns.p, insns.n * sizeof *insns.p);
	for (size_t i = 0; i + RUN <= insns.n; i++)
		*vec_add(&runs) = hash_bytes(insns.p + i, RUN * sizeof *insns.p);
	vec_sort(&runs, compare_hashes);
	for (size_t i = 0; i < runs.n && out->n < FINGERPRINT_SIZE; i++)
		if (!i || runs.p[i] != runs.p[i - 1])
			out->hashes[out->n++] = runs.p[i];
	vec_deinit(&insns);
	vec_deinit(&runs);
}

double fingerprint_likeness(const struct fingerprint *a, const struct fingerprint *b)
{
	size_t i = 0, j = 0, both = 0, all = 0;

	/* The smallest of the union are a sample of it; beyond that many, a list may have ended. */
	while (all < FINGERPRINT_SIZE && (i < a->n || j < b->n)) {
		bool in_a = j == b->n || (i < a->n && a->hashes[i] <= b->hashes[j]);
		bool in_b = i == a->n || (j < b->n && b->hashes[j] <= a->hashes[i]);

		i += in_a;
		j += in_b;
		both += in_a && in_b;
		all++;
	}
	return all ? (double)both / (double)all : 0;
}
