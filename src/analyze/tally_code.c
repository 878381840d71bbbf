/*
 * The views of the tally that need to know where in an image the samples are.
 */
#include "analyze/pcpool.h"
#include "analyze/tally_internal.h"
#include "base/err.h"
#include "image/lines.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- which samples ---- */

static const char *nowhere_label(struct tally *t, const struct selected_image *im, const char *why)
{
	char text[512];

	if (im->kind == IMAGE_UNKNOWN)
		return "(unknown)";
	snprintf(text, sizeof text, "%s (%s)", selected_image_name(im), why);
	return arena_strdup(&t->memory, text);
}

static const char *label_at(struct tally *t, const struct selected_image *im, uint32_t procedure)
{
	const struct procedure *p;
	char text[512];

	if (procedure == CODE_NOWHERE)
		return nowhere_label(t, im, "no procedure");
	p = &im->procedures.p[procedure];
	if (p->name)
		return p->name;
	return arena_strdup(&t->memory, procedure_label(p, im->path, text, sizeof text));
}

static bool matches(const struct tally *t, const char *label)
{
	return !t->pattern || !strcmp(t->pattern, label) || !fnmatch(t->pattern, label, 0);
}

static int note_total(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	(void)row, (void)t0, (void)t1;
	*(bool *)arg = true;
	return 1;
}

/* Nothing was found for the process asked for: did it run at all? */
static int explain_pid(struct tally *t, struct err *e)
{
	const struct store_filter *f = selection_filter(t->sel);
	bool ran = false;
	int rc = store_totals(selection_store(t->sel), f, note_total, &ran, e);

	if (rc < 0)
		return rc;
	if (!ran)
		return err_set(
			e, -ENOENT, "process %d has no samples in what was selected", f->pid);
	return err_set(e, -ENOENT,
		"code profiles of single processes were not kept: collect with 'culprit record "
		"--per-process', or use --comm, or --by process, thread or image with --pid %d",
		f->pid);
}

/* ---- by procedure ---- */

struct code_tally {
	struct tally *t;
	bool any;
};

/* Counts by procedure (the last is for no procedure) and event; made at the image's first profile.
 */
static uint64_t *image_counts(struct tally *t, struct selected_image *im)
{
	if (!im->user)
		im->user = xcalloc((im->procedures.n + 1) * t->nevents, sizeof(uint64_t));
	return im->user;
}

static int add_to_procedures(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct code_tally *c = arg;
	size_t nevents = c->t->nevents;
	struct code_walk walk;
	struct pc_count pc;
	uint64_t *counts, vaddr;
	int rc = selection_load(c->t->sel, im, e);

	if (rc)
		return rc;
	c->any = true;
	counts = image_counts(c->t, im) + event;
	walk = code_walk_start(&im->map, im->segments, im->nsegments);
	while ((rc = pc_reader_next(pcs, &pc)) > 0) {
		uint32_t p = code_walk_to(&walk, pc.offset, &vaddr);
		counts[(p == CODE_NOWHERE ? im->procedures.n : p) * nevents] += pc.count;
	}
	return rc;
}

static void add_procedure_row(struct tally *t, const struct selected_image *im, uint32_t procedure,
	const uint64_t *counts)
{
	struct tally_row row = {.image = im, .procedure = procedure};
	uint64_t sum = 0;
	size_t n;

	for (size_t i = 0; i < t->nevents; i++)
		sum += counts[i];
	if (!sum)
		return;
	row.name = label_at(t, im, procedure);
	if (!matches(t, row.name))
		return;
	row.known = procedure != CODE_NOWHERE;
	row.start = row.known ? im->procedures.p[procedure].start : 0;
	n = tally_add_row(t, &row);
	for (size_t i = 0; i < t->nevents; i++)
		tally_count(t, n, i, counts[i]);
}

int tally_procedures(struct tally *t, struct err *e)
{
	struct code_tally c = {.t = t};
	struct selected_image *images;
	size_t n = selection_images(t->sel, &images);
	int rc = selection_profiles(t->sel, add_to_procedures, &c, e);

	for (size_t i = 0; i < n; i++) {
		struct selected_image *im = &images[i];
		const uint64_t *counts = im->user;

		for (size_t p = 0; counts && !rc && p <= im->procedures.n; p++)
			add_procedure_row(t, im, p < im->procedures.n ? (uint32_t)p : CODE_NOWHERE,
				counts + p * t->nevents);
		free(im->user);
		im->user = NULL;
	}
	if (!rc && !c.any && selection_filter(t->sel)->pid)
		rc = explain_pid(t, e);
	return rc;
}

/* ---- by line ---- */

/* The samples of an image by address; procedures that are not wanted never get in. */
struct line_pool {
	struct pc_pool pcs;
	signed char *wanted; /* by procedure: 0 not known yet, 1 yes, -1 no; the last is for none */
};

static bool is_wanted(struct tally *t, struct selected_image *im, uint32_t procedure)
{
	struct line_pool *pool = im->user;
	signed char *w = &pool->wanted[procedure == CODE_NOWHERE ? im->procedures.n : procedure];

	if (!*w)
		*w = matches(t, label_at(t, im, procedure)) ? 1 : -1;
	return *w > 0;
}

static int add_to_pool(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct code_tally *c = arg;
	struct line_pool *pool;
	struct code_walk walk;
	struct pc_count pc;
	uint64_t vaddr;
	int rc = selection_load(c->t->sel, im, e);

	if (rc)
		return rc;
	c->any = true;
	if (!im->user) {
		im->user = pool = xcalloc(1, sizeof *pool);
		pool->wanted = xcalloc(im->procedures.n + 1, 1);
	}
	pool = im->user;
	walk = code_walk_start(&im->map, im->segments, im->nsegments);
	while ((rc = pc_reader_next(pcs, &pc)) > 0) {
		uint32_t p = code_walk_to(&walk, pc.offset, &vaddr);
		if (is_wanted(c->t, im, p))
			pc_pool_add(&pool->pcs, vaddr, (uint32_t)event, pc.count);
	}
	return rc;
}

static const char *why_no_lines(const struct selected_image *im, int rc)
{
	if (im->kind == IMAGE_ELF && access(im->path, F_OK))
		return "the file is gone, no lines";
	return rc == -ESTALE ? "the file was replaced, no lines" : "no line information";
}

struct line_key {
	const char *file; /* NULL: no line known */
	int64_t line;
};

struct line_row {
	struct line_key key;
	size_t row;
};

static size_t line_row(struct tally *t, struct hmap *rows, const struct selected_image *im,
	const struct line_key *key, const char *why)
{
	struct tally_row row = {.image = im, .procedure = CODE_NOWHERE};
	struct line_row *found;
	bool fresh;

	found = hmap_put(rows, key, &fresh);
	if (!fresh)
		return found->row;
	row.known = key->file != NULL;
	row.line = (int32_t)key->line;
	row.name = key->file ? key->file : nowhere_label(t, im, why);
	return found->row = tally_add_row(t, &row);
}

/* Samples are sorted by address, so that each address is looked up once. */
static void place_lines(
	struct tally *t, struct selected_image *im, struct lines *lines, const char *why)
{
	struct line_pool *pool = im->user;
	struct hmap rows;
	uint64_t vaddr = 0;
	size_t row = SIZE_MAX;

	hmap_init(&rows, sizeof(struct line_row), sizeof(struct line_key));
	vec_each (pc, &pool->pcs.list) {
		if (row == SIZE_MAX || pc->vaddr != vaddr) {
			struct line_key key = {0};
			struct line at;

			vaddr = pc->vaddr;
			if (lines && !lines_at(lines, vaddr, &at)) {
				uint32_t name = strtab_add(&t->names, at.file);
				key = (struct line_key){t->names.strings[name], at.line};
			}
			row = line_row(t, &rows, im, &key, why);
		}
		tally_count(t, row, pc->event, pc->count);
	}
	hmap_deinit(&rows);
}

static void lines_of_image(struct tally *t, struct selected_image *im)
{
	struct line_pool *pool = im->user;
	struct lines *lines = NULL;
	int rc = -ENOENT;

	pc_pool_settle(&pool->pcs);
	if (im->kind == IMAGE_ELF)
		rc = lines_open(im->path, &im->identity, &lines, NULL);
	place_lines(t, im, rc ? NULL : lines, why_no_lines(im, rc));
	if (!rc)
		lines_destroy(lines);
}

int tally_lines(struct tally *t, struct err *e)
{
	struct code_tally c = {.t = t};
	struct selected_image *images;
	size_t n = selection_images(t->sel, &images);
	int rc = selection_profiles(t->sel, add_to_pool, &c, e);

	for (size_t i = 0; i < n; i++) {
		struct line_pool *pool = images[i].user;

		if (!pool)
			continue;
		if (!rc)
			lines_of_image(t, &images[i]);
		pc_pool_deinit(&pool->pcs);
		free(pool->wanted);
		free(pool);
		images[i].user = NULL;
	}
	if (!rc && !c.any && selection_filter(t->sel)->pid)
		rc = explain_pid(t, e);
	return rc;
}
