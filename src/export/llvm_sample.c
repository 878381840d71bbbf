#include "export/llvm_sample.h"

#include "analyze/path_code.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INLINED_MOST = 64 };

/* A part of a line of a function: what ran there itself, whom it called, what was inlined. */
struct place {
	int offset;
	unsigned discriminator;
	double count;
	VEC(struct target {
		const char *name;
		double count;
	})
	targets;
	VEC(struct function *) inlined;
};

struct function {
	const char *name;
	double entered;
	VEC(struct place) places; /* in the order of arrival, printed by offset */
};

struct samples {
	const struct code_image *im;
	struct lines *lines;
	VEC(struct function *) functions;
	FILE *out;
	double count;   /* of the block that is looked at */
	uint64_t entry; /* where the procedure begins */
};

/* ---- discriminators ---- */

/*
 * LLVM puts three numbers into one (llvm/IR/DebugInfoMetadata.h), each in 1, 7 or 14 bits as its
 * lowest ones say: which part of the line, for how many turns code stands that was unrolled or made
 * into vectors, and which copy of it this is. Compilers that read a profile ask for the first
 * alone.
 */
static unsigned first_number(unsigned all)
{
	unsigned bits = all >> 1;

	if (all & 1)
		return 0;
	return bits & 0x20 ? (bits >> 1 & 0xfe0) | (bits & 0x1f) : bits & 0x1f;
}

static unsigned turns_of(unsigned all)
{
	unsigned turns = first_number(all & 1 ? all >> 1 : all >> (all & 0x40 ? 14 : 7));

	return turns ? turns : 1;
}

/* ---- functions and places ---- */

static struct function *new_function(const char *name)
{
	struct function *f = xcalloc(1, sizeof *f);

	f->name = name;
	return f;
}

static struct function *top_function(struct samples *s, const char *name)
{
	/* Names are one string each as long as the lines live. Code comes in order of functions. */
	for (size_t i = s->functions.n; i--;)
		if (s->functions.p[i]->name == name)
			return s->functions.p[i];
	return *vec_add(&s->functions) = new_function(name);
}

static struct place *place_in(struct function *f, const struct inlined_line *at)
{
	/* LLVM keeps 16 bits of the distance. */
	int offset = (at->line - at->declared) & 0xffff;
	unsigned part = first_number(at->discriminator);
	struct place *p;

	vec_each (have, &f->places)
		if (have->offset == offset && have->discriminator == part)
			return have;
	p = vec_add(&f->places);
	*p = (struct place){.offset = offset, .discriminator = part};
	return p;
}

static struct function *inlined_at(struct place *p, const char *name)
{
	vec_each (have, &p->inlined)
		if ((*have)->name == name)
			return *have;
	return *vec_add(&p->inlined) = new_function(name);
}

/* The innermost place of an address, and for how many turns its code stands; NULL where something
 * is not known. */
static struct place *find_place(struct samples *s, uint64_t address, unsigned *turns)
{
	struct inlined_line stack[INLINED_MOST];
	size_t n = lines_inlined(s->lines, address, stack, INLINED_MOST);
	struct function *f;
	struct place *p = NULL;

	for (size_t i = 0; i < n; i++)
		if (!stack[i].linkage || !stack[i].line || !stack[i].declared)
			return NULL;
	if (!n)
		return NULL;
	f = top_function(s, stack[n - 1].linkage);
	if (address == s->entry)
		f->entered = s->count;
	for (size_t i = n; i--; f = i ? inlined_at(p, stack[i - 1].linkage) : NULL)
		p = place_in(f, &stack[i]);
	*turns = turns_of(stack[0].discriminator);
	return p;
}

static const char *function_at(struct samples *s, uint64_t address)
{
	struct inlined_line stack[INLINED_MOST];
	size_t n = lines_inlined(s->lines, address, stack, INLINED_MOST);

	return n ? stack[n - 1].linkage : NULL;
}

static void add_target(struct place *p, const char *name, double count)
{
	struct target *t;

	vec_each (have, &p->targets)
		if (have->name == name) {
			have->count += count;
			return;
		}
	t = vec_add(&p->targets);
	t->name = name;
	t->count = count;
}

/* Code of one place runs together: what ran most is how often the place did. */
static void take_insn(void *arg, const struct insn *insn)
{
	struct samples *s = arg;
	unsigned turns;
	struct place *p = find_place(s, insn->address, &turns);
	const char *target;

	if (!p)
		return;
	if (s->count * turns > p->count)
		p->count = s->count * turns;
	if (insn->kind == INSN_CALL && (target = function_at(s, insn->target)))
		add_target(p, target, s->count);
}

static void take_procedure(
	struct samples *s, struct path_codes *codes, const struct code_procedure *p)
{
	struct path_code *code;

	if (path_code_create(codes, s->im->image, p->procedure, &code))
		return;
	s->entry = p->procedure->start;
	for (size_t i = 0; i < p->nblocks; i++) {
		const struct code_block *b = &s->im->blocks.p[p->block + i];

		s->count = b->count;
		if (b->count >= 0.5)
			path_code_block(code, b->start, b->size, take_insn, s);
	}
	path_code_destroy(code);
}

/* ---- text ---- */

static double total_of(const struct function *f)
{
	double sum = 0;

	vec_each (p, &f->places) {
		sum += p->count;
		vec_each (below, &p->inlined)
			sum += total_of(*below);
	}
	return sum;
}

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->discriminator < y->discriminator ? -1 : x->discriminator > y->discriminator;
}

static void put_place(FILE *out, const struct place *p, int indent)
{
	fprintf(out, "%*s%d", indent, "", p->offset);
	if (p->discriminator)
		fprintf(out, ".%u", p->discriminator);
	fputs(": ", out);
}

static void put_places(FILE *out, struct function *f, int indent)
{
	vec_sort(&f->places, by_offset);
	vec_each (p, &f->places) {
		if (p->count < 0.5)
			continue;
		put_place(out, p, indent);
		fprintf(out, "%.0f", p->count);
		vec_each (t, &p->targets)
			fprintf(out, " %s:%.0f", t->name, t->count);
		fputc('\n', out);
	}
	vec_each (p, &f->places)
		vec_each (below, &p->inlined) {
			put_place(out, p, indent);
			fprintf(out, "%s:%.0f\n", (*below)->name, total_of(*below));
			put_places(out, *below, indent + 1);
		}
}

static int by_weight(const void *a, const void *b)
{
	const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;
	double wx = total_of(x), wy = total_of(y);

	return wx > wy ? -1 : wx < wy ? 1 : strcmp(x->name, y->name);
}

static void free_function(struct function *f)
{
	vec_each (p, &f->places) {
		vec_each (below, &p->inlined)
			free_function(*below);
		vec_deinit(&p->inlined);
		vec_deinit(&p->targets);
	}
	vec_deinit(&f->places);
	free(f);
}

int llvm_sample_write(struct selection *sel, const struct code_image *im, FILE *out,
	size_t *functions, struct err *e)
{
	struct samples s = {.im = im, .out = out};
	struct path_codes *codes;
	int rc = lines_open(im->image->path, &im->image->identity, &s.lines, e);

	if (rc)
		return rc;
	codes = path_codes_create(sel);
	vec_each (p, &im->procedures)
		take_procedure(&s, codes, p);
	path_codes_destroy(codes);
	vec_sort(&s.functions, by_weight);
	vec_each (f, &s.functions) {
		fprintf(out, "%s:%.0f:%.0f\n", (*f)->name, total_of(*f), (*f)->entered);
		put_places(out, *f, 1);
		free_function(*f);
	}
	*functions = s.functions.n;
	vec_deinit(&s.functions);
	lines_destroy(s.lines);
	return 0;
}
