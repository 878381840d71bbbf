#include "analyze/runs.h"

#include "analyze/runs_internal.h"
#include "analyze/tally.h"
#include "base/err.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- builds and their procedures ---- */

/* What makes two images the same build; pads are zero. */
struct build_key {
	struct image_id identity;
	uint16_t kind;
	uint32_t path; /* without identity */
	uint32_t run;  /* of code made at run time, which no other run has */
};

struct build_entry {
	struct build_key key;
	uint32_t build;
};

struct item_key {
	uint64_t start;
	uint32_t build, known;
};

struct item_entry {
	struct item_key key;
	size_t item;
};

static struct build_key key_of(struct runs *r, const struct selected_image *im)
{
	struct build_key k;

	memset(&k, 0, sizeof k);
	k.kind = (uint16_t)im->kind;
	if (im->identity.size) {
		k.identity.size = im->identity.size;
		k.identity.is_hash = im->identity.is_hash;
		memcpy(k.identity.bytes, im->identity.bytes, im->identity.size);
	} else {
		k.path = strtab_add(&r->paths, im->path);
	}
	if (im->kind == IMAGE_JIT)
		k.run = (uint32_t)r->list.n;
	return k;
}

static uint32_t build_of(struct runs *r, struct store *s, const struct selected_image *im)
{
	struct build_key key = key_of(r, im);
	struct build_entry *found;
	bool fresh;

	found = hmap_put(&r->build_index, &key, &fresh);
	if (!fresh)
		return found->build;
	found->build = (uint32_t)r->builds.n;
	*vec_add(&r->builds) = (struct build){.kind = im->kind,
		.path = arena_strdup(&r->memory, im->path),
		.store = s,
		.image = im->id,
		.first_run = r->list.n};
	return found->build;
}

static size_t item_of(struct runs *r, uint32_t build, const struct tally_row *row)
{
	struct item_key key = {row->start, build, row->known};
	struct item_entry *found;
	const struct procedure *p;
	struct item *it;
	bool fresh;

	found = hmap_put(&r->item_index, &key, &fresh);
	if (!fresh)
		return found->item;
	found->item = r->items.n;
	it = vec_add(&r->items);
	*it = (struct item){.build = build, .known = row->known, .start = row->start};
	it->label = arena_strdup(&r->memory, row->name);
	p = row->known ? &row->image->procedures.p[row->procedure] : NULL;
	it->name = p && p->name ? it->label : NULL;
	return found->item;
}

/* ---- runs ---- */

/* Every sample that there should have been stands for as much as those that there are. */
static double period_of(const struct selected_event *ev)
{
	const struct store_account *a = &ev->account;
	double there = (double)(a->attributed + a->unknown);
	double all = there + (double)(a->lost + a->throttled + a->missed);
	double scale = a->scale > 1 ? a->scale : 1;

	return there > 0 ? ev->period * scale * all / there : ev->period;
}

static void take_rows(struct runs *r, struct store *s, const struct tally *t)
{
	const struct tally_row *rows;
	size_t n = tally_rows(t, &rows);

	for (size_t i = 0; i < n; i++) {
		uint32_t build = build_of(r, s, rows[i].image);
		size_t item = item_of(r, build, &rows[i]);
		double samples = (double)rows[i].samples[0];

		r->builds.p[build].samples += samples;
		r->items.p[item].samples += samples;
		*vec_add(&r->counts) = (struct item_count){item, r->list.n, samples};
	}
}

/* The event that all runs are compared by: the one asked for, or the first of the first run. */
static int find_event(struct runs *r, const struct selection *sel, struct err *e)
{
	const struct selected_event *events;

	if (!selection_events(sel, &events))
		return err_set(e, -ENOENT, "no event was sampled in it; record it again");
	if (!r->event)
		r->event = xstrdup(events[0].name);
	if (!r->list.n)
		r->clock = events[0].clock;
	return 0;
}

static int read_run(struct runs *r, struct selection *sel, const char *name, struct err *e)
{
	const struct selected_event *events;
	struct tally *t;
	int rc = find_event(r, sel, e);

	if (!rc)
		rc = tally_create(sel, TALLY_PROCEDURE, NULL, &t, e);
	if (rc)
		return rc;
	selection_events(sel, &events);
	take_rows(r, selection_store(sel), t);
	tally_destroy(t);
	*vec_add(&r->list) = (struct run){
		.name = arena_strdup(&r->memory, name), .period = period_of(&events[0])};
	return 0;
}

int runs_add(struct runs *r, struct store *s, const struct store_filter *filter, const char *name,
	struct err *e)
{
	const char *events[] = {r->event};
	struct selection_options o = {.filter = *filter, .events = events, .nevents = !!r->event};
	struct selection *sel = NULL;
	struct err why = {0};
	int rc = selection_create(s, &o, &sel, &why);

	if (!rc)
		rc = read_run(r, sel, name, &why);
	selection_destroy(sel);
	return rc ? err_set(e, rc, "%s: %s", name, why.text) : 0;
}

struct runs *runs_create(const char *event)
{
	struct runs *r = xcalloc(1, sizeof *r);

	r->event = event ? xstrdup(event) : NULL;
	hmap_init(&r->build_index, sizeof(struct build_entry), sizeof(struct build_key));
	hmap_init(&r->item_index, sizeof(struct item_entry), sizeof(struct item_key));
	return r;
}

void runs_destroy(struct runs *r)
{
	if (!r)
		return;
	vec_each (row, &r->rows)
		free(row->samples);
	vec_deinit(&r->rows);
	vec_deinit(&r->counts);
	vec_deinit(&r->items);
	vec_deinit(&r->builds);
	vec_deinit(&r->list);
	hmap_deinit(&r->build_index);
	hmap_deinit(&r->item_index);
	strtab_deinit(&r->paths);
	arena_deinit(&r->memory);
	free(r->event);
	free(r);
}

/* ---- rows ---- */

static bool is_wanted(const struct run_row *row, const char *pattern)
{
	const char *const names[] = {row->name, row->was};

	for (size_t i = 0; i < 2; i++)
		if (names[i] && (!strcmp(names[i], pattern) || !fnmatch(pattern, names[i], 0)))
			return true;
	return false;
}

static void keep_wanted(struct runs *r, const char *pattern)
{
	size_t n = 0;

	vec_each (row, &r->rows)
		if (is_wanted(row, pattern))
			r->rows.p[n++] = *row;
		else
			free(row->samples);
	r->rows.n = n;
}

int runs_match(struct runs *r, const char *procedure, struct err *e)
{
	_cleanup_free_ uint32_t *row_of = NULL;
	int rc = runs_match_items(r, &row_of, e);

	if (rc)
		return rc;
	vec_each (row, &r->rows)
		row->samples = xcalloc(r->list.n + 1, sizeof *row->samples);
	vec_each (c, &r->counts)
		r->rows.p[row_of[c->item]].samples[c->run] += c->samples;
	if (procedure)
		keep_wanted(r, procedure);
	vec_each (row, &r->rows)
		for (size_t i = 0; i < r->list.n; i++)
			r->list.p[i].samples += row->samples[i];
	return 0;
}

const char *runs_event(const struct runs *r)
{
	return r->event;
}

bool runs_clock(const struct runs *r)
{
	return r->clock;
}

size_t runs_list(const struct runs *r, const struct run **out)
{
	*out = r->list.p;
	return r->list.n;
}

size_t runs_rows(const struct runs *r, const struct run_row **out)
{
	*out = r->rows.p;
	return r->rows.n;
}
