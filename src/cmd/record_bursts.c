/* record --bursts: short traces of what a command touches in memory. */
#include "base/err.h"
#include "burst/burst.h"
#include "burst/file.h"
#include "cmd/record_edited.h"
#include "store/traces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One in 200 checks is in a burst; long ones say more about what repeats than many do. */
#define CHECK_DEFAULT 10000
#define INSTR_DEFAULT 50

struct bursts_own {
	struct burst_options options;
	struct burst_sum sum;
};

static struct bursts_own *own_of(struct edited_run *r)
{
	struct bursts_own *own = r->own;
	uint64_t boring;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options = burst_defaults;
		if (r->choice->all_checks)
			own->options = (struct burst_options){.entries = CHECKS_ALL};
		if (r->choice->boring && !parse_uint(r->choice->boring, 0, 1000, &boring))
			own->options.boring = (unsigned)boring;
	}
	return own;
}

int bursts_rates(const char *verb, const char *text, struct burst_rates *out)
{
	char end;

	*out = (struct burst_rates){CHECK_DEFAULT, INSTR_DEFAULT};
	if (!text)
		return 0;
	if (!strcmp(text, "all"))
		*out = (struct burst_rates){0, 0};
	else if (!strcmp(text, "never"))
		*out = (struct burst_rates){BURST_NEVER, 1};
	else if (sscanf(text, "%" SCNd64 ":%" SCNd64 "%c", &out->check, &out->instr, &end) != 2 ||
		 out->check < 0 || out->instr < 1 || out->check > BURST_NEVER ||
		 out->instr > BURST_NEVER)
		return cmd_usage(verb,
			"--bursts=%s: not NCHECK:NINSTR, such as 10000:50; all; or never", text);
	return 0;
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
	rc = burst_file_create(path, &rates, BURST_BYTES, e);
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

static int read_all(struct edited_run *r, struct err *e)
{
	struct burst_map *maps = xcalloc(r->files.n + 1, sizeof *maps);
	struct buf packed = {0};
	int rc = 0;

	for (size_t i = 0; i < r->files.n && !rc; i++) {
		const struct edited_file *f = &r->files.p[i];

		rc = burst_map_read(&maps[i], f->edit.map.p, f->edit.map.n);
		if (rc)
			err_set(e, rc, "%s: the map of its bursts is damaged", f->edit.image);
	}
	if (!rc)
		rc = burst_file_read(
			r->files.p[0].counts, maps, r->files.n, &packed, &own_of(r)->sum, e);
	if (!rc)
		add_results(r, &packed, maps);
	else
		buf_deinit(&packed);
	if (!rc)
		rc = objects_read(r, maps, e);
	for (size_t i = 0; i < r->files.n; i++)
		burst_map_deinit(&maps[i]);
	free(maps);
	return rc;
}

static void say(struct edited_run *r, const char *database)
{
	const struct burst_sum *sum = &own_of(r)->sum;

	cmd_note("bursts: %" PRIu64 ", with %" PRIu64 " references -> %s", sum->bursts,
		sum->references, database);
	if (sum->lost)
		cmd_note("%" PRIu64 " bursts found no room: take fewer (--bursts=NCHECK:NINSTR)",
			sum->lost);
	if (sum->odd)
		cmd_note("%" PRIu64 " references are of nobody's code and left out", sum->odd);
}

const struct edited_kind edited_bursts = {
	.name = "bursts",
	.one_file = true,
	.tool = tool,
	.prepare = prepare,
	.enter = objects_enter,
	.read = read_all,
	.say = say,
};
