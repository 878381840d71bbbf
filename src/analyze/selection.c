#include "analyze/selection.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct event_id {
	int64_t id;
	int index;
};

struct selection {
	struct store *store;
	struct store_filter filter;
	struct arena memory;
	VEC(struct selected_event) events;
	VEC(struct event_id) event_ids;
	VEC(struct selected_image) images;
	bool all_events;
};

static int compare_ids(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_event_ids(const void *a, const void *b)
{
	return compare_ids(((const struct event_id *)a)->id, ((const struct event_id *)b)->id);
}

static int compare_images(const void *a, const void *b)
{
	return compare_ids(
		((const struct selected_image *)a)->id, ((const struct selected_image *)b)->id);
}

/* ---- events ---- */

static int event_named(const struct selection *sel, const char *name)
{
	for (size_t i = 0; i < sel->events.n; i++)
		if (!strcmp(sel->events.p[i].name, name))
			return (int)i;
	return -1;
}

static struct selected_event *add_event(struct selection *sel, const char *name)
{
	struct selected_event *ev = vec_add(&sel->events);

	*ev = (struct selected_event){.name = arena_strdup(&sel->memory, name)};
	return ev;
}

static bool epoch_selected(const struct store_filter *f, int64_t epoch)
{
	for (size_t i = 0; i < f->nepochs; i++)
		if (f->epochs[i] == epoch)
			return true;
	return !f->nepochs;
}

static int take_event(void *arg, const struct store_event *ev)
{
	struct selection *sel = arg;
	int index = event_named(sel, ev->name);

	if (!epoch_selected(&sel->filter, ev->epoch))
		return 0;
	if (index < 0 && sel->all_events && strcmp(ev->unit, STORE_COUNTED)) {
		index = (int)sel->events.n;
		add_event(sel, ev->name);
	}
	if (index >= 0) {
		*vec_add(&sel->event_ids) = (struct event_id){ev->id, index};
		sel->events.p[index].clock = !strcmp(ev->unit, "ns");
	}
	return 0;
}

static void take_machine(
	struct selected_event *to, const struct store_event *ev, double had, double more)
{
	if (ev->skid_share > 0 && (more >= had || to->skid_share == 0)) {
		to->skid = ev->skid;
		to->skid_share = ev->skid_share;
	}
	if (ev->cycles_per_ns > 0 && (more >= had || to->cycles_per_ns == 0))
		to->cycles_per_ns = ev->cycles_per_ns;
}

/* Sums over epochs; periods and scales are means by the number of samples. */
static int take_account(void *arg, const struct store_event *ev, const struct store_account *a)
{
	struct selection *sel = arg;
	int index = selection_event(sel, ev->id);
	struct selected_event *to;
	double had, more;

	if (index < 0)
		return 0;
	to = &sel->events.p[index];
	had = (double)(to->account.attributed + to->account.unknown);
	more = (double)(a->attributed + a->unknown);
	take_machine(to, ev, had, more);
	if (had + more > 0) {
		to->period = (to->period * had + ev->period * more) / (had + more);
		to->account.scale = (to->account.scale * had + a->scale * more) / (had + more);
	} else {
		to->period = ev->period;
		to->account.scale = a->scale;
	}
	to->account.attributed += a->attributed;
	to->account.unknown += a->unknown;
	to->account.lost += a->lost;
	to->account.throttled += a->throttled;
	to->account.missed += a->missed;
	to->account.expected += a->expected;
	return 0;
}

static int note_name(void *arg, const struct store_event *ev)
{
	strtab_add(arg, ev->name);
	return 0;
}

static int no_such_event(struct selection *sel, const char *name, struct err *e)
{
	struct strtab names = {0};
	struct buf text = {0};
	int rc = store_events(sel->store, note_name, &names, e);

	for (size_t i = 0; i < names.n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", names.strings[i]);
	if (!rc)
		rc = err_set(e, -ENOENT, "event '%s' was not sampled; the database has: %s", name,
			text.n ? buf_cstr(&text) : "none");
	buf_deinit(&text);
	strtab_deinit(&names);
	return rc;
}

static int load_events(struct selection *sel, const struct selection_options *o, struct err *e)
{
	int rc;

	sel->all_events = !o->nevents;
	if (o->first)
		add_event(sel, o->first);
	for (size_t i = 0; i < o->nevents; i++)
		if (event_named(sel, o->events[i]) < 0)
			add_event(sel, o->events[i]);
	if ((rc = store_events(sel->store, take_event, sel, e)))
		return rc;
	vec_sort(&sel->event_ids, compare_event_ids);
	for (size_t i = 0; i < sel->events.n; i++) {
		bool there = false;
		vec_each (id, &sel->event_ids)
			there |= id->index == (int)i;
		if (!there)
			return no_such_event(sel, sel->events.p[i].name, e);
	}
	return store_accounts(sel->store, &sel->filter, take_account, sel, e);
}

/* ---- images ---- */

static int take_image(void *arg, const struct store_image *im)
{
	struct selection *sel = arg;
	struct segment *segments = NULL;

	if (im->nsegments) {
		segments = arena_alloc(&sel->memory, im->nsegments * sizeof *segments);
		memcpy(segments, im->segments, im->nsegments * sizeof *segments);
	}
	*vec_add(&sel->images) = (struct selected_image){
		.id = im->id,
		.kind = im->kind,
		.identity = im->identity,
		.path = arena_strdup(&sel->memory, im->path),
		.segments = segments,
		.nsegments = im->nsegments,
	};
	return 0;
}

static int load(struct selection *sel, const struct selection_options *o, struct err *e)
{
	int rc = load_events(sel, o, e);

	if (!rc)
		rc = store_images(sel->store, take_image, sel, e);
	vec_sort(&sel->images, compare_images);
	return rc;
}

int selection_create(
	struct store *s, const struct selection_options *o, struct selection **out, struct err *e)
{
	struct selection *sel = xcalloc(1, sizeof *sel);
	int rc;

	sel->store = s;
	sel->filter = o->filter;
	sel->filter.event = NULL;
	sel->filter.type = &blob_pc;
	if ((rc = load(sel, o, e))) {
		selection_destroy(sel);
		return rc;
	}
	*out = sel;
	return 0;
}

void selection_destroy(struct selection *sel)
{
	if (!sel)
		return;
	vec_each (im, &sel->images) {
		code_map_deinit(&im->map);
		if (im->loaded)
			store_procedures_free(&im->procedures);
	}
	vec_deinit(&sel->images);
	vec_deinit(&sel->events);
	vec_deinit(&sel->event_ids);
	arena_deinit(&sel->memory);
	free(sel);
}

struct store *selection_store(const struct selection *sel)
{
	return sel->store;
}

const struct store_filter *selection_filter(const struct selection *sel)
{
	return &sel->filter;
}

size_t selection_events(const struct selection *sel, const struct selected_event **out)
{
	*out = sel->events.p;
	return sel->events.n;
}

size_t selection_images(const struct selection *sel, struct selected_image **out)
{
	*out = sel->images.p;
	return sel->images.n;
}

struct selected_image *selection_image(const struct selection *sel, int64_t id)
{
	struct selected_image key = {.id = id};

	return sel->images.n
		       ? bsearch(&key, sel->images.p, sel->images.n, sizeof key, compare_images)
		       : NULL;
}

int selection_event(const struct selection *sel, int64_t id)
{
	struct event_id key = {.id = id};
	const struct event_id *found;

	if (!sel->event_ids.n)
		return -1;
	found = bsearch(&key, sel->event_ids.p, sel->event_ids.n, sizeof key, compare_event_ids);
	return found ? found->index : -1;
}

int selection_load(struct selection *sel, struct selected_image *im, struct err *e)
{
	int rc;

	if (im->loaded)
		return 0;
	if ((rc = store_procedures(sel->store, im->id, &im->procedures, e)))
		return rc;
	im->loaded = true;
	code_map_init(&im->map, im->procedures.p, im->procedures.n);
	return 0;
}

/* ---- profiles ---- */

struct walk {
	struct selection *sel;
	const struct selected_image *only; /* NULL: all images */
	selection_fn *fn;
	void *arg;
	struct err *e;
	int rc;
};

static int visit(void *arg, const struct store_profile *p)
{
	struct walk *w = arg;
	int event = selection_event(w->sel, p->event);
	struct selected_image *im = selection_image(w->sel, p->image);
	struct pc_reader pcs;

	if (event < 0 || !im || (w->only && w->only != im))
		return 0;
	w->rc = pc_reader_init(&pcs, p->data, p->size);
	if (!w->rc)
		w->rc = w->fn(w->arg, im, (size_t)event, &pcs, w->e);
	if (w->rc == -EBADMSG)
		err_set(w->e, w->rc, "a profile of %s is damaged; 'culprit db check' tells more",
			im->path);
	return w->rc;
}

int selection_profiles(struct selection *sel, selection_fn *fn, void *arg, struct err *e)
{
	struct walk w = {.sel = sel, .fn = fn, .arg = arg, .e = e};
	int rc = store_profiles(sel->store, &sel->filter, visit, &w, e);

	return rc < 0 ? rc : w.rc;
}

/* A glob that matches just this text. */
static void escape_glob(const char *text, struct buf *out)
{
	for (; *text; text++)
		buf_printf(out, strchr("*?[", *text) ? "[%c]" : "%c", *text);
}

/* The filter spares the other images' unpacking; who visits decides. */
static int profiles_of(struct selection *sel, const struct selected_image *im,
	const struct blob_type *type, store_profile_fn *fn, void *arg, struct err *e)
{
	struct store_filter filter = sel->filter;
	struct buf glob = {0};
	int rc;

	escape_glob(im->path, &glob);
	filter.image = buf_cstr(&glob);
	filter.type = type;
	rc = store_profiles(sel->store, &filter, fn, arg, e);
	buf_deinit(&glob);
	return rc;
}

int selection_profiles_of(struct selection *sel, const struct selected_image *im, selection_fn *fn,
	void *arg, struct err *e)
{
	struct walk w = {.sel = sel, .only = im, .fn = fn, .arg = arg, .e = e};
	int rc = profiles_of(sel, im, &blob_pc, visit, &w, e);

	return rc < 0 ? rc : w.rc;
}

struct blob_walk {
	struct selection *sel;
	const struct selected_image *only;
	selection_blob_fn *fn;
	void *arg;
	struct err *e;
};

static int visit_blob(void *arg, const struct store_profile *p)
{
	struct blob_walk *w = arg;
	int rc;

	if (p->image != w->only->id || selection_event(w->sel, p->event) < 0)
		return 0;
	rc = w->fn(w->arg, p);
	if (rc == -EBADMSG)
		err_set(w->e, rc, "a profile of %s (%s) is damaged; 'culprit db check' tells more",
			w->only->path, p->type->name);
	return rc;
}

int selection_blobs_of(struct selection *sel, const struct selected_image *im,
	const struct blob_type *type, selection_blob_fn *fn, void *arg, struct err *e)
{
	struct blob_walk w = {.sel = sel, .only = im, .fn = fn, .arg = arg, .e = e};

	return profiles_of(sel, im, type, visit_blob, &w, e);
}

const char *selected_image_name(const struct selected_image *im)
{
	const char *slash = strrchr(im->path, '/');

	if (im->kind == IMAGE_UNKNOWN)
		return "(unknown)";
	return slash && slash[1] ? slash + 1 : im->path;
}
