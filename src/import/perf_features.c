#include "import/perf_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUILD_ID_BYTES = 20, /* room for one */
	EVENTS_MOST = 4096,
	STRINGS_MOST = 1024,
	UPDATE_NAME = 2, /* of PERF_RECORD_EVENT_UPDATE */
};

/* A bit of the record: the size stands behind the id. */
#define MISC_BUILD_ID_SIZE (1 << 15)

/* A length, with room for the end of the string, and that many bytes. */
static const char *take_string(struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	const char *s = cursor_bytes(c, n);

	if (!s || !memchr(s, 0, n)) {
		c->failed = true;
		return "";
	}
	return s;
}

static void keep_string(struct cursor *c, char **to)
{
	const char *s = take_string(c);

	if (c->failed)
		return;
	free(*to);
	*to = xstrdup(s);
}

static void take_command(struct perf_file *f, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	struct buf all = {0};

	for (uint32_t i = 0; i < n && i < STRINGS_MOST && !c->failed; i++) {
		const char *word = take_string(c), *slash = i ? NULL : strrchr(word, '/');

		buf_printf(&all, "%s%s", i ? " " : "", slash ? slash + 1 : word);
	}
	if (!c->failed && all.n) {
		free(f->facts.command);
		f->facts.command = xstrdup(buf_cstr(&all));
	}
	buf_deinit(&all);
}

/* Times that the two clocks showed at once. */
static void take_clocks(struct perf_file *f, struct cursor *c)
{
	cursor_skip(c, 8); /* version, which clock it is */
	f->facts.wall_ns = cursor_u64(c);
	f->facts.clock_time = cursor_u64(c);
	if (c->failed || f->facts.wall_ns > PERF_TIME_MOST || f->facts.clock_time > PERF_TIME_MOST)
		f->facts.wall_ns = f->facts.clock_time = 0;
}

/* ---- events ---- */

bool perf_take_attr(const void *p, size_t n, struct perf_event_attr *out)
{
	struct cursor c = cursor_over(p, n);
	uint32_t size;

	cursor_skip(&c, 4);
	size = cursor_u32(&c);
	if (c.failed || size > n || size < PERF_ATTR_SIZE_VER0)
		return false;
	memset(out, 0, sizeof *out);
	memcpy(out, p, size < sizeof *out ? size : sizeof *out);
	return true;
}

bool perf_add_event(struct perf_file *f, const struct perf_event_attr *attr, struct cursor *ids)
{
	struct perf_event *ev;

	if (f->events.n >= EVENTS_MOST)
		return false;
	ev = vec_add(&f->events);
	*ev = (struct perf_event){.attr = *attr};
	while (cursor_left(ids) >= sizeof(uint64_t))
		*vec_add(&ev->ids) = cursor_u64(ids);
	return true;
}

static struct perf_event *event_of_id(struct perf_file *f, uint64_t id)
{
	vec_each (ev, &f->events)
		for (size_t i = 0; i < ev->ids.n; i++)
			if (ev->ids.p[i] == id)
				return ev;
	return NULL;
}

static void name_event(struct perf_event *ev, const char *name)
{
	free(ev->name);
	ev->name = xstrdup(name);
}

/* Names of events: by their first id, else by their place, as the attrs stand. */
static void take_descriptions(struct perf_file *f, struct cursor *c)
{
	uint32_t n = cursor_u32(c), size = cursor_u32(c);

	for (uint32_t i = 0; i < n && i < EVENTS_MOST && !c->failed; i++) {
		uint32_t ids;
		const char *name;
		struct perf_event *ev = NULL;

		cursor_skip(c, size);
		ids = cursor_u32(c);
		name = take_string(c);
		for (uint32_t k = 0; k < ids && !c->failed; k++) {
			uint64_t id = cursor_u64(c);

			if (k == 0)
				ev = event_of_id(f, id);
		}
		if (!ev && i < f->events.n)
			ev = &f->events.p[i];
		if (ev && !c->failed)
			name_event(ev, name);
	}
}

void perf_take_event_update(struct perf_file *f, struct cursor *c)
{
	uint64_t type = cursor_u64(c), id = cursor_u64(c);
	struct perf_event *ev = event_of_id(f, id);
	const char *name;

	if (type != UPDATE_NAME || !ev)
		return;
	name = cursor_str(c);
	if (!c->failed && *name)
		name_event(ev, name);
}

/* ---- build-ids ---- */

/* The process, 20 bytes of which the last may be its size, room, and the path. */
void perf_take_build_id(struct perf_file *f, uint16_t misc, struct cursor *c)
{
	struct perf_id_entry entry = {0};
	const uint8_t *id;
	uint8_t size;
	const char *path;

	cursor_skip(c, 4);
	id = cursor_bytes(c, BUILD_ID_BYTES);
	size = cursor_u8(c);
	cursor_skip(c, 3);
	path = cursor_str(c);
	if (c->failed || !*path)
		return;
	if (!(misc & MISC_BUILD_ID_SIZE) || size > BUILD_ID_BYTES)
		size = BUILD_ID_BYTES;
	entry.id.size = size;
	memcpy(entry.id.bytes, id, size);
	entry.path = xstrdup(path);
	entry.kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	*vec_add(&f->build_ids) = entry;
}

static void take_build_ids(struct perf_file *f, struct cursor *c)
{
	while (cursor_left(c) >= sizeof(struct perf_event_header) && !c->failed) {
		uint16_t misc, size;
		struct cursor body;

		cursor_skip(c, 4);
		misc = cursor_u16(c);
		size = cursor_u16(c);
		if (size < sizeof(struct perf_event_header))
			return;
		body = cursor_slice(c, size - sizeof(struct perf_event_header));
		perf_take_build_id(f, misc, &body);
	}
}

const struct image_id *perf_file_build_id(const struct perf_file *f, const char *path, bool kernel)
{
	vec_each (b, &f->build_ids)
		if (b->kernel == kernel && !strcmp(b->path, path))
			return &b->id;
	return NULL;
}

/* ---- all of them ---- */

void perf_take_feature(struct perf_file *f, uint32_t feature, struct cursor c)
{
	struct perf_facts *facts = &f->facts;

	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		take_build_ids(f, &c);
		break;
	case PERF_FEATURE_HOSTNAME:
		keep_string(&c, &facts->host);
		break;
	case PERF_FEATURE_OSRELEASE:
		keep_string(&c, &facts->release);
		break;
	case PERF_FEATURE_ARCH:
		keep_string(&c, &facts->machine);
		break;
	case PERF_FEATURE_NRCPUS:
		cursor_skip(&c, 4); /* those that could be there */
		facts->cpus = cursor_u32(&c);
		break;
	case PERF_FEATURE_CPUDESC:
		keep_string(&c, &facts->cpu);
		break;
	case PERF_FEATURE_CMDLINE:
		take_command(f, &c);
		break;
	case PERF_FEATURE_EVENT_DESC:
		take_descriptions(f, &c);
		break;
	case PERF_FEATURE_SAMPLE_TIME:
		facts->first = cursor_u64(&c);
		facts->last = cursor_u64(&c);
		if (facts->first > facts->last || facts->last > PERF_TIME_MOST)
			facts->first = facts->last = 0;
		break;
	case PERF_FEATURE_CLOCK_DATA:
		take_clocks(f, &c);
		break;
	default:
		break;
	}
}
