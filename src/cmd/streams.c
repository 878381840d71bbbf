/*
 * culprit streams: the sequences of data accesses that come again and again.
 */
#include "cmd/streams_view.h"

#include "analyze/call_name.h"
#include "analyze/streams_overlap.h"
#include "base/err.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROWS_DEFAULT 10
#define LINES_MOST   16 /* of a stream */

const char *streams_place(
	struct streams_view *v, const struct trace_site *s, char *text, size_t size)
{
	struct call_place at = {.image = s->image, .procedure = s->procedure};
	char name[512];

	snprintf(text, size, "%s+0x%" PRIx64, call_name(v->report.sel, &at, name, sizeof name),
		s->at - s->procedure);
	return text;
}

static uint64_t rows_of(const struct streams_view *v)
{
	const struct stream *list;
	uint64_t n = streams_all(v->streams, &list);
	uint64_t most = v->report.rows ? v->report.rows : v->report.json ? n : ROWS_DEFAULT;

	return n < most ? n : most;
}

/* ---- JSON ---- */

static void put_stream(
	struct json *j, struct streams_view *v, size_t number, const struct stream *s)
{
	char name[600];

	json_open(j, '{');
	json_kuint(j, "heat", s->heat);
	json_kshare(j, "share", share_of(s->heat, streams_summary(v->streams)->references));
	json_kuint(j, "length", s->length);
	json_kuint(j, "occurrences", s->occurrences);
	json_kuint(j, "lines", s->lines);
	json_kuint(j, "least_lines", s->least);
	json_key(j, "references");
	json_open(j, '[');
	for (uint32_t i = 0; i < s->length; i++) {
		const struct stream_reference *r = &s->references[i];

		json_open(j, '{');
		json_kaddr(j, "pc", r->site.at);
		json_kstr(j, "what", streams_place(v, &r->site, name, sizeof name));
		json_kstr(j, "kind", trace_kind_name(r->site.kind));
		json_kaddr(j, "address", r->address);
		streams_chain_json(v, r, j, !i);
		json_close(j);
	}
	json_close(j);
	if (v->contexts)
		streams_contexts_json(v, number, j);
	json_close(j);
}

static void print_json(struct streams_view *v)
{
	const struct streams_summary *sum = streams_summary(v->streams);
	const struct stream *list;
	struct json j;

	streams_all(v->streams, &list);
	json_init(&j, stdout);
	json_open(&j, '{');
	json_kuint(&j, "bursts", sum->bursts);
	json_kuint(&j, "lost", sum->lost);
	json_kuint(&j, "references", sum->references);
	json_kshare(&j, "coverage", share_of(sum->hot, sum->references));
	if (v->compare)
		json_kshare(&j, "overlap", v->overlap);
	json_key(&j, "streams");
	json_open(&j, '[');
	for (uint64_t i = 0; i < rows_of(v); i++)
		put_stream(&j, v, i, &list[i]);
	json_close(&j);
	streams_advice_json(v, &j);
	json_close(&j);
}

/* ---- text ---- */

static void print_summary(const struct streams_view *v)
{
	const struct streams_summary *sum = streams_summary(v->streams);
	const struct stream *list;
	size_t n = streams_all(v->streams, &list);

	printf("%zu hot data streams of %" PRIu32 " to %" PRIu32 " references: %.1f%% of %" PRIu64
	       " references in %" PRIu64 " bursts.\n",
		n, v->options.shortest, v->options.longest,
		100 * share_of(sum->hot, sum->references), sum->references, sum->bursts);
	if (share_of(sum->hot, sum->references) < v->options.coverage)
		printf("All that came twice and has %g%% of the references is hot: %.0f%% was "
		       "asked for.\n",
			100 * v->options.least, 100 * v->options.coverage);
	if (v->compare) {
		printf("%.1f%% of what is in them is in streams that ", 100 * v->overlap);
		cmd_put(stdout, v->compare);
		puts(" has, too, as hot as here or less.");
	}
	if (sum->lost)
		printf("%" PRIu64 " bursts found no room and are lost.\n", sum->lost);
}

/* As many references of one instruction in a row as there are, in one line. */
static void print_run(struct streams_view *v, const struct stream *s, uint32_t *i)
{
	const struct stream_reference *first = &s->references[*i];
	uint32_t n = 1;
	char name[600];

	while (*i + n < s->length && first[n].site.image == first->site.image &&
		first[n].site.at == first->site.at)
		n++;
	fputs("      ", stdout);
	cmd_put(stdout, streams_place(v, &first->site, name, sizeof name));
	printf("  %s of %u at 0x%" PRIx64, trace_kind_name(first->site.kind), first->site.size,
		first->address);
	for (uint32_t k = 1; k < n; k++)
		printf(" %+" PRId64, (int64_t)(first[k].address - first[k - 1].address));
	putchar('\n');
	*i += n;
}

static void print_raw(struct streams_view *v, const struct stream *s)
{
	uint32_t i = 0;

	for (uint32_t lines = 0; i < s->length && lines < LINES_MOST; lines++)
		print_run(v, s, &i);
	if (i < s->length)
		printf("      ... %" PRIu32 " more (--json has them all)\n", s->length - i);
}

static void print_stream(struct streams_view *v, size_t number, const struct stream *s)
{
	uint64_t all = streams_summary(v->streams)->references;

	printf("\n%4zu  %5.2f%%  %" PRIu32 " references, %" PRIu64 " times, in %" PRIu32
	       " cache lines (%" PRIu32 " would do)\n",
		number + 1, 100 * share_of(s->heat, all), s->length, s->occurrences, s->lines,
		s->least);
	if (v->raw)
		print_raw(v, s);
	else
		streams_chain_print(v, s);
	if (v->contexts)
		streams_contexts_print(v, number);
}

static void print_text(struct streams_view *v)
{
	const struct stream *list;

	streams_all(v->streams, &list);
	print_summary(v);
	for (uint64_t i = 0; i < rows_of(v); i++)
		print_stream(v, i, &list[i]);
	if (!v->raw)
		streams_advice_print(v);
	report_epochs_note(&v->report);
}

/* ---- options ---- */

enum {
	STREAMS_LENGTH = REPORT_LAST,
	STREAMS_COVERAGE,
	STREAMS_HEAT,
	STREAMS_COMPARE,
	STREAMS_RAW,
	STREAMS_OFFLINE,
	STREAMS_BY
};

static int streams_option(void *arg, int c, const char *value)
{
	struct streams_view *v = arg;
	char end;

	switch (c) {
	case STREAMS_LENGTH:
		if (sscanf(value, "%" SCNu32 ",%" SCNu32 "%c", &v->options.shortest,
			    &v->options.longest, &end) != 2 ||
			v->options.shortest < 2 || v->options.longest > 10000 ||
			v->options.shortest > v->options.longest)
			return cmd_usage("streams",
				"--length: '%s' is not LEAST,MOST from 2 to 10000", value);
		return 0;
	case STREAMS_COMPARE:
		v->compare = value;
		return 0;
	case STREAMS_RAW:
		v->raw = true;
		return 0;
	case STREAMS_OFFLINE:
		v->options.offline = true;
		return 0;
	case STREAMS_BY:
		if (strcmp(value, "context"))
			return cmd_usage("streams", "--by: '%s' is not context", value);
		v->by_context = true;
		return 0;
	case STREAMS_COVERAGE:
		if (parse_share(value, &v->options.coverage) < 0)
			return cmd_usage("streams", "--coverage: '%s' is no share", value);
		return 0;
	case STREAMS_HEAT:
		if (parse_share(value, &v->options.least) < 0)
			return cmd_usage("streams", "--heat: '%s' is no share", value);
		return 0;
	}
	return 1;
}

static int parse(struct streams_view *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		{"length", required_argument, NULL, STREAMS_LENGTH},
		{"coverage", required_argument, NULL, STREAMS_COVERAGE},
		{"heat", required_argument, NULL, STREAMS_HEAT},
		{"compare", required_argument, NULL, STREAMS_COMPARE},
		{"raw", no_argument, NULL, STREAMS_RAW},
		{"by", required_argument, NULL, STREAMS_BY},
		{"offline", no_argument, NULL, STREAMS_OFFLINE}, {0}};
	static const struct report_verb verb = {
		"streams", ":n:" REPORT_SHORT, options, streams_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	return rc ? rc : report_no_operand("streams", argc, argv);
}

static int compare(struct streams_view *v, struct err *e)
{
	struct report other = {.input = v->compare};
	struct streams *theirs = NULL;
	int rc = report_select(&other, NULL, e);

	if (!rc)
		rc = streams_create(other.sel, &v->options, &theirs, e);
	if (!rc)
		v->overlap = streams_overlap(v->streams, theirs);
	streams_destroy(theirs);
	report_deinit(&other);
	return rc;
}

static int report(struct streams_view *v, struct err *e)
{
	int rc = report_select(&v->report, NULL, e);

	if (!rc)
		rc = streams_create(v->report.sel, &v->options, &v->streams, e);
	if (!rc && (!v->raw || v->report.json))
		rc = things_create(v->report.sel, &v->things, e);
	if (!rc && v->things)
		rc = streams_advice_make(v, e);
	if (!rc && v->by_context)
		rc = stream_contexts_create(v->streams, &v->contexts, e);
	if (!rc && v->compare)
		rc = compare(v, e);
	if (rc)
		return rc;
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else
		print_text(v);
	return 0;
}

int cmd_streams(int argc, char **argv)
{
	struct streams_view v = {
		.options = {.shortest = 10, .longest = 100, .coverage = 0.9, .least = 0.001}};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("streams");
	else if (!code && report(&v, &e))
		code = cmd_fail(&e);
	streams_advice_deinit(&v);
	things_destroy(v.things);
	stream_contexts_destroy(v.contexts);
	streams_destroy(v.streams);
	report_deinit(&v.report);
	return code;
}
