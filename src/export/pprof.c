#include "export/pprof.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "export/gzip.h"
#include "export/stacks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The fields of profile.proto that are written, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT = 14,

	VALUE_TYPE = 1,
	VALUE_UNIT = 2,

	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,

	LABEL_KEY = 1,
	LABEL_STRING = 2,
	LABEL_NUMBER = 3,

	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,

	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,

	LINE_FUNCTION = 1,
	LINE_NUMBER = 2,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
	FUNCTION_START = 5,
};

struct mapping_key {
	const struct selected_image *image;
	const struct segment *segment; /* NULL: of all that is in none */
};

struct mapping {
	struct mapping_key key;
	uint64_t id, start, limit;
	uint64_t has_files, has_inlined;
};

struct function_key {
	uint32_t name, file;
	int64_t start;
};

struct function {
	struct function_key key;
	uint64_t id;
};

struct pprof {
	const struct stacks *stacks;
	struct gzip *gzip;
	struct strtab strings;
	struct hmap mappings, functions;
	struct buf message, inner; /* used again and again */
};

/* ---- protocol buffers ---- */

static void put_tag(struct buf *b, unsigned field, bool is_bytes)
{
	buf_uleb(b, (uint64_t)field << 3 | (is_bytes ? 2 : 0));
}

/* A field that is 0 need not be there. */
static void put_number(struct buf *b, unsigned field, uint64_t v)
{
	if (!v)
		return;
	put_tag(b, field, false);
	buf_uleb(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	put_tag(b, field, true);
	buf_uleb(b, n);
	buf_put(b, p, n);
}

/* What was put into the inner buffer becomes a field, and the buffer is empty. */
static void put_inner(struct pprof *p, struct buf *to, unsigned field)
{
	put_bytes(to, field, p->inner.p, p->inner.n);
	p->inner.n = 0;
}

/* The same for a message of the profile. */
static void send(struct pprof *p, unsigned field)
{
	struct buf head = {0};

	put_tag(&head, field, true);
	buf_uleb(&head, p->message.n);
	gzip_put(p->gzip, head.p, head.n);
	gzip_put(p->gzip, p->message.p, p->message.n);
	buf_deinit(&head);
	p->message.n = 0;
}

static void send_number(struct pprof *p, unsigned field, uint64_t v)
{
	put_number(&p->message, field, v);
	gzip_put(p->gzip, p->message.p, p->message.n);
	p->message.n = 0;
}

static uint32_t string(struct pprof *p, const char *s)
{
	return strtab_add(&p->strings, s ? s : "");
}

/* ---- mappings ---- */

static const struct segment *segment_of(const struct selected_image *im, uint64_t address)
{
	for (size_t i = 0; i < im->nsegments; i++)
		if (address - im->segments[i].vaddr < im->segments[i].size)
			return &im->segments[i];
	return NULL;
}

static struct mapping *mapping_of(struct pprof *p, const struct stack_frame *f)
{
	struct mapping_key key = {.image = f->image};
	struct mapping *m;
	bool fresh;

	if (!f->image)
		return NULL;
	key.segment = segment_of(f->image, f->address);
	m = hmap_put(&p->mappings, &key, &fresh);
	if (fresh) {
		m->id = p->mappings.n;
		m->start = key.segment ? key.segment->vaddr : f->address;
		m->limit = key.segment ? key.segment->vaddr + key.segment->size : f->address + 1;
	}
	m->start = f->address < m->start ? f->address : m->start;
	m->limit = f->address >= m->limit ? f->address + 1 : m->limit;
	m->has_files |= f->file || f->nlines;
	m->has_inlined |= f->nlines > 1;
	return m;
}

static void send_mapping(struct pprof *p, const struct mapping *m)
{
	const struct selected_image *im = m->key.image;
	char id[IMAGE_ID_TEXT];
	struct buf *b = &p->message;

	put_number(b, MAPPING_ID, m->id);
	put_number(b, MAPPING_START, m->start);
	put_number(b, MAPPING_LIMIT, m->limit);
	put_number(b, MAPPING_OFFSET, m->key.segment ? m->key.segment->offset : 0);
	put_number(b, MAPPING_FILE, string(p, im->path));
	if (im->identity.size && !im->identity.is_hash)
		put_number(b, MAPPING_BUILD_ID, string(p, image_id_text(&im->identity, id)));
	put_number(b, MAPPING_HAS_FUNCTIONS, 1);
	put_number(b, MAPPING_HAS_FILES, m->has_files);
	put_number(b, MAPPING_HAS_LINES, m->has_files);
	put_number(b, MAPPING_HAS_INLINED, m->has_inlined);
	send(p, PROFILE_MAPPING);
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = *(struct mapping *const *)a, *y = *(struct mapping *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void send_mappings(struct pprof *p)
{
	VEC(struct mapping *) order = {0};

	for (struct mapping *m = NULL; (m = hmap_next(&p->mappings, m));)
		*vec_add(&order) = m;
	vec_sort(&order, compare_mappings);
	vec_each (m, &order)
		send_mapping(p, *m);
	vec_deinit(&order);
}

/* ---- functions and locations ---- */

static uint64_t function_of(struct pprof *p, const char *name, const char *file, int start)
{
	struct function_key key = {string(p, name), string(p, file), start};
	bool fresh;
	struct function *f = hmap_put(&p->functions, &key, &fresh);
	struct buf *b = &p->message;

	if (!fresh)
		return f->id;
	f->id = p->functions.n;
	put_number(b, FUNCTION_ID, f->id);
	put_number(b, FUNCTION_NAME, key.name);
	put_number(b, FUNCTION_SYSTEM_NAME, key.name);
	put_number(b, FUNCTION_FILE, key.file);
	put_number(b, FUNCTION_START, (uint64_t)(start > 0 ? start : 0));
	send(p, PROFILE_FUNCTION);
	return f->id;
}

static uint64_t function_of_line(
	struct pprof *p, const struct stack_frame *f, const struct inlined_line *l, bool own)
{
	const char *file = l->file ? l->file : own ? f->file : NULL;
	bool same = own && file && f->file && !strcmp(file, f->file);

	return function_of(p, l->function, file, same ? f->start_line : 0);
}

static void put_line(struct pprof *p, struct buf *to, uint64_t function, int line)
{
	put_number(&p->inner, LINE_FUNCTION, function);
	put_number(&p->inner, LINE_NUMBER, (uint64_t)(line > 0 ? line : 0));
	put_inner(p, to, LOCATION_LINE);
}

/* Functions are sent before what they are part of is begun: there is one buffer for messages. */
static void send_location(struct pprof *p, const struct stack_frame *f, uint64_t id)
{
	const struct mapping *m = mapping_of(p, f);
	uint64_t mapping = m ? m->id : 0;
	const struct inlined_line *lines;
	struct buf all = {0};

	stacks_lines(p->stacks, &lines);
	for (uint32_t i = 0; i < f->nlines; i++) {
		const struct inlined_line *l = &lines[f->line + i];

		put_line(p, &all, function_of_line(p, f, l, i + 1 == f->nlines), l->line);
	}
	if (!f->nlines)
		put_line(p, &all, function_of(p, f->name, f->file, f->start_line), 0);
	put_number(&p->message, LOCATION_ID, id);
	put_number(&p->message, LOCATION_MAPPING, mapping);
	put_number(&p->message, LOCATION_ADDRESS, f->address);
	buf_put(&p->message, all.p, all.n);
	send(p, PROFILE_LOCATION);
	buf_deinit(&all);
}

static void send_locations(struct pprof *p)
{
	const struct stack_frame *frames;
	size_t n = stacks_frames(p->stacks, &frames);

	for (size_t i = 0; i < n; i++)
		send_location(p, &frames[i], i + 1);
}

/* ---- samples ---- */

static void put_labels(struct pprof *p, const struct stack_group *g, struct buf *out)
{
	put_number(&p->inner, LABEL_KEY, string(p, "process"));
	put_number(&p->inner, LABEL_STRING, string(p, g->process));
	put_inner(p, out, SAMPLE_LABEL);
	if (!g->pid)
		return;
	put_number(&p->inner, LABEL_KEY, string(p, "pid"));
	put_number(&p->inner, LABEL_NUMBER, (uint64_t)g->pid);
	put_inner(p, out, SAMPLE_LABEL);
}

/* The innermost frame comes first. */
static void send_sample(struct pprof *p, const struct stack_node *nodes, const struct stack_node *n,
	const struct buf *labels)
{
	const struct stack_measure *measures;
	size_t nmeasures = stacks_measures(p->stacks, &measures);
	const struct stack_node *at = n;

	buf_uleb(&p->inner, (uint64_t)n->frame + 1);
	for (; at->parent != STACK_NONE; at = &nodes[at->parent])
		buf_uleb(&p->inner, (uint64_t)at->caller + 1);
	put_inner(p, &p->message, SAMPLE_LOCATION);
	for (size_t i = 0; i < nmeasures; i++)
		buf_uleb(&p->inner, (uint64_t)llround(n->value[i]));
	put_inner(p, &p->message, SAMPLE_VALUE);
	buf_put(&p->message, labels->p, labels->n);
	send(p, PROFILE_SAMPLE);
}

static void send_samples(struct pprof *p)
{
	const struct stack_group *groups;
	const struct stack_node *nodes;
	size_t n = stacks_groups(p->stacks, &groups);

	stacks_nodes(p->stacks, &nodes);
	for (size_t i = 0; i < n; i++) {
		struct buf labels = {0};

		put_labels(p, &groups[i], &labels);
		for (uint32_t k = groups[i].first; k < groups[i].end; k++)
			if (nodes[k].value[0] > 0)
				send_sample(p, nodes, &nodes[k], &labels);
		buf_deinit(&labels);
	}
}

/* ---- what it is ---- */

static void send_type(struct pprof *p, unsigned field, const char *name, const char *unit)
{
	put_number(&p->message, VALUE_TYPE, string(p, name));
	put_number(&p->message, VALUE_UNIT, string(p, unit));
	send(p, field);
}

static void send_comments(struct pprof *p)
{
	struct strtab lines = {0};

	stacks_describe(p->stacks, &lines);
	for (size_t i = 0; i < lines.n; i++)
		send_number(p, PROFILE_COMMENT, string(p, lines.strings[i]));
	strtab_deinit(&lines);
}

static void send_heading(struct pprof *p)
{
	const struct selected_event *ev = stacks_event(p->stacks);
	const struct stack_measure *m;
	size_t n = stacks_measures(p->stacks, &m);
	int64_t from, to;

	string(p, ""); /* must be the first */
	for (size_t i = 0; i < n; i++)
		send_type(p, PROFILE_SAMPLE_TYPE, m[i].name, m[i].unit);
	stacks_time(p->stacks, &from, &to);
	send_number(p, PROFILE_TIME, (uint64_t)from * 1000);
	send_number(p, PROFILE_DURATION, (uint64_t)(to - from) * 1000);
	if (ev) {
		send_type(p, PROFILE_PERIOD_TYPE, m[n - 1].name, m[n - 1].unit);
		send_number(p, PROFILE_PERIOD, (uint64_t)llround(ev->period));
	}
	send_number(p, PROFILE_DEFAULT, string(p, m[n - 1].name));
	send_comments(p);
}

/* A name that is no UTF-8 would make the whole file unreadable. */
static void send_strings(struct pprof *p)
{
	for (size_t i = 0; i < p->strings.n; i++) {
		size_t n;

		for (const char *s = p->strings.strings[i]; *s; s += n) {
			bool bad = utf8_decode(s, &n) == UTF8_BAD && n == 1;

			buf_put(&p->message, bad ? "?" : s, n);
		}
		send(p, PROFILE_STRING);
	}
}

void pprof_write(const struct stacks *s, FILE *out)
{
	struct pprof p = {.stacks = s, .gzip = gzip_create(out)};

	hmap_init(&p.mappings, sizeof(struct mapping), sizeof(struct mapping_key));
	hmap_init(&p.functions, sizeof(struct function), sizeof(struct function_key));
	send_heading(&p);
	send_samples(&p);
	send_locations(&p);
	send_mappings(&p);
	send_strings(&p);
	gzip_finish(p.gzip);
	strtab_deinit(&p.strings);
	hmap_deinit(&p.mappings);
	hmap_deinit(&p.functions);
	buf_deinit(&p.message);
	buf_deinit(&p.inner);
}
