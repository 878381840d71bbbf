#include "analyze/listing.h"

#include "analyze/pcpool.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listing {
	struct selection *sel;
	struct selected_image *image;
	const struct procedure *procedure;
	uint32_t number;
	size_t nevents;
	struct pc_pool pcs;
	uint64_t *totals, *hottest, *sum; /* by event; sum is for the line under way */
	struct buf code;                  /* of the ranges, one behind the other */
	struct image *file;               /* NULL unless it is the one that was sampled */
	struct lines *lines;              /* once somebody wants to know */
	bool looked;                      /* for them */
	const char *no_code, *no_lines;
	char text[512];
};

/* ---- samples ---- */

static int add_samples(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct listing *l = arg;
	struct code_walk walk = code_walk_start(&im->map, im->segments, im->nsegments);
	struct pc_count pc;
	uint64_t vaddr;
	int rc;

	(void)e;
	while ((rc = pc_reader_next(pcs, &pc)) > 0)
		if (code_walk_to(&walk, pc.offset, &vaddr) == l->number)
			pc_pool_add(&l->pcs, vaddr, (uint32_t)event, pc.count);
	return rc;
}

static int load_samples(struct listing *l, struct err *e)
{
	int rc = selection_profiles_of(l->sel, l->image, add_samples, l, e);

	pc_pool_settle(&l->pcs);
	vec_each (s, &l->pcs.list) {
		l->totals[s->event] += s->count;
		if (s->count > l->hottest[s->event])
			l->hottest[s->event] = s->count;
	}
	return rc;
}

/* Index of the first sum at or after an address. */
static size_t first_at(const struct listing *l, uint64_t vaddr)
{
	size_t low = 0, high = l->pcs.list.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (l->pcs.list.p[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- code and lines ---- */

static void open_file(struct listing *l)
{
	struct image *file;

	if (l->image->kind != IMAGE_ELF || image_open_path(l->image->path, &file, NULL))
		return;
	if (l->image->identity.size && image_id_equal(image_id(file), &l->image->identity))
		l->file = file;
	else
		image_destroy(file);
}

static int code_from_file(struct listing *l)
{
	int rc = l->file ? 0 : -ENOENT;

	for (uint32_t i = 0; i < l->procedure->nranges && !rc; i++)
		rc = image_code(l->file, &l->procedure->ranges[i], &l->code);
	if (rc)
		l->code.n = 0;
	return rc;
}

static bool file_is_gone(const struct listing *l)
{
	return l->image->kind == IMAGE_ELF && access(l->image->path, F_OK);
}

static const char *why_no_code(const struct listing *l)
{
	if (l->image->kind != IMAGE_ELF)
		return "the database has no code of it";
	if (file_is_gone(l))
		return "the database has no code of it and the file is gone";
	return "the database has no code of it and the file is not the one that was sampled";
}

static int load_code(struct listing *l, struct err *e)
{
	struct store *s = selection_store(l->sel);
	int rc = store_code(s, l->image->id, l->procedure->start, &l->code, e);

	if (rc && rc != -ENOENT)
		return rc;
	if (rc && code_from_file(l))
		l->no_code = why_no_code(l);
	return 0;
}

static void load_lines(struct listing *l)
{
	int rc = -ENOENT;

	if (l->looked)
		return;
	l->looked = true;
	if (l->image->kind == IMAGE_ELF)
		rc = lines_open(l->image->path, &l->image->identity, &l->lines, NULL);
	if (!rc)
		return;
	l->lines = NULL;
	if (l->image->kind != IMAGE_ELF)
		l->no_lines = "no line information";
	else if (file_is_gone(l))
		l->no_lines = "the file is gone";
	else if (rc == -ESTALE)
		l->no_lines = "the file was replaced since it was sampled";
	else
		l->no_lines = "no line information; install its debug symbols, or set "
			      "DEBUGINFOD_URLS";
}

int listing_create(struct selection *sel, struct selected_image *im, uint32_t procedure,
	struct listing **out, struct err *e)
{
	struct listing *l = xcalloc(1, sizeof *l);
	const struct selected_event *events;
	int rc;

	l->sel = sel;
	l->image = im;
	l->number = procedure;
	l->procedure = &im->procedures.p[procedure];
	l->nevents = selection_events(sel, &events);
	l->totals = xcalloc(3 * l->nevents + 1, sizeof *l->totals);
	l->hottest = l->totals + l->nevents;
	l->sum = l->hottest + l->nevents;
	open_file(l);
	rc = load_samples(l, e);
	if (!rc)
		rc = load_code(l, e);
	if (rc) {
		listing_destroy(l);
		return rc;
	}
	*out = l;
	return 0;
}

void listing_destroy(struct listing *l)
{
	if (!l)
		return;
	if (l->lines)
		lines_destroy(l->lines);
	if (l->file)
		image_destroy(l->file);
	pc_pool_deinit(&l->pcs);
	buf_deinit(&l->code);
	free(l->totals);
	free(l);
}

const struct procedure *listing_procedure(const struct listing *l)
{
	return l->procedure;
}

uint64_t listing_total(const struct listing *l, size_t event)
{
	return l->totals[event];
}

uint64_t listing_hottest(const struct listing *l, size_t event)
{
	return l->hottest[event];
}

const char *listing_no_code(const struct listing *l)
{
	return l->no_code;
}

const char *listing_no_lines(struct listing *l)
{
	load_lines(l);
	return l->no_lines;
}

/* ---- line by line ---- */

static bool name_address(void *arg, uint64_t address, char *name, size_t size)
{
	struct listing *l = arg;
	struct code_walk walk = code_walk_start(&l->image->map, NULL, 0);
	const struct procedure *p = l->file ? image_procedure_at(l->file, address) : NULL;
	uint32_t number;
	uint64_t vaddr;
	char label[256];

	if (!p) {
		number = code_walk_to(&walk, address, &vaddr);
		if (number == CODE_NOWHERE)
			return false;
		p = &l->image->procedures.p[number];
	}
	procedure_label(p, l->image->path, label, sizeof label);
	if (address == p->start)
		snprintf(name, size, "%s", label);
	else if (address > p->start)
		snprintf(name, size, "%s+0x%llx", label, (unsigned long long)(address - p->start));
	else
		return false;
	return true;
}

/* Samples and source of the line, which ends before `end`. */
static void fill(struct listing *l, struct listing_line *line, uint64_t end)
{
	struct line at;

	memset(l->sum, 0, l->nevents * sizeof *l->sum);
	for (size_t i = first_at(l, line->address); i < l->pcs.list.n; i++) {
		const struct pc_sum *s = &l->pcs.list.p[i];
		if (s->vaddr >= end)
			break;
		l->sum[s->event] += s->count;
	}
	line->samples = l->sum;
	line->file = NULL;
	line->line = 0;
	line->source = "";
	load_lines(l);
	if (l->lines && !lines_at(l->lines, line->address, &at)) {
		line->file = at.file;
		line->line = at.line;
		line->source = lines_source(l->lines, at.file, at.line);
	}
}

/* The length of the instruction at the start of the code, which lies in a range; 0: none. */
static size_t fill_decoded(struct listing *l, struct listing_line *line, const uint8_t *code,
	size_t n, enum isa_syntax syntax)
{
	size_t length =
		isa_text(code, n, line->address, syntax, name_address, l, l->text, sizeof l->text);

	line->text = l->text;
	if (length)
		fill(l, line, line->address + length);
	return length;
}

static int each_instruction(struct listing *l, uint32_t range, const uint8_t *code, size_t n,
	enum isa_syntax syntax, listing_fn *fn, void *arg)
{
	uint64_t start = l->procedure->ranges[range].start;
	int rc = 0;

	for (size_t at = 0; at < n && !rc;) {
		struct listing_line line = {.address = start + at, .range = range};
		size_t length = fill_decoded(l, &line, code + at, n - at, syntax);

		if (!length)
			break;
		at += length;
		rc = fn(arg, &line);
	}
	return rc;
}

/* Where there is no code: the addresses of the range, from an offset, that got samples. */
static int each_address(struct listing *l, uint32_t range, uint64_t from, listing_fn *fn, void *arg)
{
	const struct range *r = &l->procedure->ranges[range];
	uint64_t last = UINT64_MAX;
	int rc = 0;

	for (size_t i = first_at(l, r->start + from); i < l->pcs.list.n && !rc; i++) {
		struct listing_line line = {.address = l->pcs.list.p[i].vaddr, .range = range};

		if (line.address - r->start >= r->size)
			break;
		if (line.address != last) {
			fill(l, &line, line.address + 1);
			rc = fn(arg, &line);
		}
		last = line.address;
	}
	return rc;
}

int listing_each(struct listing *l, enum isa_syntax syntax, listing_fn *fn, void *arg)
{
	size_t at = 0;
	int rc = 0;

	for (uint32_t i = 0; i < l->procedure->nranges && !rc; i++) {
		size_t left = l->code.n - at;
		size_t n =
			l->procedure->ranges[i].size < left ? l->procedure->ranges[i].size : left;

		rc = each_instruction(l, i, l->code.p + at, n, syntax, fn, arg);
		if (!rc && n < l->procedure->ranges[i].size)
			rc = each_address(l, i, n, fn, arg);
		at += n;
	}
	return rc;
}

int listing_at(
	struct listing *l, uint64_t address, enum isa_syntax syntax, struct listing_line *out)
{
	size_t before = 0;

	for (uint32_t i = 0; i < l->procedure->nranges; i++) {
		const struct range *r = &l->procedure->ranges[i];
		size_t left = before < l->code.n ? l->code.n - before : 0;
		size_t n = r->size < left ? r->size : left, at = address - r->start;
		struct listing_line line = {.address = address, .range = i};

		if (address >= r->start && at < n) {
			fill_decoded(l, &line, l->code.p + before + at, n - at, syntax);
			*out = line;
			return 0;
		}
		before += r->size;
	}
	return -ENOENT;
}
