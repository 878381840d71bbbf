#include "export/firefox.h"

#include "base/hmap.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "export/functions.h"
#include "export/stacks.h"

#include <inttypes.h>
#include <string.h>

#define FORMAT_VERSION 47 /* the viewer brings older ones up to date by itself */
#define LIBRARY        1  /* a type of resource */
#define NONE           UINT32_MAX
#define ADDRESS_MOST   (1ull << 53) /* what JavaScript can hold */

struct frame_row {
	uint64_t address;
	uint32_t func, depth; /* depth: how many functions it was inlined into */
	int line;
};

struct stack_row {
	uint32_t prefix, frame; /* prefix: NONE for a root */
};

/* The number that something of all stacks has in a thread. */
struct local {
	uint64_t all, number;
};

typedef VEC(const struct selected_image *) image_list;

/* The tables of a thread; numbers in them are its own. */
struct thread {
	const struct stacks *stacks;
	struct functions *functions;
	const struct hmap *libs; /* struct local, by image */
	struct strtab strings;
	struct hmap known_frames, known_funcs, known_resources; /* struct local */
	VEC(struct frame_row) frames;
	VEC(uint32_t) funcs;     /* of the functions */
	VEC(uint32_t) resources; /* of the libraries */
	VEC(struct stack_row) list;
	VEC(uint32_t) of_nodes; /* the stack of each node of the group */
	function_list some;
};

static uint64_t *local_of(struct hmap *m, uint64_t all, uint64_t next, bool *fresh)
{
	struct local *l = hmap_put(m, &all, fresh);

	if (*fresh)
		l->number = next;
	return &l->number;
}

/* ---- tables ---- */

static void add_resource(struct thread *t, const struct selected_image *im)
{
	const struct local *lib = hmap_get(t->libs, &(uint64_t){(uint64_t)(uintptr_t)im});
	bool fresh;

	if (!lib)
		return;
	local_of(&t->known_resources, lib->number, t->resources.n, &fresh);
	if (fresh)
		*vec_add(&t->resources) = (uint32_t)lib->number;
}

static uint32_t func_of(struct thread *t, uint32_t function)
{
	const struct function *all;
	bool fresh;
	uint32_t number = (uint32_t)*local_of(&t->known_funcs, function, t->funcs.n, &fresh);

	if (fresh) {
		functions_all(t->functions, &all);
		*vec_add(&t->funcs) = function;
		add_resource(t, all[function].image);
	}
	return number;
}

/* The first of the rows that a frame has, the outermost. */
static uint32_t rows_of(struct thread *t, uint32_t frame)
{
	const struct stack_frame *frames;
	const struct inlined_line *lines;
	bool fresh;
	uint32_t first = (uint32_t)*local_of(&t->known_frames, frame, t->frames.n, &fresh);

	if (!fresh)
		return first;
	stacks_frames(t->stacks, &frames);
	stacks_lines(t->stacks, &lines);
	t->some.n = 0;
	functions_of_frame(t->functions, frame, &t->some);
	for (uint32_t i = 0; i < t->some.n; i++) {
		const struct stack_frame *f = &frames[frame];
		struct frame_row row = {.address = f->address, .depth = i};

		row.func = func_of(t, t->some.p[i]);
		if (f->nlines)
			row.line = lines[f->line + f->nlines - 1 - i].line;
		*vec_add(&t->frames) = row;
	}
	return first;
}

/* A stack for each function of a node's frame; returns the innermost. */
static uint32_t stack_of(struct thread *t, uint32_t prefix, uint32_t frame)
{
	uint32_t first = rows_of(t, frame);
	const struct frame_row *rows = t->frames.p;

	for (uint32_t i = first; i == first || (i < t->frames.n && rows[i].depth); i++) {
		*vec_add(&t->list) = (struct stack_row){prefix, i};
		prefix = (uint32_t)t->list.n - 1;
	}
	return prefix;
}

static void fill(struct thread *t, const struct stack_group *g)
{
	const struct stack_node *nodes;

	stacks_nodes(t->stacks, &nodes);
	for (uint32_t i = g->first; i < g->end; i++) {
		uint32_t parent = nodes[i].parent;
		uint32_t prefix = parent == STACK_NONE ? NONE : t->of_nodes.p[parent - g->first];

		*vec_add(&t->of_nodes) = stack_of(t, prefix, nodes[i].frame);
	}
}

/* ---- columns ---- */

static void put_null(struct json *j)
{
	json_str(j, NULL);
}

static void put_or_null(struct json *j, int64_t v, bool known)
{
	if (known)
		json_int(j, v);
	else
		put_null(j);
}

/* A column whose values are all the same; NULL: null. */
static void put_same(struct json *j, const char *name, size_t n, const int64_t *v)
{
	json_key(j, name);
	json_open(j, '[');
	for (size_t i = 0; i < n; i++)
		put_or_null(j, v ? *v : 0, v != NULL);
	json_close(j);
}

static void put_falses(struct json *j, const char *name, size_t n)
{
	json_key(j, name);
	json_open(j, '[');
	for (size_t i = 0; i < n; i++)
		json_bool(j, false);
	json_close(j);
}

#define COLUMN(j, name, list, row, put) \
	do {                            \
		json_key(j, name);      \
		json_open(j, '[');      \
		vec_each (row, list)    \
			put;            \
		json_close(j);          \
	} while (0)

static const int64_t zero = 0;

static void put_frame_table(struct json *j, const struct thread *t)
{
	size_t n = t->frames.n;

	json_key(j, "frameTable");
	json_open(j, '{');
	COLUMN(j, "address", &t->frames, f,
		json_int(j, f->address < ADDRESS_MOST ? (int64_t)f->address : -1));
	COLUMN(j, "inlineDepth", &t->frames, f, json_uint(j, f->depth));
	put_same(j, "category", n, &zero);
	put_same(j, "subcategory", n, &zero);
	COLUMN(j, "func", &t->frames, f, json_uint(j, f->func));
	put_same(j, "nativeSymbol", n, NULL);
	put_same(j, "innerWindowID", n, &zero);
	put_same(j, "implementation", n, NULL);
	COLUMN(j, "line", &t->frames, f, put_or_null(j, f->line, f->line > 0));
	put_same(j, "column", n, NULL);
	json_kuint(j, "length", n);
	json_close(j);
}

static void put_resource(struct json *j, struct thread *t, const struct selected_image *im)
{
	const struct local *lib = hmap_get(t->libs, &(uint64_t){(uint64_t)(uintptr_t)im});
	const struct local *r = lib ? hmap_get(&t->known_resources, &lib->number) : NULL;

	json_int(j, r ? (int64_t)r->number : -1);
}

static void put_func_table(struct json *j, struct thread *t)
{
	const struct function *all;
	size_t n = t->funcs.n;

	functions_all(t->functions, &all);
	json_key(j, "funcTable");
	json_open(j, '{');
	COLUMN(j, "name", &t->funcs, f, json_uint(j, strtab_add(&t->strings, all[*f].name)));
	put_falses(j, "isJS", n);
	put_falses(j, "relevantForJS", n);
	COLUMN(j, "resource", &t->funcs, f, put_resource(j, t, all[*f].image));
	COLUMN(j, "fileName", &t->funcs, f,
		put_or_null(
			j, all[*f].file ? strtab_add(&t->strings, all[*f].file) : 0, all[*f].file));
	COLUMN(j, "lineNumber", &t->funcs, f, put_or_null(j, all[*f].line, all[*f].line > 0));
	put_same(j, "columnNumber", n, NULL);
	json_kuint(j, "length", n);
	json_close(j);
}

static void put_stack_table(struct json *j, const struct thread *t)
{
	json_key(j, "stackTable");
	json_open(j, '{');
	COLUMN(j, "frame", &t->list, s, json_uint(j, s->frame));
	COLUMN(j, "prefix", &t->list, s, put_or_null(j, s->prefix, s->prefix != NONE));
	put_same(j, "category", t->list.n, &zero);
	put_same(j, "subcategory", t->list.n, &zero);
	json_kuint(j, "length", t->list.n);
	json_close(j);
}

/* ---- samples ---- */

/* In milliseconds where a clock was sampled, else a sample is one. */
static double duration_of(const struct stacks *s, const struct stack_node *n)
{
	const struct selected_event *ev = stacks_event(s);

	return ev && ev->clock ? n->value[1] / 1e6 : n->value[0];
}

static void put_samples(struct json *j, const struct thread *t, const struct stack_group *g)
{
	const struct stack_measure *measures;
	size_t n = 0,
	       last = stacks_event(t->stacks) ? 0 : stacks_measures(t->stacks, &measures) - 1;
	const struct stack_node *nodes, *end;
	double time = 0;

	stacks_nodes(t->stacks, &nodes);
	end = nodes + g->end;
	json_key(j, "samples");
	json_open(j, '{');
	json_key(j, "stack");
	json_open(j, '[');
	for (const struct stack_node *at = nodes + g->first; at < end; at++)
		if (at->value[0] > 0) {
			json_uint(j, t->of_nodes.p[at - nodes - g->first]);
			n++;
		}
	json_close(j);
	json_key(j, "time");
	json_open(j, '[');
	for (const struct stack_node *at = nodes + g->first; at < end; at++)
		if (at->value[0] > 0) {
			json_double(j, time);
			time += duration_of(t->stacks, at);
		}
	json_close(j);
	json_key(j, "weight");
	json_open(j, '[');
	for (const struct stack_node *at = nodes + g->first; at < end; at++)
		if (at->value[0] > 0)
			json_double(j, at->value[last]);
	json_close(j);
	json_kstr(j, "weightType", "samples");
	json_kuint(j, "length", n);
	json_close(j);
}

/* ---- the other tables of a thread ---- */

static void put_empty(struct json *j, const char *name, const char *const *columns)
{
	json_key(j, name);
	json_open(j, '{');
	for (; *columns; columns++)
		put_same(j, *columns, 0, NULL);
	json_kint(j, "length", 0);
	json_close(j);
}

static void put_resource_table(struct json *j, struct thread *t, const image_list *libs)
{
	static const int64_t library = LIBRARY;

	json_key(j, "resourceTable");
	json_open(j, '{');
	COLUMN(j, "lib", &t->resources, r, json_uint(j, *r));
	COLUMN(j, "name", &t->resources, r,
		json_uint(j, strtab_add(&t->strings, selected_image_name(libs->p[*r]))));
	put_same(j, "host", t->resources.n, NULL);
	put_same(j, "type", t->resources.n, &library);
	json_kuint(j, "length", t->resources.n);
	json_close(j);
}

static void put_strings(struct json *j, const struct thread *t)
{
	json_key(j, "stringArray");
	json_open(j, '[');
	for (size_t i = 0; i < t->strings.n; i++)
		json_str(j, t->strings.strings[i]);
	json_close(j);
}

static void put_tables(struct json *j, struct thread *t, const image_list *libs)
{
	static const char *const markers[] = {
		"data", "name", "startTime", "endTime", "phase", "category", NULL};
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};

	put_empty(j, "markers", markers);
	put_empty(j, "nativeSymbols", symbols);
	put_stack_table(j, t);
	put_frame_table(j, t);
	put_func_table(j, t);
	put_resource_table(j, t, libs);
	put_strings(j, t); /* what the others refer to is known now */
}

static void put_thread(struct json *j, struct thread *t, const struct stack_group *g, size_t number)
{
	_cleanup_free_ char *pid = g->pid ? xasprintf("%d", g->pid) : xasprintf("all-%zu", number);

	json_kstr(j, "processType", "default");
	json_kint(j, "processStartupTime", 0);
	json_kstr(j, "processShutdownTime", NULL);
	json_kint(j, "registerTime", 0);
	json_kstr(j, "unregisterTime", NULL);
	json_key(j, "pausedRanges");
	json_open(j, '[');
	json_close(j);
	json_kstr(j, "name", g->process);
	json_kstr(j, "processName", g->process);
	json_kbool(j, "isMainThread", true);
	json_kstr(j, "pid", pid);
	json_kuint(j, "tid", g->pid ? (uint64_t)g->pid : number);
	put_samples(j, t, g);
}

static void put_group(struct json *j, const struct thread *model, const image_list *libs,
	const struct stack_group *g, size_t number)
{
	struct thread t = *model;

	hmap_init(&t.known_frames, sizeof(struct local), sizeof(uint64_t));
	hmap_init(&t.known_funcs, sizeof(struct local), sizeof(uint64_t));
	hmap_init(&t.known_resources, sizeof(struct local), sizeof(uint64_t));
	fill(&t, g);
	json_open(j, '{');
	put_thread(j, &t, g, number);
	put_tables(j, &t, libs);
	json_close(j);
	hmap_deinit(&t.known_frames);
	hmap_deinit(&t.known_funcs);
	hmap_deinit(&t.known_resources);
	strtab_deinit(&t.strings);
	vec_deinit(&t.frames);
	vec_deinit(&t.funcs);
	vec_deinit(&t.resources);
	vec_deinit(&t.list);
	vec_deinit(&t.of_nodes);
	vec_deinit(&t.some);
}

/* ---- the profile ---- */

/* The name that Breakpad's symbols have: the build-id as a GUID, and an age. */
static void put_breakpad_id(struct json *j, const struct image_id *id)
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	char text[40];

	for (size_t i = 0; i < sizeof order; i++)
		snprintf(text + 2 * i, 3, "%02X", order[i] < id->size ? id->bytes[order[i]] : 0);
	strcpy(text + 32, "0");
	json_kstr(j, "breakpadId", id->size ? text : "");
}

static void put_libs(struct json *j, const image_list *libs)
{
	char id[IMAGE_ID_TEXT];

	json_key(j, "libs");
	json_open(j, '[');
	vec_each (im, libs) {
		const struct image_id *identity = &(*im)->identity;
		bool known = identity->size && !identity->is_hash;

		json_open(j, '{');
		json_kstr(j, "arch", "x86_64");
		json_kstr(j, "name", selected_image_name(*im));
		json_kstr(j, "path", (*im)->path);
		json_kstr(j, "debugName", selected_image_name(*im));
		json_kstr(j, "debugPath", (*im)->path);
		put_breakpad_id(j, known ? identity : &(struct image_id){0});
		json_kstr(j, "codeId", known ? image_id_text(identity, id) : NULL);
		json_close(j);
	}
	json_close(j);
}

static void put_list(struct json *j, const char *name)
{
	json_key(j, name);
	json_open(j, '[');
	json_close(j);
}

/* One category, grey, as there must be. */
static void put_categories(struct json *j)
{
	json_key(j, "categories");
	json_open(j, '[');
	json_open(j, '{');
	json_kstr(j, "name", "Other");
	json_kstr(j, "color", "grey");
	json_key(j, "subcategories");
	json_open(j, '[');
	json_str(j, "Other");
	json_close(j);
	json_close(j);
	json_close(j);
}

static void put_meta(struct json *j, const struct stacks *s, const char *name)
{
	const struct selected_event *ev = stacks_event(s);
	int64_t from, to;

	stacks_time(s, &from, &to);
	json_key(j, "meta");
	json_open(j, '{');
	json_kdouble(j, "interval", ev && ev->clock && ev->period > 0 ? ev->period / 1e6 : 1);
	json_kdouble(j, "startTime", (double)from / 1e3);
	json_kint(j, "processType", 0);
	json_kstr(j, "product", name);
	json_kstr(j, "importedFrom", "culprit " CULPRIT_VERSION);
	json_kint(j, "stackwalk", 1);
	json_kbool(j, "debug", false);
	json_kint(j, "version", 24);
	json_kint(j, "preprocessedProfileVersion", FORMAT_VERSION);
	json_kbool(j, "symbolicated", true);
	json_kbool(j, "usesOnlyOneStackType", true);
	json_kbool(j, "doesNotUseFrameImplementation", true);
	json_kbool(j, "sourceCodeIsNotOnSearchfox", true);
	put_categories(j);
	put_list(j, "markerSchema");
	json_close(j);
}

static void find_libs(const struct stacks *s, struct hmap *known, image_list *libs)
{
	const struct stack_frame *frames;
	size_t n = stacks_frames(s, &frames);

	for (size_t i = 0; i < n; i++) {
		bool fresh = false;

		if (frames[i].image)
			local_of(known, (uint64_t)(uintptr_t)frames[i].image, libs->n, &fresh);
		if (fresh)
			*vec_add(libs) = frames[i].image;
	}
}

void firefox_write(const struct stacks *s, const char *name, FILE *out)
{
	struct hmap known;
	struct thread model = {.stacks = s, .functions = functions_create(s), .libs = &known};
	const struct stack_group *groups;
	size_t n = stacks_groups(s, &groups);
	image_list libs = {0};
	struct json j;

	hmap_init(&known, sizeof(struct local), sizeof(uint64_t));
	find_libs(s, &known, &libs);
	json_init(&j, out);
	json_open(&j, '{');
	put_meta(&j, s, name);
	put_libs(&j, &libs);
	json_key(&j, "threads");
	json_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		put_group(&j, &model, &libs, &groups[i], i);
	json_close(&j);
	json_close(&j);
	hmap_deinit(&known);
	vec_deinit(&libs);
	functions_destroy(model.functions);
}
