/* culprit top --json. */
#include "cmd/top_view.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>

void top_put_image(struct json *j, const struct selected_image *im)
{
	char id[IMAGE_ID_TEXT];

	json_kstr(j, "image", im ? im->path : NULL);
	json_kstr(j, "build_id", im && im->identity.size ? image_id_text(&im->identity, id) : NULL);
}

static void put_procedure(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "procedure", r->name);
	if (r->known) {
		json_kaddr(j, "start", r->start);
	} else {
		json_kstr(j, "start", NULL);
	}
	top_put_image(j, r->image);
}

static void put_image(struct json *j, const struct tally_row *r)
{
	top_put_image(j, r->image);
}

static void put_started(struct json *j, const struct tally_row *r)
{
	if (r->started)
		json_kdouble(j, "started", (double)r->started / 1e6);
	else
		json_kstr(j, "started", NULL);
}

static void put_process(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "process", r->name);
	json_kint(j, "pid", r->pid);
	put_started(j, r);
}

static void put_thread(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "thread", r->name);
	json_kint(j, "tid", r->tid);
	json_kstr(j, "process", r->process);
	json_kint(j, "pid", r->pid);
	put_started(j, r);
}

static void put_comm(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "comm", r->name);
}

static void put_line(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "file", r->known ? r->name : NULL);
	if (r->known) {
		json_kint(j, "line", r->line);
	} else {
		json_kstr(j, "line", NULL);
		json_kstr(j, "reason", r->name);
	}
	top_put_image(j, r->image);
}

static void put_cgroup(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "cgroup", r->known ? r->name : NULL);
}

static void put_cpu(struct json *j, const struct tally_row *r)
{
	json_kint(j, "cpu", r->cpu);
}

/* The keys of the views, by what they are of. */
static void (*const keys[])(struct json *j, const struct tally_row *r) = {
	[TALLY_PROCEDURE] = put_procedure,
	[TALLY_IMAGE] = put_image,
	[TALLY_PROCESS] = put_process,
	[TALLY_THREAD] = put_thread,
	[TALLY_COMM] = put_comm,
	[TALLY_LINE] = put_line,
	[TALLY_CGROUP] = put_cgroup,
	[TALLY_CPU] = put_cpu,
};

void top_put_event(struct json *j, const struct selected_event *ev, uint64_t samples)
{
	json_open(j, '{');
	json_kstr(j, "name", ev->name);
	json_kdouble(j, "period", ev->period);
	json_kuint(j, "samples", samples);
	json_kuint(j, "unknown", ev->account.unknown);
	json_kuint(j, "lost", ev->account.lost);
	json_kuint(j, "throttled", ev->account.throttled);
	json_kuint(j, "missed", ev->account.missed);
	json_kuint(j, "attributed", ev->account.attributed);
	json_kdouble(j, "expected", ev->account.expected);
	json_kdouble(j, "scale", ev->account.scale);
	json_close(j);
}

static void put_rows(struct json *j, const struct top *t, size_t event)
{
	uint64_t total = tally_total(t->tally, event), so_far = 0;
	const struct tally_row **rows;
	size_t n = tally_rows_by(t->tally, event, &rows);

	for (size_t i = 0; i < n && i < t->report.rows; i++) {
		double share = share_of(rows[i]->samples[event], total);

		if (share < t->report.min_share)
			break;
		so_far += rows[i]->samples[event];
		json_open(j, '{');
		json_kstr(j, "event", t->report.event[event].name);
		json_kuint(j, "samples", rows[i]->samples[event]);
		json_kshare(j, "share", share);
		json_kshare(j, "cumulative", share_of(so_far, total));
		keys[t->view->by](j, rows[i]);
		json_close(j);
	}
	free(rows);
}

void top_print_json(const struct top *t)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "events");
	json_open(&j, '[');
	for (size_t i = 0; i < t->report.nevents; i++)
		top_put_event(&j, &t->report.event[i], tally_total(t->tally, i));
	json_close(&j);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < t->report.nevents; i++)
		put_rows(&j, t, i);
	json_close(&j);
	json_close(&j);
}
