/* record --bursts: short traces of what a command touches in memory. */
#include "base/err.h"
#include "burst/burst.h"
#include "burst/file.h"
#include "burst/payload.h"
#include "burst/reader.h"
#include "cmd/record_edited.h"
#include "store/traces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct bursts_own {
	struct burst_options options;
	struct burst_map *maps; /* by file */
	size_t nmaps;           /* files are gone when these go */
	struct burst_reader *reader;
	struct burst_sum sum;
};

static int entries_of(const char *text, enum checks_entries *out)
{
	static const char *const names[] = {[CHECKS_ALL] = "all",
		[CHECKS_NO_LEAVES] = "no-leaves",
		[CHECKS_CYCLES] = "cycles",
		[CHECKS_NONE] = "none"};

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i])) {
			*out = i;
			return 0;
		}
	return -EINVAL;
}

static int boring_of(const char *text, unsigned *out)
{
	uint64_t boring = CHECKS_NO_LOOPS;

	if (strcmp(text, "all") && parse_uint(text, 0, 1000, &boring) < 0)
		return -EINVAL;
	*out = (unsigned)boring;
	return 0;
}

static int options_of(const struct edited_choice *c, struct burst_options *o, struct err *e)
{
	*o = burst_defaults;
	if (c->all_checks)
		*o = (struct burst_options){.entries = CHECKS_ALL, .payload = o->payload};
	if (c->checks && entries_of(c->checks, &o->entries))
		return err_set(e, -EINVAL, "--checks: '%s' is not all, no-leaves, cycles or none",
			c->checks);
	if (c->boring && boring_of(c->boring, &o->boring))
		return err_set(
			e, -EINVAL, "--boring: '%s' is no number up to 1000, nor all", c->boring);
	return c->payload ? payload_find(c->payload, &o->payload, &o->more, e) : 0;
}

int bursts_check(const struct edited_choice *c)
{
	struct burst_options o;
	struct err e = {0};

	return options_of(c, &o, &e) ? cmd_usage("record", "%s", e.text) : 0;
}

static struct bursts_own *own_of(struct edited_run *r)
{
	struct bursts_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		options_of(r->choice, &own->options, NULL); /* checked before */
	}
	return own;
}

int bursts_rates(const char *verb, const char *text, struct burst_rates *out)
{
	const char *said = text ? text : getenv("CULPRIT_BURSTS");

	*out = (struct burst_rates){BURST_CHECKS_USUAL, BURST_INSTR_USUAL, 0};
	if (!said || burst_rates_parse(said, out))
		return 0;
	return cmd_usage(verb,
		"%s%s: not NCHECK:NINSTR, such as 10000:50, nor a share of the time, such as 2%%; "
		"all; "
		"or never",
		text ? "--bursts=" : "CULPRIT_BURSTS=", said);
}

static int tool(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e)
{
	(void)path;
	(void)e;
	burst_tool(&own_of(r)->options, out);
	return 0;
}

static int prepare(struct edited_run *r, const char *path, struct err *e)
{
	struct burst_rates rates;

	int rc;

	bursts_rates("record", r->choice->rates, &rates); /* checked before */
	rc = burst_file_create(path, &rates, r->choice->rates, BURST_BYTES, e);
	return rc ? rc : objects_prepare(r, e);
}

/* The procedures of an image that bursts went through: others need not be named. */
static void keep_procedures(const struct buf *packed, uint64_t key, struct result *to)
{
	struct trace_reader reader;
	uint64_t last = UINT64_MAX;

	if (trace_reader_init(&reader, packed->p, packed->n) || trace_reader_part(&reader) <= 0)
		return;
	vec_each (s, &reader.sites) {
		if (s->image != key || s->procedure == last)
			continue;
		*vec_add(&to->procedures) = last = s->procedure;
	}
	trace_reader_deinit(&reader);
}

static void add_results(struct edited_run *r, struct buf *packed, const struct burst_map *maps)
{
	for (size_t i = 0; i < r->files.n; i++) {
		struct result *to = vec_add(&r->results.list);

		*to = (struct result){.path = r->files.p[i].original};
		keep_procedures(packed, burst_map_key(&maps[i]), to);
	}
	r->results.list.p[0].event = "bursts";
	r->results.list.p[0].type = &blob_trace;
	r->results.list.p[0].packed = *packed;
}

static int read_maps(struct edited_run *r, struct burst_map *maps, struct err *e)
{
	for (size_t i = 0; i < r->files.n; i++) {
		const struct edited_file *f = &r->files.p[i];
		int rc = burst_map_read(&maps[i], f->edit.map.p, f->edit.map.n);

		if (rc)
			return err_set(
				e, rc, "%s: the map of its bursts is damaged", f->edit.image);
	}
	return 0;
}

/* Made when it is needed first. */
static int get_reader(struct edited_run *r, struct err *e)
{
	struct bursts_own *own = own_of(r);
	int rc = 0;

	if (!own->maps) {
		own->nmaps = r->files.n;
		own->maps = xcalloc(own->nmaps + 1, sizeof *own->maps);
		rc = read_maps(r, own->maps, e);
	}
	if (!rc && !own->reader)
		rc = burst_reader_create(
			r->files.p[0].counts, own->maps, r->files.n, &own->reader, e);
	return rc;
}

static void attend(struct edited_run *r)
{
	if (!get_reader(r, NULL))
		burst_reader_drain(own_of(r)->reader);
}

static int read_all(struct edited_run *r, struct err *e)
{
	struct bursts_own *own = own_of(r);
	struct buf packed = {0};
	int rc = get_reader(r, e);

	if (rc)
		return rc;
	burst_reader_end(own->reader, &packed, &own->sum);
	add_results(r, &packed, own->maps);
	return objects_read(r, own->maps, e);
}

static void release(struct edited_run *r)
{
	struct bursts_own *own = own_of(r);

	burst_reader_destroy(own->reader);
	for (size_t i = 0; own->maps && i < own->nmaps; i++)
		burst_map_deinit(&own->maps[i]);
	free(own->maps);
}

static void say(struct edited_run *r, const char *database)
{
	const struct bursts_own *own = own_of(r);
	const struct burst_sum *sum = &own->sum;

	cmd_note("bursts: %" PRIu64 ", with %" PRIu64 " %s -> %s", sum->bursts, sum->events,
		own->options.payload->words, database);
	if (sum->lost)
		cmd_note("%" PRIu64 " bursts found no room: take fewer (--bursts=NCHECK:NINSTR)",
			sum->lost);
	if (sum->odd)
		cmd_note("%" PRIu64 " words are of nobody's code and left out", sum->odd);
}

const struct edited_kind edited_bursts = {
	.name = "bursts",
	.one_file = true,
	.tool = tool,
	.prepare = prepare,
	.enter = objects_enter,
	.attend = attend,
	.read = read_all,
	.say = say,
	.release = release,
};
