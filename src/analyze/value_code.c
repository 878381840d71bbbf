#include "analyze/value_code.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RETIRED_AT_ONCE = 8 }; /* instructions, on the widest cores of today */

struct number_list {
	uint64_t *p;
	size_t n, space;
};

struct value_code {
	const struct selected_image *image;
	const struct procedure *procedure;
	struct value_file *file;
	struct buf code;                      /* of the ranges, one behind the other */
	VEC(struct code_insn) list;           /* by address */
	struct number_list stores, constants; /* sorted */
	uint8_t arguments;
};

/* ---- files ---- */

struct image *value_file_get(struct value_file *f, const struct selected_image *im)
{
	struct image *image;

	if (f->tried)
		return f->image;
	f->tried = true;
	if (im->kind != IMAGE_ELF || image_open_path(im->path, &image, NULL))
		return NULL;
	if (im->identity.size && image_id_equal(image_id(image), &im->identity))
		f->image = image;
	else
		image_destroy(image);
	return f->image;
}

void value_file_deinit(struct value_file *f)
{
	if (f->image)
		image_destroy(f->image);
	*f = (struct value_file){0};
}

/* ---- instructions ---- */

static int compare_insns(const void *a, const void *b)
{
	const struct code_insn *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static bool goes_on(enum insn_kind kind)
{
	return kind == INSN_PLAIN || kind == INSN_CALL || kind == INSN_CALL_INDIRECT ||
	       kind == INSN_SYSCALL;
}

static void decode_range(struct value_code *c, uint32_t range, const uint8_t *code, size_t n)
{
	uint64_t start = c->procedure->ranges[range].start;
	bool leads = true;

	for (size_t at = 0; at < n;) {
		struct insn insn;

		if (isa_decode(code + at, n - at, start + at, &insn)) {
			at++;
			leads = true;
			continue;
		}
		*vec_add(&c->list) = (struct code_insn){.address = start + at,
			.target = insn.target,
			.bytes = code + at,
			.available = (uint32_t)(n - at),
			.length = insn.length,
			.kind = insn.kind,
			.range = range,
			.leads = leads};
		leads = !goes_on(insn.kind);
		at += insn.length;
	}
}

static void decode(struct value_code *c)
{
	const struct procedure *p = c->procedure;
	size_t at = 0;

	for (uint32_t i = 0; i < p->nranges; i++) {
		size_t left = c->code.n - at;
		size_t n = p->ranges[i].size < left ? p->ranges[i].size : left;

		decode_range(c, i, c->code.p + at, n);
		at += n;
	}
	vec_sort(&c->list, compare_insns);
}

static struct code_insn *find(const struct value_code *c, uint64_t address)
{
	struct code_insn key = {.address = address};

	if (!c->list.n)
		return NULL;
	return bsearch(&key, c->list.p, c->list.n, sizeof key, compare_insns);
}

/*
 * A branch back to an earlier instruction closes a loop, and all between is in it; to and from a
 * fragment it does not, wherever the linker put that.
 * Each branch adds one where its loop begins and takes it away behind its end.
 */
static void mark(struct value_code *c)
{
	_cleanup_free_ int *depth = xcalloc(c->list.n + 1, sizeof *depth);
	int open = 0;

	vec_each (i, &c->list) {
		struct code_insn *to;

		if (i->kind != INSN_BRANCH && i->kind != INSN_JUMP)
			continue;
		to = find(c, i->target);
		if (!to)
			continue;
		to->leads = true;
		if (to <= i && to->range == i->range) {
			depth[to - c->list.p]++;
			depth[i - c->list.p + 1]--;
			if (to < i && i->kind == INSN_BRANCH && !i->leads)
				i[-1].loop = (uint32_t)(i - to + 1);
		}
	}
	for (size_t k = 0; k < c->list.n; k++) {
		open += depth[k];
		c->list.p[k].in_loop = open > 0;
	}
}

/* ---- what it does ---- */

/*
 * Compilers keep the instructions that protect a stack together: a load of the guard with the store
 * behind it, or a comparison with the guard with the load before it.
 */
static void mark_guard(struct value_code *c, struct code_insn *i, const struct roles *guard)
{
	struct code_insn *with = guard->operation == OPERATION_MOVE ? i + 1 : i - 1;
	struct roles r;

	i->guards = true;
	if (with < c->list.p || with >= c->list.p + c->list.n ||
		isa_roles(with->bytes, with->available, with->address, &r))
		return;
	with->guards = r.operation == OPERATION_MOVE && r.on_stack &&
		       (guard->operation == OPERATION_MOVE ? r.stores : r.loads);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void survey(struct value_code *c)
{
	uint16_t touched = 0, read = 0;
	struct roles r;

	vec_each (i, &c->list) {
		if (isa_roles(i->bytes, i->available, i->address, &r))
			continue;
		if (r.guard)
			mark_guard(c, i, &r);
		if (i->in_loop && r.stores)
			*vec_add(&c->stores) = r.place;
		if (r.constant)
			*vec_add(&c->constants) = r.constant;
		if (i->range) /* a fragment */
			continue;
		read |= (uint16_t)(r.reads & ~touched);
		touched |= r.reads | r.writes;
	}
	for (unsigned n = 0; n < 6; n++)
		c->arguments |= (uint8_t)((read >> isa_argument_register(n) & 1) << n);
	vec_sort(&c->stores, compare_numbers);
	vec_sort(&c->constants, compare_numbers);
}

/* ---- the whole ---- */

static int load(struct value_code *c, struct selection *sel, struct err *e)
{
	struct image *file;
	int rc = store_code(selection_store(sel), c->image->id, c->procedure->start, &c->code, e);

	if (rc != -ENOENT)
		return rc;
	file = value_file_get(c->file, c->image);
	rc = file ? 0 : -ENOENT;
	for (uint32_t i = 0; i < c->procedure->nranges && !rc; i++)
		rc = image_code(file, &c->procedure->ranges[i], &c->code);
	if (rc)
		c->code.n = 0;
	return 0;
}

int value_code_create(struct selection *sel, const struct selected_image *im, uint32_t procedure,
	struct value_file *file, struct value_code **out, struct err *e)
{
	struct value_code *c = xcalloc(1, sizeof *c);
	int rc;

	c->image = im;
	c->procedure = &im->procedures.p[procedure];
	c->file = file;
	if ((rc = load(c, sel, e))) {
		value_code_destroy(c);
		return rc;
	}
	decode(c);
	mark(c);
	survey(c);
	*out = c;
	return 0;
}

void value_code_destroy(struct value_code *c)
{
	if (!c)
		return;
	vec_deinit(&c->list);
	vec_deinit(&c->stores);
	vec_deinit(&c->constants);
	buf_deinit(&c->code);
	free(c);
}

const struct code_insn *value_code_at(const struct value_code *c, uint64_t address)
{
	return find(c, address);
}

/* Whether an instruction belongs to a group: branches have no values of their own. */
static bool joins(
	const struct code_insn *i, bool (*fits)(const void *arg, uint64_t address), const void *arg)
{
	return i->kind == INSN_BRANCH || fits(arg, i->address);
}

static void find_run(const struct value_code *c, const struct code_insn *i,
	const struct code_insn **from, const struct code_insn **to)
{
	const struct code_insn *last = c->list.p + c->list.n;

	for (*from = i; !(*from)->leads && *from > c->list.p;)
		--*from;
	for (*to = i + 1; *to < last && !(*to)->leads;)
		++*to;
}

void value_code_run(
	const struct value_code *c, const struct code_insn *i, uint64_t *first, uint64_t *end)
{
	const struct code_insn *from, *to;

	find_run(c, i, &from, &to);
	*first = from->address;
	*end = to[-1].address + to[-1].length;
}

/* Whether `b`, which stands next in the list, is what may retire next behind `a`. */
static bool follows(const struct code_insn *a, const struct code_insn *b)
{
	return a->address + a->length == b->address && a->range == b->range &&
	       (a->kind == INSN_PLAIN || a->kind == INSN_BRANCH);
}

void value_code_group(const struct value_code *c, const struct code_insn *i,
	bool (*fits)(const void *arg, uint64_t address), const void *arg, struct code_group *out)
{
	const struct code_insn *from, *to, *last = c->list.p + c->list.n;
	bool more = true;

	find_run(c, i, &from, &to);
	out->run = (unsigned)(to - from);
	while (more && to - from < RETIRED_AT_ONCE) {
		more = false;
		if (from > c->list.p && follows(from - 1, from) && joins(from - 1, fits, arg)) {
			from--;
			more = true;
		}
		if (to < last && to - from < RETIRED_AT_ONCE && follows(to - 1, to) &&
			joins(to, fits, arg)) {
			to++;
			more = true;
		}
	}
	out->first = from->address;
	out->end = to[-1].address + to[-1].length;
	out->all = (unsigned)(to - from);
}

uint8_t value_code_arguments(const struct value_code *c)
{
	return c->arguments;
}

static bool has(const struct number_list *list, uint64_t n)
{
	return list->n && bsearch(&n, list->p, list->n, sizeof n, compare_numbers);
}

bool value_code_stores(const struct value_code *c, uint64_t place)
{
	return has(&c->stores, place);
}

bool value_code_holds(const struct value_code *c, uint64_t value)
{
	return has(&c->constants, value);
}

/* ---- names ---- */

bool value_code_name(const struct selected_image *im, struct value_file *file, uint64_t address,
	char *name, size_t size)
{
	struct image *image = file ? value_file_get(file, im) : NULL;
	const struct procedure *p = image ? image_procedure_at(image, address) : NULL;
	char label[256];

	if (!p) {
		struct code_walk walk = code_walk_start(&im->map, NULL, 0);
		uint32_t number = code_walk_to(&walk, address, &(uint64_t){0});

		if (number == CODE_NOWHERE)
			return false;
		p = &im->procedures.p[number];
	}
	if (address < p->start)
		return false;
	procedure_label(p, im->path, label, sizeof label);
	if (address == p->start)
		snprintf(name, size, "%s", label);
	else
		snprintf(name, size, "%s+0x%llx", label, (unsigned long long)(address - p->start));
	return true;
}

static bool name_for_text(void *arg, uint64_t address, char *name, size_t size)
{
	const struct value_code *c = arg;

	return value_code_name(c->image, c->file, address, name, size);
}

void value_code_text(const struct value_code *c, const struct code_insn *i, enum isa_syntax syntax,
	char *text, size_t size)
{
	isa_text(i->bytes, i->available, i->address, syntax, name_for_text, (void *)c, text, size);
}
