#include "cmd/runs.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/shorten.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- what is on the command line ---- */

int run_set_init(struct run_set *s, struct report *r, struct err *e)
{
	*s = (struct run_set){.report = r};
	if (r->events.n > 1)
		return err_set(e, -EINVAL, "runs are compared by one event: give -e one name");
	s->runs = runs_create(r->events.n ? r->events.p[0] : NULL);
	return 0;
}

void run_set_deinit(struct run_set *s)
{
	runs_destroy(s->runs);
	vec_each (source, &s->sources) {
		report_deinit(*source);
		free(*source);
	}
	vec_deinit(&s->sources);
	arena_deinit(&s->memory);
}

/* The same filters on another database. */
static int open_source(
	struct run_set *s, const char *path, const char *epochs, struct report **out, struct err *e)
{
	struct report *from = xcalloc(1, sizeof *from);

	*vec_add(&s->sources) = from;
	from->input = *path ? arena_strdup(&s->memory, path) : report_default_input();
	from->filter = s->report->filter;
	if (epochs && parse_epochs(epochs, &from->epochs))
		return err_set(e, -EINVAL,
			"%s: epochs are ids (\"3\", \"2-4\", \"last\"), not '%s'; 'culprit db ls' "
			"lists them",
			from->input, epochs);
	if (!epochs)
		vec_each (id, &s->report->epochs)
			*vec_add(&from->epochs) = *id;
	*out = from;
	return report_open(from, &from->store, e);
}

/* ---- epochs ---- */

struct epoch_walk {
	const struct run_set *set;
	const struct report *from;
	epoch_list *found;
};

static bool has_event(const char *events, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	for (; name && *events; events += strcspn(events, ",")) {
		events += *events == ',';
		if (!strncmp(events, name, n) && (!events[n] || events[n] == ','))
			return true;
	}
	return !name;
}

/* Those that could not have a sample of what is selected are no runs of it. */
static int note_epoch(void *arg, const struct store_epoch *ep)
{
	struct epoch_walk *w = arg;
	const struct store_filter *f = &w->from->filter;

	if (ep->samples && has_event(ep->events, runs_event(w->set->runs)) &&
		(!f->t0 || !ep->ended || ep->ended > f->t0) && (!f->t1 || ep->started < f->t1))
		*vec_add(w->found) = ep->id;
	return 0;
}

static int add_whole(struct run_set *s, struct report *from, const char *epochs, struct err *e)
{
	_cleanup_free_ char *name =
		epochs ? xasprintf("%s:%s", from->input, epochs) : xstrdup(from->input);
	int rc = runs_add(s->runs, from->store, &from->filter, name, e);

	s->n += !rc;
	return rc;
}

static int add_epochs(struct run_set *s, struct report *from, struct err *e)
{
	epoch_list ids = {0};
	struct epoch_walk w = {s, from, &ids};
	struct store_filter filter = from->filter;
	bool whole;
	int rc = 0;

	vec_each (id, &from->epochs)
		*vec_add(&ids) = *id;
	if (!ids.n)
		rc = store_epochs(from->store, note_epoch, &w, e);
	/* An only epoch is the database; where there is none, that is said in other words. */
	whole = !from->epochs.n && ids.n <= 1;
	if (!rc && whole)
		rc = add_whole(s, from, NULL, e);
	for (size_t i = 0; i < ids.n && !whole && !rc; i++) {
		_cleanup_free_ char *name = xasprintf("%s:%" PRId64, from->input, ids.p[i]);

		filter.epochs = &ids.p[i];
		filter.nepochs = 1;
		rc = runs_add(s->runs, from->store, &filter, name, e);
		s->n += !rc;
	}
	vec_deinit(&ids);
	return rc;
}

static int add_one(
	struct run_set *s, const char *path, const char *epochs, bool by_epoch, struct err *e)
{
	struct report *from = NULL;
	int rc = open_source(s, path, epochs, &from, e);

	if (rc)
		return rc;
	return by_epoch ? add_epochs(s, from, e) : add_whole(s, from, epochs, e);
}

static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789-");

	return n && (!text[n] || text[n] == ',');
}

int run_set_add(struct run_set *s, const char *word, bool by_epoch, struct err *e)
{
	const char *end = strchrnul(word, ','), *colon;
	_cleanup_free_ char *piece = NULL;
	int rc;

	if (!access(word, F_OK))
		return add_one(s, word, NULL, by_epoch, e);
	/* "a.db:2,5" is two epochs of one file. */
	colon = memrchr(word, ':', (size_t)(end - word));
	while (colon && *end && is_number(end + 1))
		end = strchrnul(end + 1, ',');
	piece = xstrndup(word, (size_t)(end - word));
	if (colon && access(piece, F_OK)) {
		char *epochs = piece + (colon - word);

		*epochs++ = 0;
		rc = add_one(s, piece, epochs, by_epoch, e);
	} else {
		rc = add_one(s, piece, NULL, by_epoch, e);
	}
	return !rc && *end ? run_set_add(s, end + 1, by_epoch, e) : rc;
}

/* ---- rows ---- */

void run_place_keys(struct json *j, const struct run_row *row)
{
	if (row->known)
		json_kaddr(j, "start", row->start);
	else
		json_kstr(j, "start", NULL);
	json_kstr(j, "was", row->was);
}

void run_name_cells(struct table *t, const struct run_row *row, size_t columns)
{
	enum { LEAST = 12 };
	size_t width = (size_t)term_width(), left, path = text_columns(row->image);
	_cleanup_free_ char *label =
		row->was ? xasprintf("%s (was %s)", row->name, row->was) : xstrdup(row->name);
	_cleanup_free_ char *name = NULL, *image = NULL;

	left = width > columns + 2 * LEAST ? width - columns : 2 * LEAST;
	path = path < left / 2 ? path : left / 2;
	name = shorten_name(label, width ? left - path - 2 : 0);
	image = shorten_path(row->image, width ? path : 0);
	table_cell(t, "%s", name);
	table_cell(t, "%s", image);
}
