#include "export/stacks_internal.h"

#include "analyze/context_tree.h"
#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct frame_key {
	uint64_t image; /* its id, 0: unknown */
	uint64_t start, address;
	uint32_t name, exact;
};

struct frame_record {
	struct frame_key key;
	uint64_t number;
};

/* A process of the store, and the group that it is in. */
struct process_record {
	int64_t id;
	uint64_t group;
};

struct group_key {
	uint32_t name;
	int32_t pid;
};

struct group_record {
	struct group_key key;
	uint64_t number;
};

static uint32_t number_of(struct stacks *s, const char *text)
{
	return strtab_add(&s->texts, text);
}

const char *stacks_keep(struct stacks *s, const char *text)
{
	uint32_t number = text ? number_of(s, text) : 0;

	return text ? s->texts.strings[number] : NULL; /* adding may have moved the list */
}

/* ---- processes ---- */

struct process_walk {
	struct stacks *s;
	struct hmap groups; /* struct group_record */
};

static int take_process(void *arg, const struct store_process *p)
{
	struct process_walk *w = arg;
	struct group_key key = {number_of(w->s, p->comm), p->pid};
	bool fresh;
	struct group_record *g = hmap_put(&w->groups, &key, &fresh);
	struct process_record *r = hmap_put(&w->s->processes, &p->id, NULL);

	if (fresh) {
		g->number = w->s->groups.n;
		*vec_add(&w->s->groups) = (struct stack_group){
			.process = w->s->texts.strings[key.name], .pid = p->pid};
	}
	r->group = g->number;
	return 0;
}

/* Processes of one name and id in several epochs or control groups are one group. */
static int find_groups(struct stacks *s, struct err *e)
{
	struct process_walk w = {.s = s};
	int rc;

	hmap_init(&w.groups, sizeof(struct group_record), sizeof(struct group_key));
	rc = store_processes(selection_store(s->sel), take_process, &w, e);
	hmap_deinit(&w.groups);
	return rc;
}

size_t stacks_group(void *arg, int64_t process)
{
	const struct process_record *r = hmap_get(&((struct stacks *)arg)->processes, &process);

	return r ? r->group : 0; /* the store keeps no profile without its process */
}

/* ---- frames ---- */

uint32_t stacks_frame(struct stacks *s, const struct stack_frame *f)
{
	struct frame_key key = {.image = f->image ? (uint64_t)f->image->id : 0,
		.start = f->start,
		.address = f->address,
		.name = number_of(s, f->name),
		.exact = f->exact};
	bool fresh;
	struct frame_record *r = hmap_put(&s->index, &key, &fresh);

	if (fresh) {
		r->number = s->frames.n;
		*vec_add(&s->frames) = *f;
		s->frames.p[r->number].name = s->texts.strings[key.name];
	}
	return (uint32_t)r->number;
}

/* ---- contexts ---- */

static uint32_t frame_of(struct stacks *s, const struct context_procedure *p, uint64_t site)
{
	return stacks_frame(s, &(struct stack_frame){.image = p->image,
				       .name = p->name,
				       .start = p->start,
				       .address = site ? site : p->start,
				       .exact = site != 0});
}

/* Whether some procedures are left out. */
static bool is_narrowed(const struct stacks *s)
{
	return s->options.procedure || selection_filter(s->sel)->image;
}

static void put_values(const struct stacks *s, const struct context_tree *t,
	const struct context_node *n, double *to)
{
	const struct call_node *from = call_tree_node(context_tree_calls(t), n->source);
	const struct metric_names *names = call_tree_metrics(context_tree_calls(t));

	if (!n->own && is_narrowed(s))
		return; /* it is not wanted */
	to[0] = (double)from->count;
	for (size_t i = 1; i < s->measures.n; i++) {
		int which = metric_find(names, s->measures.p[i].name);

		to[i] = which < 0 ? 0 : (double)from->metrics[which];
	}
}

static void take_tree(struct stacks *s, const struct context_tree *t)
{
	const struct context_procedure *procedures;
	const struct context_node *nodes;
	size_t n = context_tree_nodes(t, &nodes), first = s->nodes.n;

	context_tree_procedures(t, &procedures);
	for (size_t i = 0; i < n; i++) {
		struct stack_node to = {.parent = STACK_NONE,
			.depth = nodes[i].depth,
			.frame = frame_of(s, &procedures[nodes[i].procedure], 0),
			.caller = STACK_NONE};

		if (nodes[i].parent != CONTEXT_NONE) {
			uint32_t procedure = nodes[nodes[i].parent].procedure;

			to.parent = (uint32_t)first + nodes[i].parent;
			to.caller = frame_of(s, &procedures[procedure], nodes[i].site);
		}
		put_values(s, t, &nodes[i], to.value);
		*vec_add(&s->nodes) = to;
	}
}

/* Of counted contexts all trees' metrics; of sampled ones how many, and what that stands for. */
static void find_measures(struct stacks *s, struct context_tree *const *trees)
{
	const struct selected_event *events;
	bool counted = s->event < 0;

	selection_events(s->sel, &events);
	*vec_add(&s->measures) =
		(struct stack_measure){counted ? CONTEXT_BY_CALLS : CONTEXT_BY_SAMPLES, "count"};
	if (!counted) {
		const struct selected_event *ev = &events[s->event];

		*vec_add(&s->measures) = (struct stack_measure){
			ev->clock ? "cpu" : ev->name, ev->clock ? "nanoseconds" : "count"};
		return;
	}
	for (size_t i = 0; i < s->groups.n && trees; i++) {
		const struct metric_names *names =
			trees[i] ? call_tree_metrics(context_tree_calls(trees[i])) : NULL;

		for (uint32_t k = 0; names && k < names->n; k++) {
			bool there = s->measures.n >= STACK_MEASURES_MOST;

			vec_each (m, &s->measures)
				there |= !strcmp(m->name, names->name[k]);
			if (!there)
				*vec_add(&s->measures) = (struct stack_measure){
					stacks_keep(s, names->name[k]), "count"};
		}
	}
}

static int event_named(const struct stacks *s, const char *name)
{
	const struct selected_event *events;
	size_t n = selection_events(s->sel, &events);

	for (size_t i = 0; i < n && name; i++)
		if (!strcmp(events[i].name, name))
			return (int)i;
	return -1;
}

static void take_trees(struct stacks *s, struct context_tree **trees)
{
	s->contexts = true;
	s->event = -1;
	for (size_t i = 0; i < s->groups.n; i++)
		if (trees[i])
			s->event = event_named(s, context_tree_sampled(trees[i]));
	find_measures(s, trees);
	for (size_t i = 0; i < s->groups.n; i++) {
		s->groups.p[i].first = (uint32_t)s->nodes.n;
		if (trees[i])
			take_tree(s, trees[i]);
		s->groups.p[i].end = (uint32_t)s->nodes.n;
	}
}

static int take_contexts(struct stacks *s, struct err *e)
{
	_cleanup_free_ struct context_tree **trees = xcalloc(s->groups.n + 1, sizeof *trees);
	struct context_tree_options o = {
		.events = s->options.events, .procedure = s->options.procedure, .sites = true};
	int rc = context_tree_groups(s->sel, &o, stacks_group, s, trees, s->groups.n, e);

	if (!rc)
		take_trees(s, trees);
	for (size_t i = 0; i < s->groups.n; i++)
		context_tree_destroy(trees[i]);
	return rc;
}

/* ---- the whole ---- */

/* Samples that were taken without call paths, such as those of earlier epochs. */
static int find_rest(struct stacks *s, struct err *e)
{
	uint64_t all;
	double with = 0;
	int rc;

	if (s->event < 0 || is_narrowed(s))
		return 0;
	rc = stacks_count_samples(s, &all, e);
	vec_each (n, &s->nodes)
		with += n->value[0];
	if (!rc && (double)all > with)
		s->without = all - (uint64_t)with;
	return rc;
}

static int compare_groups(const void *a, const void *b)
{
	const struct stack_group *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void weigh(struct stacks *s)
{
	const struct selected_event *ev = stacks_event(s);

	vec_each (n, &s->nodes)
		if (ev)
			n->value[1] = n->value[0] * ev->period;
	vec_each (g, &s->groups)
		for (uint32_t i = g->first; i < g->end; i++)
			g->weight += s->nodes.p[i].value[0];
	vec_sort(&s->groups, compare_groups);
	while (s->groups.n && !(s->groups.p[s->groups.n - 1].weight > 0))
		s->groups.n--;
}

static bool is_selected(const struct store_filter *f, int64_t epoch)
{
	for (size_t i = 0; i < f->nepochs; i++)
		if (f->epochs[i] == epoch)
			return true;
	return !f->nepochs;
}

/* The time of all epochs that are selected, as far as it is selected. */
static int take_epoch(void *arg, const struct store_epoch *epoch)
{
	struct stacks *s = arg;
	const struct store_filter *f = selection_filter(s->sel);
	int64_t from = epoch->started > f->t0 ? epoch->started : f->t0;
	int64_t to = f->t1 && f->t1 < epoch->ended ? f->t1 : epoch->ended;

	if (!is_selected(f, epoch->id) || to <= from)
		return 0;
	s->t0 = !s->t0 || from < s->t0 ? from : s->t0;
	s->t1 = to > s->t1 ? to : s->t1;
	return 0;
}

static int fill(struct stacks *s, struct err *e)
{
	const struct selected_event *events;
	int rc = find_groups(s, e);

	if (!rc)
		rc = store_epochs(selection_store(s->sel), take_epoch, s, e);

	if (!rc && !s->options.flat)
		rc = take_contexts(s, e);
	if (!rc && s->contexts)
		rc = find_rest(s, e);
	if (rc == -ENOENT || (!rc && !s->contexts)) {
		s->event = selection_events(s->sel, &events) ? 0 : -1;
		find_measures(s, NULL);
		rc = s->event < 0 ? 0 : stacks_take_instructions(s, e);
	}
	if (!rc) {
		weigh(s);
		stacks_find_lines(s);
	}
	return rc;
}

int stacks_create(
	struct selection *sel, const struct stacks_options *o, struct stacks **out, struct err *e)
{
	struct stacks *s = xcalloc(1, sizeof *s);
	int rc;

	s->sel = sel;
	s->options = *o;
	s->event = -1;
	hmap_init(&s->index, sizeof(struct frame_record), sizeof(struct frame_key));
	hmap_init(&s->processes, sizeof(struct process_record), sizeof(int64_t));
	rc = fill(s, e);
	if (rc) {
		stacks_destroy(s);
		return rc;
	}
	*out = s;
	return 0;
}

void stacks_destroy(struct stacks *s)
{
	if (!s)
		return;
	hmap_deinit(&s->index);
	hmap_deinit(&s->processes);
	strtab_deinit(&s->texts);
	vec_deinit(&s->groups);
	vec_deinit(&s->nodes);
	vec_deinit(&s->frames);
	vec_deinit(&s->lines);
	vec_deinit(&s->measures);
	free(s);
}

size_t stacks_groups(const struct stacks *s, const struct stack_group **out)
{
	*out = s->groups.p;
	return s->groups.n;
}

size_t stacks_nodes(const struct stacks *s, const struct stack_node **out)
{
	*out = s->nodes.p;
	return s->nodes.n;
}

size_t stacks_frames(const struct stacks *s, const struct stack_frame **out)
{
	*out = s->frames.p;
	return s->frames.n;
}

size_t stacks_lines(const struct stacks *s, const struct inlined_line **out)
{
	*out = s->lines.p;
	return s->lines.n;
}

size_t stacks_measures(const struct stacks *s, const struct stack_measure **out)
{
	*out = s->measures.p;
	return s->measures.n;
}

const struct selected_event *stacks_event(const struct stacks *s)
{
	const struct selected_event *events;
	size_t n = selection_events(s->sel, &events);

	return s->event >= 0 && (size_t)s->event < n ? &events[s->event] : NULL;
}

bool stacks_are_contexts(const struct stacks *s)
{
	return s->contexts;
}

uint64_t stacks_without_context(const struct stacks *s)
{
	return s->without;
}

void stacks_time(const struct stacks *s, int64_t *from, int64_t *to)
{
	*from = s->t0;
	*to = s->t1;
}

static void describe_event(const struct selected_event *ev, struct strtab *lines)
{
	const struct store_account *a = &ev->account;
	_cleanup_free_ char *text =
		xasprintf("%s: %" PRIu64 " samples attributed, %" PRIu64 " unknown, %" PRIu64
			  " lost, %" PRIu64 " throttled, %" PRIu64 " missed",
			ev->name, a->attributed, a->unknown, a->lost, a->throttled, a->missed);

	strtab_add(lines, text);
}

void stacks_describe(const struct stacks *s, struct strtab *lines)
{
	const struct selected_event *ev = stacks_event(s);

	strtab_add(lines, "made by culprit " CULPRIT_VERSION);
	if (ev)
		describe_event(ev, lines);
	if (s->contexts)
		strtab_add(lines, ev ? "call paths: a frame is a procedure, not an instruction"
				     : "calling contexts as an edited program counted them");
	if (s->without) {
		_cleanup_free_ char *text = xasprintf(
			"%" PRIu64 " samples have no call path and are left out", s->without);

		strtab_add(lines, text);
	}
}
