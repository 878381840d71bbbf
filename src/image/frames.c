#include "image/frames.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "image/cfi.h"
#include "image/eh_entry.h"
#include "image/elf_file.h"
#include "image/image_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where nothing is said. */
#define NO_RULE 0

#define RECENT 4

struct row {
	uint32_t at; /* from `low` on, up to the next row */
	uint32_t rule;
};

struct frames {
	uint64_t low;
	VEC(struct row) rows;
	VEC(struct frame_rule) rules;
	struct buf pool;
};

/* ---- rules ---- */

struct known_rule {
	struct frame_rule rule;
	uint32_t number;
};

/* A row before it is known where all the code lies. */
struct stretch {
	uint64_t start, end;
	uint32_t rule;
};

/* A function's stretches, which are in order; functions need not be. */
struct group {
	uint64_t start;
	size_t first, n;
};

struct maker {
	struct frames *frames;
	struct hmap rules; /* struct known_rule */
	struct strtab expressions;
	VEC(uint32_t) places; /* in the pool, by expression */
	VEC(struct stretch) stretches;
	VEC(struct group) groups;
	uint32_t recent[RECENT]; /* rules: most rows say what one just before said */
	unsigned turn;
};

/* Expressions as text that can be looked up: there are few, and they are short. */
static char *expression_text(const uint8_t *p, uint32_t n)
{
	char *text = xmalloc(2 * (size_t)n + 1);

	for (uint32_t i = 0; i < n; i++) {
		text[2 * i] = (char)('a' + (p[i] >> 4));
		text[2 * i + 1] = (char)('a' + (p[i] & 15));
	}
	text[2 * (size_t)n] = 0;
	return text;
}

static bool keep_expression(
	struct maker *m, const struct cfi_rule *r, int32_t *place, uint16_t *size)
{
	_cleanup_free_ char *text = NULL;
	uint32_t number;

	if (r->size > UINT16_MAX || m->frames->pool.n > INT32_MAX / 2)
		return false;
	text = expression_text(r->expression, r->size);
	number = strtab_add(&m->expressions, text);
	if (number == m->places.n) {
		*vec_add(&m->places) = (uint32_t)m->frames->pool.n;
		buf_put(&m->frames->pool, r->expression, r->size);
	}
	*place = (int32_t)m->places.p[number];
	*size = (uint16_t)r->size;
	return true;
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static bool make_cfa(struct maker *m, const struct cfi_row *row, struct frame_rule *out)
{
	if (row->cfa.kind == CFI_VAL_EXPRESSION) {
		out->base = FRAME_BY_EXPRESSION;
		return keep_expression(m, &row->cfa, &out->offset, &out->size);
	}
	if (row->cfa.kind != CFI_REGISTER || row->cfa.value < 0 || row->cfa.value >= FRAME_RIP ||
		!fits(row->cfa_offset))
		return false;
	out->base = (uint8_t)row->cfa.value;
	out->offset = (int32_t)row->cfa_offset;
	return true;
}

/* False when nothing can be said of the register. */
static bool make_save(struct maker *m, const struct cfi_rule *r, struct frame_save *out)
{
	static const uint8_t how[] = {[CFI_UNDEFINED] = FRAME_LOST,
		[CFI_REGISTER] = FRAME_MOVED,
		[CFI_OFFSET] = FRAME_SAVED,
		[CFI_VAL_OFFSET] = FRAME_IS,
		[CFI_EXPRESSION] = FRAME_SAVED_EXPRESSION,
		[CFI_VAL_EXPRESSION] = FRAME_IS_EXPRESSION};

	out->how = how[r->kind];
	if (r->kind == CFI_EXPRESSION || r->kind == CFI_VAL_EXPRESSION)
		return keep_expression(m, r, &out->value, &out->size);
	if (r->kind == CFI_UNDEFINED)
		return true;
	if (r->kind == CFI_REGISTER && (r->value < 0 || r->value > FRAME_RIP))
		return false;
	out->value = (int32_t)r->value;
	return fits(r->value);
}

static bool make_rule(struct maker *m, const struct eh_cie *cie, const struct cfi_row *row,
	struct frame_rule *out)
{
	memset(out, 0, sizeof *out);
	if (cie->return_column != FRAME_RIP || !make_cfa(m, row, out))
		return false;
	out->signal = cie->signal;
	for (uint8_t i = 0; i < FRAME_REGISTERS; i++) {
		const struct cfi_rule *r = &row->registers[i];
		struct frame_save save = {.reg = i};

		if (i == FRAME_RIP && r->kind == CFI_UNDEFINED)
			out->root = true;
		if (r->kind == CFI_UNSPECIFIED || r->kind == CFI_SAME)
			continue;
		if (!make_save(m, r, &save))
			save = (struct frame_save){.reg = i, .how = FRAME_LOST};
		out->saves[out->nsaves++] = save;
	}
	return out->root || (out->nsaves && out->saves[out->nsaves - 1].reg == FRAME_RIP);
}

static uint32_t rule_number(struct maker *m, const struct eh_cie *cie, const struct cfi_row *row)
{
	struct frame_rule rule;
	struct known_rule *known;
	bool fresh;

	if (!make_rule(m, cie, row, &rule))
		return NO_RULE;
	for (unsigned i = 0; i < RECENT; i++)
		if (m->recent[i] && !memcmp(&m->frames->rules.p[m->recent[i]], &rule, sizeof rule))
			return m->recent[i];
	known = hmap_put(&m->rules, &rule, &fresh);
	if (fresh) {
		known->number = (uint32_t)m->frames->rules.n;
		*vec_add(&m->frames->rules) = rule;
	}
	m->recent[m->turn++ % RECENT] = known->number;
	return known->number;
}

/* ---- rows ---- */

static void add_function(struct maker *m, const struct eh_cie *cie, const struct cfi_row *initial,
	const struct eh_fde *fde)
{
	size_t first = m->stretches.n;
	struct cfi c;

	if (cie->foreign)
		return;
	cfi_init(&c, cie, initial, fde);
	while (cfi_next(&c)) {
		struct stretch s = {c.pc, c.until, rule_number(m, cie, &c.row)};

		if (s.rule != NO_RULE && s.end > s.start)
			*vec_add(&m->stretches) = s;
	}
	cfi_deinit(&c);
	if (m->stretches.n > first)
		*vec_add(&m->groups) =
			(struct group){m->stretches.p[first].start, first, m->stretches.n - first};
}

static int by_start(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_row(struct frames *f, uint64_t at, uint32_t rule)
{
	struct row *last = f->rows.n ? &f->rows.p[f->rows.n - 1] : NULL;

	if (last && last->rule == rule)
		return;
	if (last && last->at == at - f->low)
		last->rule = rule;
	else
		*vec_add(&f->rows) = (struct row){(uint32_t)(at - f->low), rule};
}

/* What two functions claim belongs to the one that begins first; returns where it ends. */
static uint64_t lay_out_group(struct maker *m, const struct group *g, uint64_t end)
{
	struct frames *f = m->frames;

	for (size_t i = g->first; i < g->first + g->n; i++) {
		const struct stretch *s = &m->stretches.p[i];
		uint64_t start = s->start > end ? s->start : end;

		if (s->end - f->low > UINT32_MAX)
			break;
		if (s->end <= start)
			continue;
		if (start > end && end)
			add_row(f, end, NO_RULE);
		add_row(f, start, s->rule);
		end = s->end;
	}
	return end;
}

static void lay_out(struct maker *m)
{
	uint64_t end = 0;

	if (!m->groups.n)
		return;
	vec_sort(&m->groups, by_start);
	m->frames->low = m->groups.p[0].start;
	vec_each (g, &m->groups)
		end = lay_out_group(m, g, end);
	add_row(m->frames, end, NO_RULE);
}

void frames_create(const void *p, size_t n, uint64_t vaddr, bool terminated, struct frames **out)
{
	struct maker m = {.frames = xcalloc(1, sizeof *m.frames)};
	struct eh_reader reader;
	struct eh_fde fde;
	struct cfi_row initial;
	uint64_t cie = UINT64_MAX;

	*vec_add(&m.frames->rules) = (struct frame_rule){0};
	hmap_init(&m.rules, sizeof(struct known_rule), offsetof(struct known_rule, number));
	eh_reader_init(&reader, p, n, vaddr, terminated);
	while (eh_reader_next(&reader, &fde)) {
		if (reader.cie.offset != cie)
			cfi_initial(&reader.cie, &initial);
		cie = reader.cie.offset;
		add_function(&m, &reader.cie, &initial, &fde);
	}
	lay_out(&m);
	hmap_deinit(&m.rules);
	strtab_deinit(&m.expressions);
	vec_deinit(&m.places);
	vec_deinit(&m.stretches);
	vec_deinit(&m.groups);
	*out = m.frames;
}

static int open_file(struct image *im, int fd, struct frames **out)
{
	struct eh_section s;
	struct elf_file f;
	int rc = elf_file_open(&f, fd, image_path(im), NULL);

	if (rc)
		return -ENOENT;
	elf_file_read_sections(&f);
	rc = eh_section_read(&f, &s);
	if (!rc) {
		frames_create(s.bytes.p, s.bytes.n, s.vaddr, s.terminated, out);
		bytes_deinit(&s.bytes);
	}
	elf_file_close(&f);
	return rc;
}

/* An image that is in no file (the vDSO), as one: reading goes by descriptors. */
static int file_of_bytes(const struct buf *b)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, b->p, b->n) != (ssize_t)b->n) {
		close(fd);
		return -1;
	}
	return fd;
}

int frames_open(struct image *im, struct frames **out)
{
	bool mine = im->fd < 0;
	int fd = im->bytes.n ? file_of_bytes(&im->bytes) : mine ? image_reopen(im) : im->fd;
	int rc;

	if (fd < 0)
		return -ENOENT;
	rc = open_file(im, fd, out);
	if (mine)
		close(fd);
	return rc;
}

void frames_destroy(struct frames *f)
{
	if (!f)
		return;
	vec_deinit(&f->rows);
	vec_deinit(&f->rules);
	buf_deinit(&f->pool);
	free(f);
}

/* ---- looking up ---- */

const struct frame_rule *frames_at(const struct frames *f, uint64_t vaddr)
{
	size_t low = 0, high = f->rows.n;
	uint64_t at = vaddr - f->low;

	if (vaddr < f->low || at > UINT32_MAX)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->rows.p[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || f->rows.p[low - 1].rule == NO_RULE)
		return NULL;
	return &f->rules.p[f->rows.p[low - 1].rule];
}

const uint8_t *frames_expression(const struct frames *f, uint32_t offset)
{
	return f->pool.n ? f->pool.p + offset : NULL;
}

size_t frames_rows(const struct frames *f)
{
	return f->rows.n;
}

size_t frames_rules(const struct frames *f)
{
	return f->rules.n;
}

size_t frames_memory(const struct frames *f)
{
	return sizeof *f + f->rows.n * sizeof *f->rows.p + f->rules.n * sizeof *f->rules.p +
	       f->pool.n;
}
