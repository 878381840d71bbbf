/*
 * culprit list: one procedure, its source and assembly with samples (dcpilist).
 */
#include "analyze/listing.h"
#include "analyze/tally.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/source.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

struct list {
	struct report report;
	const char *what;
	bool no_source;
	struct tally *tally;
	const struct tally_row *row;
	struct listing *listing;
};

/* ---- JSON ---- */

struct json_list {
	struct json *j;
	const struct list *l;
};

static int put_line(void *arg, const struct listing_line *line)
{
	struct json_list *jl = arg;
	struct json *j = jl->j;

	json_open(j, '{');
	json_kaddr(j, "address", line->address);
	json_kstr(j, "text", line->text);
	json_kuint(j, "samples", line->samples[0]);
	json_kstr(j, "file", line->file);
	if (line->file)
		json_kint(j, "line", line->line);
	else
		json_kstr(j, "line", NULL);
	json_kstr(j, "source", line->file ? line->source : NULL);
	json_key(j, "counts");
	json_open(j, '[');
	for (size_t i = 0; i < jl->l->report.nevents; i++)
		json_uint(j, line->samples[i]);
	json_close(j);
	json_close(j);
	return 0;
}

static void print_json(struct list *l)
{
	char id[IMAGE_ID_TEXT];
	const struct image_id *identity = &l->row->image->identity;
	struct json j;
	struct json_list jl = {&j, l};

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "procedure", l->row->name);
	json_kstr(&j, "image", l->row->image->path);
	json_kaddr(&j, "start", l->row->start);
	json_kstr(&j, "build_id", identity->size ? image_id_text(identity, id) : NULL);
	json_key(&j, "events");
	json_open(&j, '[');
	for (size_t i = 0; i < l->report.nevents; i++) {
		json_open(&j, '{');
		json_kstr(&j, "name", l->report.event[i].name);
		json_kuint(&j, "samples", listing_total(l->listing, i));
		json_close(&j);
	}
	json_close(&j);
	json_key(&j, "lines");
	json_open(&j, '[');
	listing_each(l->listing, l->report.syntax, put_line, &jl);
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

struct text_list {
	const struct list *l;
	int address_width;
	uint32_t range;
	struct source_above source;
};

static int count_width(const struct list *l, size_t event)
{
	char digits[24];
	int need = snprintf(digits, sizeof digits, "%" PRIu64, listing_total(l->listing, event));
	int name = (int)strlen(l->report.event[event].name);

	return need > name ? need : name;
}

/* Columns in front of the addresses. */
static int counts_width(const struct list *l)
{
	int width = 9;

	for (size_t i = 0; i < l->report.nevents; i++)
		width += count_width(l, i) + 2;
	return width;
}

/* Red for what is at least half as hot as the hottest, bold for a hundredth of the procedure. */
static const char *heat(const struct list *l, uint64_t samples)
{
	if (samples && 2 * samples >= listing_hottest(l->listing, 0))
		return term_red();
	return share_of(samples, listing_total(l->listing, 0)) >= 0.01 ? term_bold() : "";
}

static void print_counts(const struct list *l, const uint64_t *samples)
{
	for (size_t i = 0; i < l->report.nevents; i++) {
		char count[24] = "", share[16] = "";

		if (samples[i]) {
			snprintf(count, sizeof count, "%" PRIu64, samples[i]);
			snprintf(share, sizeof share, "%.2f%%",
				100 * share_of(samples[i], listing_total(l->listing, i)));
		}
		printf("%*s  ", count_width(l, i), count);
		if (!i)
			printf("%7s  ", share);
	}
}

static int print_line(void *arg, const struct listing_line *line)
{
	struct text_list *t = arg;
	const char *colour = heat(t->l, line->samples[0]);

	if (line->range != t->range) {
		const struct range *r = &listing_procedure(t->l->listing)->ranges[line->range];
		t->range = line->range;
		printf("\nfragment at 0x%" PRIx64 ", %" PRIu64 " bytes:\n", r->start, r->size);
	}
	if (!t->l->no_source)
		source_above_print(&t->source, line, counts_width(t->l), stdout);
	fputs(colour, stdout);
	print_counts(t->l, line->samples);
	printf("%*" PRIx64 "  ", t->address_width, line->address);
	cmd_put(stdout, line->text ? line->text : "?");
	printf("%s\n", *colour ? term_reset() : "");
	return 0;
}

static void print_heading(const struct list *l)
{
	for (size_t i = 0; i < l->report.nevents; i++) {
		uint64_t all =
			l->report.event[i].account.attributed + l->report.event[i].account.unknown;
		uint64_t here = listing_total(l->listing, i);

		printf("%s%s = %" PRIu64 " (%.2f%% of all)", i ? ", " : "", l->report.event[i].name,
			here, 100 * share_of(here, all));
	}
	printf(" in ");
	cmd_put(stdout, l->row->name);
	printf("\n");
	cmd_put(stdout, l->row->image->path);
	printf(" at 0x%" PRIx64 "\n\n%s", l->row->start, term_bold());
	for (size_t i = 0; i < l->report.nevents; i++)
		printf("%*s  %s", count_width(l, i), l->report.event[i].name, i ? "" : "      %  ");
}

static int address_width(const struct list *l)
{
	const struct procedure *p = listing_procedure(l->listing);
	uint64_t last = 0;
	char digits[24];

	for (uint32_t i = 0; i < p->nranges; i++)
		if (p->ranges[i].start + p->ranges[i].size > last)
			last = p->ranges[i].start + p->ranges[i].size;
	return snprintf(digits, sizeof digits, "%" PRIx64, last);
}

static void print_text(struct list *l)
{
	struct text_list t = {.l = l, .address_width = address_width(l)};

	if (t.address_width < 7)
		t.address_width = 7;
	print_heading(l);
	printf("%*s  instruction%s\n", t.address_width, "address", term_reset());
	listing_each(l->listing, l->report.syntax, print_line, &t);
	source_above_deinit(&t.source);
	report_epochs_note(&l->report);
	fflush(stdout);
	if (listing_no_code(l->listing))
		cmd_note("only addresses are listed: %s", listing_no_code(l->listing));
	if (listing_no_lines(l->listing) && !l->no_source)
		cmd_note("no source of %s: %s", l->row->image->path, listing_no_lines(l->listing));
}

/* ---- options ---- */

enum { LIST_NO_SOURCE = REPORT_LAST };

static int list_option(void *arg, int c, const char *value)
{
	struct list *l = arg;

	(void)value;
	if (c != LIST_NO_SOURCE)
		return 1;
	l->no_source = true;
	return 0;
}

static int parse(struct list *l, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_SYNTAX_LONG,
		{"no-source", no_argument, NULL, LIST_NO_SOURCE}, {0}};
	static const struct report_verb verb = {"list", ":" REPORT_SHORT, options, list_option};
	int rc = report_parse(&l->report, &verb, l, argc, argv);

	if (!rc)
		rc = report_operand("list", argc, argv, &l->what);
	if (!rc && !l->what)
		return cmd_usage("list", "name a procedure, as 'culprit top' shows it");
	return rc;
}

/* ---- the whole ---- */

static int find(struct list *l, struct err *e)
{
	int rc = report_select(&l->report, NULL, e);

	if (!rc)
		rc = tally_create(
			l->report.sel, TALLY_PROCEDURE, l->report.procedure, &l->tally, e);
	if (!rc)
		rc = report_choose(&l->report, l->tally, l->what, &l->row, e);
	return rc;
}

static int report(struct list *l, struct err *e)
{
	struct selection *sel;
	int rc = find(l, e);

	if (rc)
		return rc;
	sel = l->report.sel;
	rc = listing_create(
		sel, selection_image(sel, l->row->image->id), l->row->procedure, &l->listing, e);
	if (rc)
		return rc;
	report_pager(&l->report);
	if (l->report.json)
		print_json(l);
	else
		print_text(l);
	return 0;
}

int cmd_list(int argc, char **argv)
{
	struct list l = {0};
	struct err e = {0};
	int code = parse(&l, argc, argv);

	if (code < 0)
		code = cmd_help_text("list");
	else if (!code && report(&l, &e))
		code = cmd_fail(&e);
	listing_destroy(l.listing);
	tally_destroy(l.tally);
	report_deinit(&l.report);
	return code;
}
