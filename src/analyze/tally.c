#include "analyze/tally.h"

#include "analyze/tally_internal.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t tally_add_row(struct tally *t, const struct tally_row *row)
{
	*vec_add(&t->rows) = *row;
	vec_reserve(&t->counts, t->counts.n + t->nevents);
	for (size_t i = 0; i < t->nevents; i++)
		*vec_add(&t->counts) = 0;
	return t->rows.n - 1;
}

/* ---- views from totals ---- */

/* What makes two totals the same row; fields that the view ignores are zero. */
struct total_key {
	int64_t image, started;
	uint32_t name, process;
	int32_t pid, tid, cpu, pad;
};

struct total_row {
	struct total_key key;
	size_t row;
};

struct total_walk {
	struct tally *t;
	struct hmap rows;
};

static uint32_t intern(struct tally *t, const char *s, const char *otherwise)
{
	return strtab_add(&t->names, s && *s ? s : otherwise);
}

static struct total_key key_of(struct tally *t, const struct store_total *r)
{
	struct total_key k = {0};

	switch (t->by) {
	case TALLY_IMAGE:
		k.image = r->image;
		break;
	case TALLY_CGROUP:
		k.name = intern(t, r->cgroup, "");
		break;
	case TALLY_CPU:
		k.cpu = r->cpu;
		break;
	case TALLY_COMM:
		k.name = intern(t, r->comm, "");
		break;
	case TALLY_THREAD:
		k.tid = r->tid;
		k.process = intern(t, r->comm, "");
		k.name = intern(t, r->thread, r->comm ? r->comm : "");
		k.pid = r->pid;
		k.started = r->started;
		break;
	default:
		k.name = intern(t, r->comm, "");
		k.pid = r->pid;
		k.started = r->started;
	}
	return k;
}

static const char *label_of(struct tally *t, const struct total_key *k)
{
	const struct selected_image *im;
	char text[16];

	if (t->by == TALLY_CPU) {
		snprintf(text, sizeof text, "%d", k->cpu);
		return arena_strdup(&t->memory, text);
	}
	if (t->by == TALLY_IMAGE) {
		im = selection_image(t->sel, k->image);
		return im && im->kind != IMAGE_UNKNOWN ? im->path : "(unknown)";
	}
	return *t->names.strings[k->name] ? t->names.strings[k->name] : "(unknown)";
}

static size_t add_total_row(struct tally *t, const struct total_key *k)
{
	struct tally_row row = {
		.name = label_of(t, k),
		.procedure = CODE_NOWHERE,
		.started = k->started,
		.pid = k->pid,
		.tid = k->tid,
		.cpu = k->cpu,
	};

	row.known = strcmp(row.name, "(unknown)") != 0;
	if (t->by == TALLY_IMAGE)
		row.image = selection_image(t->sel, k->image);
	if (t->by == TALLY_THREAD)
		row.process = t->names.strings[k->process];
	return tally_add_row(t, &row);
}

static int take_total(void *arg, const struct store_total *r, int64_t t0, int64_t t1)
{
	struct total_walk *w = arg;
	int event = selection_event(w->t->sel, r->event);
	struct total_key k;
	struct total_row *found;
	bool fresh;

	(void)t0, (void)t1;
	if (event < 0)
		return 0;
	k = key_of(w->t, r);
	found = hmap_put(&w->rows, &k, &fresh);
	if (fresh)
		found->row = add_total_row(w->t, &k);
	tally_count(w->t, found->row, (size_t)event, r->samples);
	return 0;
}

static int tally_totals(struct tally *t, struct err *e)
{
	struct total_walk w = {.t = t};
	int rc;

	hmap_init(&w.rows, sizeof(struct total_row), sizeof(struct total_key));
	rc = store_totals(selection_store(t->sel), selection_filter(t->sel), take_total, &w, e);
	hmap_deinit(&w.rows);
	return rc;
}

/* ---- rows in order ---- */

static int compare_names(const struct tally_row *x, const struct tally_row *y)
{
	int c = strcmp(x->name, y->name);

	if (c)
		return c;
	if (x->image && y->image && (c = strcmp(x->image->path, y->image->path)))
		return c;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct tally_row *x = a, *y = b;
	const struct tally *t = arg;

	for (size_t i = 0; i < t->nevents; i++)
		if (x->samples[i] != y->samples[i])
			return x->samples[i] > y->samples[i] ? -1 : 1;
	return compare_names(x, y);
}

static void finish(struct tally *t)
{
	t->totals = xcalloc(t->nevents + 1, sizeof *t->totals);
	for (size_t i = 0; i < t->rows.n; i++) {
		t->rows.p[i].samples = t->counts.p + i * t->nevents;
		for (size_t j = 0; j < t->nevents; j++)
			t->totals[j] += t->rows.p[i].samples[j];
	}
	if (t->rows.n)
		qsort_r(t->rows.p, t->rows.n, sizeof *t->rows.p, compare_rows, t);
}

int tally_create(struct selection *sel, enum tally_by by, const char *procedure, struct tally **out,
	struct err *e)
{
	const struct selected_event *events;
	struct tally *t;
	int rc;

	if (procedure && by != TALLY_PROCEDURE && by != TALLY_LINE)
		return err_set(e, -EINVAL,
			"samples are kept by procedure only for the views by procedure and by "
			"line");
	t = xcalloc(1, sizeof *t);
	t->sel = sel;
	t->by = by;
	t->pattern = procedure;
	t->nevents = selection_events(sel, &events);
	if (by == TALLY_PROCEDURE)
		rc = tally_procedures(t, e);
	else if (by == TALLY_LINE)
		rc = tally_lines(t, e);
	else
		rc = tally_totals(t, e);
	if (rc) {
		tally_destroy(t);
		return rc;
	}
	finish(t);
	*out = t;
	return 0;
}

void tally_destroy(struct tally *t)
{
	if (!t)
		return;
	vec_deinit(&t->rows);
	vec_deinit(&t->counts);
	free(t->totals);
	strtab_deinit(&t->names);
	arena_deinit(&t->memory);
	free(t);
}

size_t tally_rows(const struct tally *t, const struct tally_row **out)
{
	*out = t->rows.p;
	return t->rows.n;
}

uint64_t tally_total(const struct tally *t, size_t event)
{
	return t->totals[event];
}

static int compare_by_event(const void *a, const void *b, void *arg)
{
	const struct tally_row *x = *(const struct tally_row *const *)a;
	const struct tally_row *y = *(const struct tally_row *const *)b;
	size_t event = *(const size_t *)arg;

	if (x->samples[event] != y->samples[event])
		return x->samples[event] > y->samples[event] ? -1 : 1;
	return compare_names(x, y);
}

size_t tally_rows_by(const struct tally *t, size_t event, const struct tally_row ***out)
{
	const struct tally_row **list = xmalloc((t->rows.n + 1) * sizeof *list);
	size_t n = 0;

	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.p[i].samples[event])
			list[n++] = &t->rows.p[i];
	qsort_r(list, n, sizeof *list, compare_by_event, &event);
	*out = list;
	return n;
}
