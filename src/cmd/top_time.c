/* culprit top --by time: when the samples were taken, of the first event. */
#include "analyze/timeline.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/top_view.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { PARTS_APART = 8, SLICES_TEXT = 24, SLICES_JSON = 200, BAR = 40 };

struct over_time {
	const struct report *report;
	struct timeline *timeline;
	const struct timeline_part *parts;
	size_t nparts, slices;
	uint64_t total;
};

/* ---- JSON ---- */

static void put_part(struct json *j, const struct over_time *o, const struct timeline_part *p)
{
	json_open(j, '{');
	json_kstr(j, "name", p->name);
	top_put_image(j, p->image);
	if (p->start)
		json_kaddr(j, "start", p->start);
	json_kuint(j, "samples", p->samples);
	json_kshare(j, "share", share_of(p->samples, o->total));
	json_close(j);
}

static void put_slice(struct json *j, const struct over_time *o, size_t slice)
{
	double sum = 0;

	for (size_t i = 0; i < o->nparts; i++)
		sum += timeline_weight(o->timeline, slice, i);
	json_open(j, '{');
	json_kdouble(j, "from", (double)timeline_time(o->timeline, slice) / 1e6);
	json_kdouble(j, "to", (double)timeline_time(o->timeline, slice + 1) / 1e6);
	json_kdouble(j, "samples", sum);
	json_key(j, "parts");
	json_open(j, '[');
	for (size_t i = 0; i < o->nparts; i++)
		json_double(j, timeline_weight(o->timeline, slice, i));
	json_close(j);
	json_close(j);
}

static void print_json(const struct over_time *o)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "events");
	json_open(&j, '[');
	for (size_t i = 0; i < o->report->nevents; i++)
		top_put_event(&j, &o->report->event[i],
			o->report->event[i].account.attributed +
				o->report->event[i].account.unknown);
	json_close(&j);
	json_key(&j, "parts");
	json_open(&j, '[');
	for (size_t i = 0; i < o->nparts; i++)
		put_part(&j, o, &o->parts[i]);
	json_close(&j);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < o->slices; i++)
		put_slice(&j, o, i);
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static void print_when(struct table *t, int64_t when, bool day)
{
	time_t seconds = when / 1000000;
	struct tm tm;
	char text[32];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof text, day ? "%F %T" : "%T", &tm);
	table_cell(t, "%s.%03d", text, (int)(when % 1000000 / 1000));
}

static void print_rows(const struct over_time *o)
{
	struct table *t = table_create("<><<");
	_cleanup_free_ double *sums = xcalloc(o->slices, sizeof *sums);
	double most = 0;
	int64_t day = 86400 * INT64_C(1000000);
	bool days = timeline_time(o->timeline, o->slices) - timeline_time(o->timeline, 0) > day;

	for (size_t i = 0; i < o->slices; i++) {
		for (size_t p = 0; p < o->nparts; p++)
			sums[i] += timeline_weight(o->timeline, i, p);
		most = sums[i] > most ? sums[i] : most;
	}
	table_cell(t, "from");
	table_cell(t, "%s", o->report->nevents ? o->report->event[0].name : "samples");
	table_cell(t, " ");
	table_cell(t, "most of it");
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < o->slices; i++) {
		size_t heaviest = 0;

		for (size_t p = 0; p < o->nparts; p++)
			if (timeline_weight(o->timeline, i, p) >
				timeline_weight(o->timeline, i, heaviest))
				heaviest = p;
		print_when(t, timeline_time(o->timeline, i), days);
		table_cell(t, "%.0f", sums[i]);
		table_cell(t, "%.*s", (int)(most > 0 ? BAR * sums[i] / most + 0.5 : 0),
			"########################################");
		table_cell(t, "%s",
			sums[i] < 0.5             ? ""
			: o->parts[heaviest].name ? o->parts[heaviest].name
						  : "(others)");
		table_row(t);
	}
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_text(const struct over_time *o)
{
	for (size_t i = 0; i < o->report->nevents && i < 1; i++) {
		printf("Total samples for event type %s = %" PRIu64 "\n", o->report->event[i].name,
			o->total);
		top_print_account(&o->report->event[i], stdout);
	}
	if (o->slices)
		print_rows(o);
	else
		printf("no samples\n");
	report_epochs_note(o->report);
}

/* ---- the whole ---- */

int top_time(struct report *r, size_t slices, const char *of, struct err *e)
{
	struct over_time o = {.report = r};
	struct timeline_options options = {.parts = PARTS_APART,
		.slices = slices    ? slices
			  : r->json ? SLICES_JSON
				    : SLICES_TEXT,
		.of = of && !strcmp(of, "procedure") ? TIMELINE_PROCEDURES : TIMELINE_IMAGES};
	int rc = timeline_create(r->sel, &options, &o.timeline, e);

	if (rc)
		return rc;
	o.slices = timeline_slices(o.timeline);
	o.nparts = timeline_parts(o.timeline, &o.parts);
	for (size_t i = 0; i < o.nparts; i++)
		o.total += o.parts[i].samples;
	report_pager(r);
	if (r->json)
		print_json(&o);
	else
		print_text(&o);
	timeline_destroy(o.timeline);
	return 0;
}
