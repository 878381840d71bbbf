/*
 * culprit bursts: what was recorded in bursts, as a list, or one of them as a trace; other rates
 * for programs that run.
 */
#include "analyze/call_name.h"
#include "analyze/streams.h"
#include "base/err.h"
#include "base/json.h"
#include "cmd/bursts_set.h"
#include "cmd/cmd.h"
#include "cmd/path_format.h"
#include "isa/registers.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#define ROWS_DEFAULT 20

struct bursts_view {
	struct report report;
	const char *what;
	const char *rates; /* to be set, in programs that run */
	uint64_t wanted;   /* a burst's number; 0: all */
	uint64_t seen, shown, most, lost;
	struct json json;
};

static const char *name_of(
	struct bursts_view *v, const struct trace_site *s, char *text, size_t size)
{
	struct call_place at = {.image = s->image, .procedure = s->procedure};

	return call_name(v->report.sel, &at, text, size);
}

/* ---- JSON ---- */

static void put_path(struct json *j, const struct path_shape *path)
{
	json_kstr(j, "begins", path_start_name(path->start));
	json_kstr(j, "ends", path_end_name(path->end));
	json_key(j, "blocks");
	json_open(j, '[');
	for (uint32_t i = 0; i < path->n; i++)
		json_addr(j, path->blocks[i]);
	json_close(j);
	if (path->next)
		json_kaddr(j, "next", path->next);
}

/* A reference has an address and bytes, a value a register; a path's number is a value, too. */
static void put_value(struct json *j, const struct trace_site *s, uint64_t address)
{
	bool value = s->kind == TRACE_VALUE || s->kind == TRACE_PATH;

	if (trace_is_reference(s->kind) || (s->kind == TRACE_CALL && address))
		json_kaddr(j, "address", address);
	else
		json_kstr(j, "address", NULL);
	if (trace_is_reference(s->kind))
		json_kuint(j, "size", s->size);
	if (s->kind == TRACE_VALUE)
		json_kstr(j, "register", isa_register_name(s->size & 15));
	if (value)
		json_kaddr(j, "value", address);
	else
		json_kstr(j, "value", NULL);
	if (s->path)
		put_path(j, s->path);
}

static void put_events(struct json *j, const struct trace_site *sites, const struct trace_burst *b)
{
	json_key(j, "events");
	json_open(j, '[');
	for (size_t i = 0; i < b->n; i++) {
		const struct trace_site *s = &sites[b->references[i].site];

		json_open(j, '{');
		json_kaddr(j, "pc", s->at);
		json_kstr(j, "kind", trace_kind_name(s->kind));
		put_value(j, s, b->references[i].address);
		json_close(j);
	}
	json_close(j);
}

static void put_burst(
	struct bursts_view *v, const struct trace_site *sites, const struct trace_burst *b)
{
	struct json *j = &v->json;

	json_open(j, '{');
	json_kuint(j, "id", v->seen);
	json_kuint(j, "process", b->process);
	json_kuint(j, "thread", b->thread);
	json_kuint(j, "time", b->time);
	json_kuint(j, "length", b->n);
	put_events(j, sites, b);
	json_close(j);
}

/* ---- text ---- */

static void print_line(
	struct bursts_view *v, const struct trace_site *sites, const struct trace_burst *b)
{
	char name[512];

	printf("%8" PRIu64 "  %8" PRIu32 "  %8" PRIu32 "  %10zu  ", v->seen, b->process, b->thread,
		b->n);
	if (b->n)
		cmd_put(stdout, name_of(v, &sites[b->references[0].site], name, sizeof name));
	putchar('\n');
}

static void print_path(const struct path_shape *path, uint64_t number)
{
	struct buf text = {0};

	if (path)
		path_format(path, 0, &text);
	printf("  %" PRIu64 "  %s", number, path ? buf_cstr(&text) : "?");
	buf_deinit(&text);
}

static void print_event(struct bursts_view *v, const struct trace_site *s, uint64_t address)
{
	struct trace_site to = {.image = s->image, .procedure = address};
	char name[512];

	printf("  %12" PRIx64 "  %-6s", s->at, trace_kind_name(s->kind));
	switch ((enum trace_kind)s->kind) {
	case TRACE_CALL:
		printf("  %s", address ? "" : "through a pointer");
		if (address)
			cmd_put(stdout, name_of(v, &to, name, sizeof name));
		break;
	case TRACE_ENTER:
	case TRACE_LEAVE:
		break;
	case TRACE_PATH:
		print_path(s->path, address);
		break;
	case TRACE_VALUE:
		printf("  %-3s  0x%" PRIx64, isa_register_name(s->size & 15), address);
		break;
	default:
		printf("  %3u  0x%" PRIx64, s->size, address);
	}
	putchar('\n');
}

/* The procedure where it changes, then what happened, one event a line. */
static void print_trace(
	struct bursts_view *v, const struct trace_site *sites, const struct trace_burst *b)
{
	uint64_t image = 0, procedure = 0;
	char name[512];

	printf("burst %" PRIu64 " of process %" PRIu32 ", thread %" PRIu32 ": %zu events\n",
		v->seen, b->process, b->thread, b->n);
	for (size_t i = 0; i < b->n; i++) {
		const struct trace_site *s = &sites[b->references[i].site];

		if (s->image != image || s->procedure != procedure) {
			cmd_put(stdout, name_of(v, s, name, sizeof name));
			putchar('\n');
		}
		image = s->image;
		procedure = s->procedure;
		print_event(v, s, b->references[i].address);
	}
}

static int take_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct bursts_view *v = arg;

	(void)part;
	v->seen++;
	if (v->wanted ? v->seen != v->wanted : v->shown == v->most)
		return 0;
	v->shown++;
	if (v->report.json)
		put_burst(v, sites, b);
	else if (v->wanted)
		print_trace(v, sites, b);
	else
		print_line(v, sites, b);
	return 0;
}

/* ---- the whole ---- */

static int print_all(struct bursts_view *v, struct err *e)
{
	int rc;

	report_pager(&v->report);
	if (v->report.json) {
		json_init(&v->json, stdout);
		json_open(&v->json, '{');
		json_key(&v->json, "bursts");
		json_open(&v->json, '[');
	} else if (!v->wanted) {
		puts("   burst   process    thread      events  begins in");
	}
	rc = streams_each_burst(v->report.sel, take_burst, v, &v->lost, e);
	if (v->report.json) {
		json_close(&v->json);
		json_close(&v->json);
	} else if (!rc && !v->wanted && v->shown < v->seen) {
		printf("\n%" PRIu64 " more (-n %" PRIu64 " shows all)\n", v->seen - v->shown,
			v->seen);
	}
	if (!rc && v->wanted && !v->shown)
		rc = err_set(
			e, -ENOENT, "no burst %" PRIu64 ": there are %" PRIu64, v->wanted, v->seen);
	return rc;
}

enum { BURSTS_SET = REPORT_LAST };

static int take_option(void *arg, int c, const char *value)
{
	struct bursts_view *v = arg;

	if (c != BURSTS_SET)
		return 1;
	v->rates = value;
	return 0;
}

static int parse(struct bursts_view *v, int argc, char **argv)
{
	static const struct option options[] = {
		REPORT_LONG, REPORT_ROWS_LONG, {"set", required_argument, NULL, BURSTS_SET}, {0}};
	static const struct report_verb verb = {"bursts", ":n:" REPORT_SHORT, options, take_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	if (!rc)
		rc = report_operand("bursts", argc, argv, &v->what);
	if (!rc && v->what && !v->rates && parse_uint(v->what, 1, UINT64_MAX, &v->wanted) < 0)
		rc = cmd_usage("bursts", "'%s' is no number of a burst", v->what);
	v->most = v->report.rows ? v->report.rows : ROWS_DEFAULT;
	return rc;
}

int cmd_bursts(int argc, char **argv)
{
	struct bursts_view v = {0};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("bursts");
	else if (!code && v.rates)
		code = bursts_set(v.rates, v.what);
	else if (!code && (report_select(&v.report, NULL, &e) || print_all(&v, &e)))
		code = cmd_fail(&e);
	report_deinit(&v.report);
	return code;
}
