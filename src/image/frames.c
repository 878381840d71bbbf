#include "image/frames.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "image/cfi.h"
#include "image/eh_entry.h"
#include "image/eh_index.h"
#include "image/elf_file.h"
#include "image/image_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where nothing is said. */
#define NO_RULE 0

struct row {
	uint32_t at; /* from the index's `low` on, up to the next row */
	uint32_t rule;
};

/* A function's rows; the last says where it ends. */
struct group {
	uint32_t first, n;
};

/* The row of an instruction that was looked for lately; without a rule there is none. */
struct met {
	uint32_t at, start, end; /* as of rows */
	uint32_t rule;
};
#define MET 2048 /* by a part of a hash: stacks come by the same calls again and again */

/* By what it says; two that differ hardly ever have one hash, and then they are both kept. */
struct known_rule {
	uint64_t hash, number;
};

/* What was made so far. */
struct made {
	uint32_t *functions; /* by their number: of the group, + 1; 0: nobody asked */
	VEC(struct group) groups;
	VEC(struct row) rows;
	VEC(const struct frame_rule *) rules;
	struct met met[MET];
	struct hmap known; /* struct known_rule */
	struct arena arena;
	struct eh_reader reader;
	struct cfi_row initial; /* of the CIE at this offset */
	uint64_t cie;
};

struct frames {
	struct bytes own; /* the section, if it is not the caller's */
	const uint8_t *section;
	struct eh_index index;
	struct made *made;
};

/* ---- rules ---- */

/* Expressions stay where they are. */
static bool place_expression(
	const struct frames *f, const struct cfi_rule *r, int32_t *place, uint16_t *size)
{
	if (!r->expression || r->size > UINT16_MAX)
		return false;
	*place = (int32_t)(r->expression - f->section);
	*size = (uint16_t)r->size;
	return true;
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static bool make_cfa(const struct frames *f, const struct cfi_row *row, struct frame_rule *out)
{
	if (row->cfa.kind == CFI_VAL_EXPRESSION) {
		out->base = FRAME_BY_EXPRESSION;
		return place_expression(f, &row->cfa, &out->offset, &out->size);
	}
	if (row->cfa.kind != CFI_REGISTER || row->cfa.value < 0 || row->cfa.value >= FRAME_RIP ||
		!fits(row->cfa_offset))
		return false;
	out->base = (uint8_t)row->cfa.value;
	out->offset = (int32_t)row->cfa_offset;
	return true;
}

/* False when nothing can be said of the register. */
static bool make_save(const struct frames *f, const struct cfi_rule *r, struct frame_save *out)
{
	static const uint8_t how[] = {[CFI_UNDEFINED] = FRAME_LOST,
		[CFI_REGISTER] = FRAME_MOVED,
		[CFI_OFFSET] = FRAME_SAVED,
		[CFI_VAL_OFFSET] = FRAME_IS,
		[CFI_EXPRESSION] = FRAME_SAVED_EXPRESSION,
		[CFI_VAL_EXPRESSION] = FRAME_IS_EXPRESSION};

	out->how = how[r->kind];
	if (r->kind == CFI_EXPRESSION || r->kind == CFI_VAL_EXPRESSION)
		return place_expression(f, r, &out->value, &out->size);
	if (r->kind == CFI_UNDEFINED)
		return true;
	if (r->kind == CFI_REGISTER && (r->value < 0 || r->value > FRAME_RIP))
		return false;
	out->value = (int32_t)r->value;
	return fits(r->value);
}

static bool make_rule(const struct frames *f, const struct eh_cie *cie, const struct cfi_row *row,
	struct frame_rule *out)
{
	memset(out, 0, sizeof *out);
	if (cie->return_column != FRAME_RIP || !make_cfa(f, row, out))
		return false;
	out->signal = cie->signal;
	for (uint8_t i = 0; i < FRAME_REGISTERS; i++) {
		const struct cfi_rule *r = &row->registers[i];
		struct frame_save save = {.reg = i};

		if (i == FRAME_RIP && r->kind == CFI_UNDEFINED)
			out->root = true;
		if (r->kind == CFI_UNSPECIFIED || r->kind == CFI_SAME)
			continue;
		if (!make_save(f, r, &save))
			save = (struct frame_save){.reg = i, .how = FRAME_LOST};
		out->saves[out->nsaves++] = save;
	}
	return out->root || (out->nsaves && out->saves[out->nsaves - 1].reg == FRAME_RIP);
}

static size_t rule_size(const struct frame_rule *r)
{
	return offsetof(struct frame_rule, saves) + r->nsaves * sizeof *r->saves;
}

static uint32_t add_rule(struct made *m, const struct frame_rule *rule)
{
	struct frame_rule *kept = arena_alloc(&m->arena, rule_size(rule));

	memcpy(kept, rule, rule_size(rule));
	*vec_add(&m->rules) = kept;
	return (uint32_t)m->rules.n - 1;
}

static uint32_t rule_number(
	const struct frames *f, const struct eh_cie *cie, const struct cfi_row *row)
{
	struct made *m = f->made;
	struct frame_rule rule;
	struct known_rule *known;
	uint64_t hash;
	bool fresh;

	if (!make_rule(f, cie, row, &rule))
		return NO_RULE;
	hash = hash_bytes(&rule, rule_size(&rule));
	known = hmap_put(&m->known, &hash, &fresh);
	if (fresh)
		known->number = add_rule(m, &rule);
	else if (memcmp(m->rules.p[known->number], &rule, rule_size(&rule)))
		return add_rule(m, &rule);
	return (uint32_t)known->number;
}

/* ---- rows ---- */

static void add_row(struct made *m, struct group *g, uint64_t at, uint32_t rule)
{
	if (g->n && m->rows.p[m->rows.n - 1].rule == rule)
		return;
	*vec_add(&m->rows) = (struct row){(uint32_t)at, rule};
	g->n++;
}

static void add_rows(const struct frames *f, const struct eh_fde *fde, struct group *g)
{
	struct made *m = f->made;
	struct cfi c;

	if (m->cie != m->reader.cie.offset)
		cfi_initial(&m->reader.cie, &m->initial);
	m->cie = m->reader.cie.offset;
	cfi_init(&c, &m->reader.cie, &m->initial, fde);
	while (cfi_next(&c))
		if (c.until > c.pc)
			add_row(m, g, c.pc - f->index.low, rule_number(f, &m->reader.cie, &c.row));
	add_row(m, g, c.pc - f->index.low, NO_RULE);
	cfi_deinit(&c);
}

/* A function that the section does not describe after all has no rows. */
static void make_function(const struct frames *f, size_t function)
{
	const struct eh_place *place = &f->index.list.p[function];
	struct made *m = f->made;
	struct group g = {.first = (uint32_t)m->rows.n};
	struct eh_fde fde;

	if (eh_reader_at(&m->reader, place->fde, &fde) && !m->reader.cie.foreign &&
		fde.start == f->index.low + place->at && fde.size <= UINT32_MAX - place->at)
		add_rows(f, &fde, &g);
	*vec_add(&m->groups) = g;
	m->functions[function] = (uint32_t)m->groups.n;
}

/* The index is there, or is made. */
static void begin(struct frames *f, const void *p, size_t n, uint64_t vaddr, bool terminated)
{
	struct made *m = f->made = xcalloc(1, sizeof *m);

	f->section = p;
	eh_reader_init(&m->reader, p, n, vaddr, terminated);
	if (!f->index.list.n)
		eh_index_scan(&m->reader, &f->index);
	m->cie = UINT64_MAX;
	m->functions = xcalloc(f->index.list.n + 1, sizeof *m->functions);
	hmap_init(&m->known, sizeof(struct known_rule), sizeof(uint64_t));
	add_rule(m, &(struct frame_rule){0});
}

void frames_create(const void *p, size_t n, uint64_t vaddr, bool terminated, struct frames **out)
{
	*out = xcalloc(1, sizeof **out);
	begin(*out, p, n, vaddr, terminated);
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
		*out = xcalloc(1, sizeof **out);
		(*out)->own = s.bytes;
		eh_index_read(&f, &s, &(*out)->index);
		begin(*out, s.bytes.p, s.bytes.n, s.vaddr, s.terminated);
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
	free(f->made->functions);
	vec_deinit(&f->made->groups);
	vec_deinit(&f->made->rows);
	vec_deinit(&f->made->rules);
	hmap_deinit(&f->made->known);
	arena_deinit(&f->made->arena);
	free(f->made);
	eh_index_deinit(&f->index);
	bytes_deinit(&f->own);
	free(f);
}

/* ---- looking up ---- */

/* Looks for the row of an address; false: there is none. */
static bool find_row(const struct frames *f, uint64_t vaddr, struct met *out)
{
	size_t function = eh_index_find(&f->index, vaddr), low = 0, high;
	const struct made *m = f->made;
	const struct group *g;
	const struct row *rows;

	if (function == EH_INDEX_NONE)
		return false;
	if (!m->functions[function])
		make_function(f, function);
	g = &m->groups.p[m->functions[function] - 1];
	rows = m->rows.p + g->first;
	for (high = g->n; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].at <= vaddr - f->index.low)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || rows[low - 1].rule == NO_RULE)
		return false;
	*out = (struct met){.at = (uint32_t)(vaddr - f->index.low),
		.start = rows[low - 1].at,
		.end = low < g->n ? rows[low].at : rows[low - 1].at,
		.rule = rows[low - 1].rule};
	return true;
}

const struct frame_rule *frames_around(
	const struct frames *f, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	uint64_t at = vaddr - f->index.low;
	struct met *met = &f->made->met[(at * 0x9e3779b97f4a7c15 >> 40) % MET];

	if ((met->rule == NO_RULE || met->at != at) && !find_row(f, vaddr, met))
		return NULL;
	*start = f->index.low + met->start;
	*end = f->index.low + met->end;
	return f->made->rules.p[met->rule];
}

const struct frame_rule *frames_at(const struct frames *f, uint64_t vaddr)
{
	uint64_t start, end;

	return frames_around(f, vaddr, &start, &end);
}

const uint8_t *frames_expression(const struct frames *f, uint32_t offset)
{
	return f->section + offset;
}

size_t frames_rows(const struct frames *f)
{
	return f->made->rows.n;
}

size_t frames_rules(const struct frames *f)
{
	return f->made->rules.n;
}

size_t frames_memory(const struct frames *f)
{
	const struct made *m = f->made;

	return sizeof *f + sizeof *m + f->own.n +
	       f->index.list.n * (sizeof *f->index.list.p + sizeof *m->functions) +
	       m->groups.n * sizeof *m->groups.p + m->rows.n * sizeof *m->rows.p +
	       m->rules.n * sizeof *m->rules.p + m->arena.used +
	       m->known.slots * sizeof(struct known_rule);
}
