/*
 * culprit values: what values instructions see, and what could be made of it.
 */
#include "analyze/value_report.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/shorten.h"
#include "cmd/value_format.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What the overview shows of a procedure and in all, and what it takes for semi-invariant. */
enum { OVERVIEW_ROWS = 60, OVERVIEW_EACH = 8, OVERVIEW_SAMPLES = 50 };
enum { FEW_SAMPLES = 500 }; /* of time: with fewer there is little to expect */
#define OVERVIEW_SHARE 0.5
#define OVERVIEW_TIME  0.001

#define KIND_ENTRY 0x20000u /* --kind entry: all arguments */

struct values {
	struct report report;
	const char *what;
	bool by_call_site;
	unsigned kinds[8]; /* asked for */
	size_t nkinds;
	struct value_formats *formats;
	struct value_report *list;
};

static bool is_overview(const struct values *v)
{
	return !v->what && !v->nkinds && !v->by_call_site;
}

/* ---- which rows ---- */

static bool is_entry(unsigned kind)
{
	return kind >= VALUE_ENTRY0 && kind <= VALUE_ENTRY5;
}

static bool kind_asked(const struct values *v, unsigned kind)
{
	for (size_t i = 0; i < v->nkinds; i++)
		if (v->kinds[i] == kind || (v->kinds[i] == KIND_ENTRY && is_entry(kind)) ||
			(v->kinds[i] == VALUE_PLUGIN0 && kind >= VALUE_PLUGIN0 &&
				kind != VALUE_TARGET))
			return true;
	return !v->nkinds;
}

/* Hot, semi-invariant, and something that a programmer could use. */
static bool is_remarkable(const struct value_row *row)
{
	if (row->advice)
		return true;
	return row->telling && !row->context && row->samples >= OVERVIEW_SAMPLES &&
	       row->top.low >= OVERVIEW_SHARE && row->time_share >= OVERVIEW_TIME &&
	       row->kind != VALUE_ADDRESS && row->kind != VALUE_STRIDE &&
	       row->kind != VALUE_LATENCY &&
	       (row->kind == VALUE_TARGET || !value_is_pointer(row->top.value));
}

static bool is_wanted(void *arg, const struct value_row *row)
{
	const struct values *v = arg;

	if (is_overview(v) && !v->report.json)
		return is_remarkable(row);
	if (!kind_asked(v, row->kind) || (row->context != 0) != v->by_call_site)
		return false;
	/* Returns have targets too, but only who asks for targets wants them. */
	if (row->kind == VALUE_TARGET && !row->telling)
		return v->nkinds;
	return v->report.json || row->telling || row->advice;
}

/* Advice for a call site says nothing new where there is the same for all together. */
static bool is_covered(const struct value_procedure *p, const struct value_row *row)
{
	if (!row->context)
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (!p->rows[i]->context && p->rows[i]->advice &&
			p->rows[i]->address == row->address && p->rows[i]->kind == row->kind)
			return true;
	return false;
}

/* ---- JSON ---- */

static double error_of(const struct value_share *s)
{
	return s->share - s->low > s->high - s->share ? s->share - s->low : s->high - s->share;
}

static void put_value(struct json *j, const struct values *v, const struct value_row *row,
	const struct value_share *s)
{
	char text[512];

	json_open(j, '{');
	value_row_number(row, s->value, text, sizeof text);
	json_kstr(j, "value", text);
	json_kshare(j, "share", s->share);
	json_kshare(j, "error", error_of(s));
	json_kshare(j, "low", s->low);
	json_kshare(j, "high", s->high);
	if (value_report_name(v->list, row, s, text, sizeof text) ||
		value_formats_put(v->formats, row->kind, s->value, text, sizeof text))
		json_kstr(j, "name", text);
	if (row->kind == VALUE_TARGET)
		json_kstr(j, "image", s->image ? s->image->path : NULL);
	json_close(j);
}

static void put_values(struct json *j, const struct values *v, const struct value_row *row)
{
	struct value_share values[HOTLIST_CAPACITY_MAX];
	size_t n = value_report_read(v->list, row, values);

	json_key(j, "values");
	json_open(j, '[');
	/* What a list has no proof of is left out, but for the first. */
	for (size_t i = 0; i < n; i++)
		if (!i || values[i].least)
			put_value(j, v, row, &values[i]);
	json_close(j);
}

static const char *kind_name(unsigned kind)
{
	const char *name = kind == VALUE_TARGET ? "target" : value_kind_name(kind);

	return name ? name : "unknown";
}

static void put_operand(
	const struct values *v, const struct value_row *row, char *text, size_t size)
{
	const char *plugin =
		row->kind >= VALUE_PLUGIN0 ? value_formats_name(v->formats, row->kind) : NULL;

	if (plugin)
		snprintf(text, size, "%s", plugin);
	else
		value_row_operand(row, text, size);
}

static void put_row(struct json *j, const struct values *v, const struct value_row *row)
{
	const struct value_procedure *p = row->procedure;
	const struct image_id *identity = &p->image->identity;
	char text[1024], id[IMAGE_ID_TEXT];

	json_open(j, '{');
	json_kstr(j, "image", p->image->path);
	json_kstr(j, "build_id", identity->size ? image_id_text(identity, id) : NULL);
	json_kaddr(j, "address", row->address);
	json_kstr(j, "procedure", p->name);
	json_kaddr(j, "start", p->start);
	json_kstr(j, "instruction",
		value_report_text(v->list, row, v->report.syntax, text, sizeof text) ? text : NULL);
	put_operand(v, row, text, sizeof text);
	json_kstr(j, "operand", text);
	json_kstr(j, "kind", kind_name(row->kind));
	value_report_site(v->list, row, text, sizeof text);
	json_kstr(j, "call_site", row->context ? text : NULL);
	json_kuint(j, "samples", row->samples);
	json_kuint(j, "time", row->time);
	json_kshare(j, "time_share", row->time_share);
	json_kbool(j, "telling", row->telling);
	json_kshare(j, "invariance", row->top.low);
	put_values(j, v, row);
	json_kstr(j, "advice", row->advice);
	json_close(j);
}

static void print_json(const struct values *v)
{
	const struct value_procedure **procedures;
	size_t n = value_report_procedures(v->list, &procedures);
	uint64_t left = v->report.rows ? v->report.rows : UINT64_MAX;
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "event", v->report.nevents ? v->report.event[0].name : NULL);
	json_kuint(&j, "time", value_report_time(v->list));
	json_kuint(&j, "values", value_report_values(v->list));
	json_kuint(&j, "edges", value_report_edges(v->list));
	json_kuint(&j, "refused", value_report_refused(v->list));
	json_kuint(&j, "nowhere", value_report_nowhere(v->list));
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < procedures[i]->n && left; k++, left--)
			put_row(&j, v, procedures[i]->rows[k]);
	json_close(&j);
	json_close(&j);
}

/* ---- values in words ---- */

static void add_value(const struct values *v, const struct value_row *row,
	const struct value_share *s, struct buf *out)
{
	char number[64], name[512];

	value_row_number(row, s->value, number, sizeof number);
	if (value_report_name(v->list, row, s, name, sizeof name) ||
		value_formats_put(v->formats, row->kind, s->value, name, sizeof name))
		buf_printf(out, "%s", name);
	else
		buf_printf(out, "%s", number);
	buf_printf(out, " %.1f%%±%.1f", 100 * s->share, ceil(1000 * error_of(s)) / 10);
}

/* What a list keeps only because it must keep something is not worth reading. */
#define LEAST 0.001

/* The first of the values; targets go on in lines of their own. */
static void add_values(const struct values *v, const struct value_row *row, struct buf *out)
{
	struct value_share values[HOTLIST_CAPACITY_MAX];
	size_t n = value_report_read(v->list, row, values), most = is_overview(v) ? 3 : 6;

	if (row->kind == VALUE_TARGET)
		most = 1;
	for (size_t i = 0; i < n && i < most && values[i].low >= LEAST; i++) {
		if (i)
			buf_printf(out, ", ");
		add_value(v, row, &values[i], out);
	}
	if (!out->n && n)
		buf_printf(out, "none over %.1f%%", ceil(1000 * values[0].high) / 10);
}

/* ---- text ---- */

enum { OPERAND_WIDTH = 22, VALUES_WIDTH = 34, INDENT = 38 };

static void print_more_targets(const struct values *v, const struct value_row *row)
{
	enum { MOST = 8 };
	struct value_share values[HOTLIST_CAPACITY_MAX];
	size_t n;

	if (row->kind != VALUE_TARGET || is_overview(v))
		return;
	n = value_report_read(v->list, row, values);
	for (size_t i = 1; i < n && i < MOST; i++) {
		struct buf text = {0};

		add_value(v, row, &values[i], &text);
		printf("%*s", INDENT + OPERAND_WIDTH, "");
		cmd_put(stdout, buf_cstr(&text));
		printf("\n");
		buf_deinit(&text);
	}
	if (row->edges > MOST)
		printf("%*sand %zu more\n", INDENT + OPERAND_WIDTH, "", row->edges - MOST);
}

static void print_row(const struct values *v, const struct value_row *row)
{
	char operand[128], text[1024], site[512];
	struct buf values = {0};

	put_operand(v, row, operand, sizeof operand);
	add_values(v, row, &values);
	printf("%7.2f%% %8" PRIu64 "  %16" PRIx64 "  ", 100 * row->time_share, row->samples,
		row->address);
	printf("%-*s  ", OPERAND_WIDTH, operand);
	cmd_put(stdout, buf_cstr(&values));
	for (size_t n = text_columns(buf_cstr(&values)); n < VALUES_WIDTH; n++)
		putchar(' ');
	printf("  ");
	cmd_put(stdout,
		value_report_text(v->list, row, v->report.syntax, text, sizeof text) ? text : "?");
	printf("\n");
	buf_deinit(&values);
	print_more_targets(v, row);
	if (row->context) {
		value_report_site(v->list, row, site, sizeof site);
		printf("%*scalled from ", INDENT, "");
		cmd_put(stdout, site);
		printf("\n");
	}
	if (row->advice) {
		printf("%*s%s=> ", INDENT - 28, "", term_bold());
		cmd_put(stdout, row->advice);
		printf("%s\n", term_reset());
	}
}

static void print_procedure_heading(const struct values *v, const struct value_procedure *p)
{
	printf("\n%s", term_bold());
	cmd_put(stdout, p->name);
	printf("%s  %.2f%% of the time  ", term_reset(),
		100 * share_of(p->time, value_report_time(v->list)));
	cmd_put(stdout, p->image->path);
	printf(" at 0x%" PRIx64 "\n", p->start);
}

/* Returns how many rows were printed. */
static uint64_t print_procedure(
	const struct values *v, const struct value_procedure *p, uint64_t most)
{
	uint64_t printed = 0, hidden = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct value_row *row = p->rows[i];
		bool full = printed >= most || (is_overview(v) && !v->report.rows &&
						       printed >= OVERVIEW_EACH && !row->advice);

		if (is_overview(v) && is_covered(p, row))
			continue;
		if (full) {
			hidden++;
			continue;
		}
		if (!printed++)
			print_procedure_heading(v, p);
		print_row(v, row);
	}
	if (hidden && printed)
		printf("%*sand %" PRIu64 " more\n", INDENT, "", hidden);
	return printed;
}

static void print_heading(const struct values *v)
{
	uint64_t refused = value_report_refused(v->list), nowhere = value_report_nowhere(v->list);

	printf("%" PRIu64 " values, %" PRIu64 " edge samples", value_report_values(v->list),
		value_report_edges(v->list));
	if (v->report.nevents)
		printf(", %s = %" PRIu64 " samples", v->report.event[0].name,
			value_report_time(v->list));
	printf("\n");
	if (refused)
		printf("%" PRIu64 " more values found no room when they were collected\n", refused);
	if (nowhere)
		printf("%" PRIu64 " of the values are in no procedure that the database knows\n",
			nowhere);
	printf("Time is that of the code around an instruction; ± has the ends of the 95%% "
	       "interval.\n\n");
	printf("%s%8s %8s  %16s  %-*s  %-*s  %s%s\n", term_bold(), "time", "values", "address",
		OPERAND_WIDTH, "operand", VALUES_WIDTH, "values seen", "instruction", term_reset());
}

static void print_rows(const struct values *v)
{
	const struct value_procedure **procedures;
	size_t n = value_report_procedures(v->list, &procedures);
	uint64_t most = v->report.rows   ? v->report.rows
			: is_overview(v) ? OVERVIEW_ROWS
					 : UINT64_MAX;
	size_t i;

	for (i = 0; i < n && most; i++)
		most -= print_procedure(v, procedures[i], most);
	if (i < n)
		printf("\nand %zu more procedures (-n shows more rows)\n", n - i);
}

static void print_text(const struct values *v)
{
	uint64_t left_out = value_report_left_out(v->list);

	if (!value_report_values(v->list) && !value_report_edges(v->list)) {
		printf("no values in what was selected; 'culprit record --values' keeps them\n");
		return;
	}
	print_heading(v);
	print_rows(v);
	if (!value_report_rows(v->list))
		printf("nothing to show%s\n",
			value_report_time(v->list) < FEW_SAMPLES
				? "; the samples are few: record longer, or more often (-F 2000)"
				: "");
	if (is_overview(v) && left_out)
		printf("\n%" PRIu64 " other lists of values are not shown: under %d values, under "
		       "%.0f%% alike, addresses, or\nwhat the code alone decides; name a procedure "
		       "or use --json to see them\n",
			left_out, OVERVIEW_SAMPLES, 100 * OVERVIEW_SHARE);
	report_epochs_note(&v->report);
}

/* ---- options ---- */

enum {
	VALUES_TARGETS = REPORT_LAST,
	VALUES_STRIDES,
	VALUES_LATENCY,
	VALUES_BY_CALL_SITE,
	VALUES_KIND,
	VALUES_PLUGIN,
};

static int ask_kind(struct values *v, unsigned kind)
{
	if (v->nkinds < sizeof v->kinds / sizeof *v->kinds)
		v->kinds[v->nkinds++] = kind;
	return 0;
}

static int set_kind(struct values *v, const char *name)
{
	for (unsigned k = 0; k < VALUE_ENTRY0; k++)
		if (!strcmp(name, value_kind_name(k)))
			return ask_kind(v, k);
	if (!strcmp(name, "entry"))
		return ask_kind(v, KIND_ENTRY);
	if (!strcmp(name, "target"))
		return ask_kind(v, VALUE_TARGET);
	if (!strcmp(name, "plugin"))
		return ask_kind(v, VALUE_PLUGIN0);
	return cmd_usage("values",
		"--kind takes result, source, address, stride, latency, conflict, float, length, "
		"entry, target or plugin, not '%s'",
		name);
}

static int values_option(void *arg, int c, const char *value)
{
	struct values *v = arg;
	struct err e = {0};

	switch (c) {
	case VALUES_TARGETS:
		return ask_kind(v, VALUE_TARGET);
	case VALUES_STRIDES:
		return ask_kind(v, VALUE_STRIDE);
	case VALUES_LATENCY:
		return ask_kind(v, VALUE_LATENCY);
	case VALUES_BY_CALL_SITE:
		v->by_call_site = true;
		return 0;
	case VALUES_KIND:
		return set_kind(v, value);
	case VALUES_PLUGIN:
		return value_formats_add(v->formats, value, &e) ? cmd_fail(&e) : 0;
	}
	return 1;
}

static int parse(struct values *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG, REPORT_SYNTAX_LONG,
		{"targets", no_argument, NULL, VALUES_TARGETS},
		{"strides", no_argument, NULL, VALUES_STRIDES},
		{"latency", no_argument, NULL, VALUES_LATENCY},
		{"by-call-site", no_argument, NULL, VALUES_BY_CALL_SITE},
		{"kind", required_argument, NULL, VALUES_KIND},
		{"plugin", required_argument, NULL, VALUES_PLUGIN}, {0}};
	static const struct report_verb verb = {
		"values", ":n:" REPORT_SHORT, options, values_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	return rc ? rc : report_operand("values", argc, argv, &v->what);
}

/* ---- the whole ---- */

static int report(struct values *v, struct err *e)
{
	struct value_report_options how = {.what = v->what,
		.pattern = v->report.procedure,
		.by_score = !v->what,
		.wanted = is_wanted,
		.arg = v};
	int rc = report_select(&v->report, NULL, e);

	if (!rc)
		rc = value_report_create(v->report.sel, &how, &v->list, e);
	if (rc)
		return rc;
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else
		print_text(v);
	return 0;
}

int cmd_values(int argc, char **argv)
{
	struct values v = {.formats = value_formats_create()};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("values");
	else if (!code && report(&v, &e))
		code = cmd_fail(&e);
	value_formats_destroy(v.formats);
	value_report_destroy(v.list);
	report_deinit(&v.report);
	return code;
}
