#include "cmd/why_program.h"

#include "analyze/tally.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "cmd/shorten.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Rows without -n. */
enum { TEXT_ROWS = 20, JSON_ROWS = 100 };

/* One of the instructions that lose most. */
struct worst {
	const struct tally_row *row;
	struct why_place place;
	enum frequency_scale scale;
	bool likeliest; /* that is relative, but told roughly */
	enum frequency_confidence confidence;
	double count; /* as the frequencies have it */
	char *text, *file;
	int line;
};

struct overview {
	struct report *report;
	size_t event; /* that measures time */
	struct tally *tally;
	VEC(const struct tally_row *) rows; /* of the tally, by image */
	struct why_machine machine;
	struct why_program program;
	double per_sample; /* cycles, 0 until one procedure was analysed */
	uint64_t samples, unseen, relative, known;
	size_t procedures;
	bool branches;             /* some were seen */
	VEC(struct worst *) worst; /* most lost first */
};

/* ---- analysing ---- */

static int by_image(const void *a, const void *b)
{
	const struct tally_row *x = *(const struct tally_row *const *)a,
			       *y = *(const struct tally_row *const *)b;

	if (x->image != y->image)
		return x->image->id < y->image->id ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void worst_destroy(struct worst *w)
{
	free(w->text);
	free(w->file);
	free(w);
}

static bool is_among_the_worst(const struct overview *o, double lost)
{
	size_t n = o->worst.n;

	return lost > 0 && (n < o->report->rows || lost > o->worst.p[n - 1]->place.lost);
}

static void keep(struct overview *o, struct worst *w)
{
	size_t at;

	if (o->worst.n == o->report->rows)
		worst_destroy(o->worst.p[--o->worst.n]);
	at = o->worst.n;
	*vec_add(&o->worst) = w;
	for (; at && o->worst.p[at - 1]->place.lost < w->place.lost; at--)
		o->worst.p[at] = o->worst.p[at - 1];
	o->worst.p[at] = w;
}

static void consider_block(
	struct overview *o, const struct tally_row *row, const struct why *why, uint32_t block)
{
	const struct flow_block *b = &why->evidence->flow->blocks[block];

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		double lost = why_lost(why, &why->insns[i]);
		struct worst *w;

		if (!is_among_the_worst(o, lost))
			continue;
		w = xcalloc(1, sizeof *w);
		w->row = row;
		w->scale = why->frequency->scale;
		w->likeliest = why->likeliest;
		w->confidence = why->frequency->block[block].confidence;
		w->count = why->frequency->block[block].count;
		why_place_init(&w->place, why, i);
		keep(o, w);
	}
}

static int add_procedure(struct overview *o, const struct tally_row *row,
	const struct frequencies_row *known, struct err *e)
{
	const struct evidence *ev = known->evidence;
	struct why *why;
	int rc = why_create(ev, known->frequency, &o->machine, &why, e);

	if (rc)
		return rc;
	o->per_sample = why->sample;
	o->procedures++;
	o->branches = o->branches || explain_saw_branches(ev);
	if (known->frequency->scale == FREQUENCY_RELATIVE)
		o->relative += row->samples[o->event];
	else
		o->known += row->samples[o->event];
	why_program_add(&o->program, why);
	for (uint32_t b = 0; b < ev->flow->nblocks; b++)
		consider_block(o, row, why, b);
	why_destroy(why);
	return 0;
}

/* The rows of one image, which stand together. */
static int add_image(
	struct overview *o, const struct tally_row *const *rows, size_t n, struct err *e)
{
	struct selection *sel = o->report->sel;
	struct selected_image *im = selection_image(sel, rows[0]->image->id);
	struct frequencies *f = NULL;
	int rc = im ? frequencies_create(sel, im, &o->machine, &f, e) : 0;

	for (size_t i = 0; i < n && !rc; i++) {
		const struct frequencies_row *known =
			f && rows[i]->known ? frequencies_of(f, rows[i]->procedure) : NULL;

		if (known)
			rc = add_procedure(o, rows[i], known, e);
		else
			o->unseen += rows[i]->samples[o->event];
	}
	frequencies_destroy(f);
	return rc;
}

static int analyse(struct overview *o, struct err *e)
{
	const struct tally_row *rows;
	size_t n = tally_rows(o->tally, &rows), end;
	int rc = why_machine_init(&o->machine, o->report->sel, e);

	for (size_t i = 0; i < n; i++)
		if (rows[i].samples[o->event])
			*vec_add(&o->rows) = &rows[i];
	vec_sort(&o->rows, by_image);
	for (size_t i = 0; i < o->rows.n && !rc; i = end) {
		end = i + 1;
		while (end < o->rows.n && o->rows.p[end]->image == o->rows.p[i]->image)
			end++;
		cmd_progress("%zu of %zu procedures analysed", i, o->rows.n);
		rc = add_image(o, o->rows.p + i, end - i, e);
	}
	cmd_progress_end();
	why_program_add_unseen(&o->program, (double)o->unseen * o->per_sample);
	return rc;
}

/* The text of the worst instructions, once it is certain which they are. */
static void find_text(struct overview *o)
{
	struct selection *sel = o->report->sel;

	vec_each (it, &o->worst) {
		struct worst *w = *it;
		struct selected_image *im = selection_image(sel, w->row->image->id);
		struct listing_line line;
		struct listing *l;

		if (listing_create(sel, im, w->row->procedure, &l, NULL))
			continue;
		if (!listing_at(l, w->place.address, o->report->syntax, &line)) {
			w->text = xstrdup(line.text);
			w->file = line.file ? xstrdup(line.file) : NULL;
			w->line = line.line;
		}
		listing_destroy(l);
	}
}

static double all_cycles(const struct overview *o)
{
	return o->program.known + o->program.relative + o->program.unseen;
}

/* ---- JSON ---- */

static void put_worst(struct json *j, const struct overview *o, const struct worst *w)
{
	const struct selected_image *im = w->row->image;
	const struct why_insn *i = &w->place.insn;
	char id[IMAGE_ID_TEXT];

	json_open(j, '{');
	json_kstr(j, "procedure", w->row->name);
	json_kstr(j, "image", im->path);
	json_kaddr(j, "start", w->row->start);
	json_kstr(j, "build_id", im->identity.size ? image_id_text(&im->identity, id) : NULL);
	json_kaddr(j, "address", w->place.address);
	json_kstr(j, "text", w->text);
	json_kstr(j, "file", w->file);
	if (w->file)
		json_kint(j, "line", w->line);
	else
		json_kstr(j, "line", NULL);
	json_kdouble(j, "samples", i->samples);
	json_kshare(j, "share", i->samples / (double)o->samples);
	json_kshare(j, "lost", w->place.lost / all_cycles(o));
	json_kstr(j, "scale", frequency_scale_name(w->scale));
	json_kdouble(j, "count", w->count);
	json_kstr(j, "confidence", frequency_confidence_name(w->confidence));
	json_kdouble(j, "cpi", i->cpi);
	json_kdouble(j, "cpi_low", i->cpi_low);
	json_kdouble(j, "cpi_high", i->cpi_high);
	json_kdouble(j, "min_cpi", i->min_cpi);
	json_kdouble(j, "unexplained", i->unexplained);
	why_place_json(&w->place, j);
	json_close(j);
}

static void put_cpi(struct json *j, const struct why_program *p)
{
	json_kdouble(j, "best_cpi", p->instructions > 0 ? p->best / p->instructions : NAN);
	json_kdouble(j, "actual_cpi", p->instructions > 0 ? p->known / p->instructions : NAN);
}

static void print_json(const struct overview *o)
{
	struct why_summary sum = why_program_summary(&o->program);
	struct why_summary relative = why_program_relative(&o->program);
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "event", o->report->nevents ? o->report->event[o->event].name : NULL);
	json_kuint(&j, "samples", o->samples);
	json_kuint(&j, "procedures", o->procedures);
	json_kshare(&j, "known", share_of(o->known, o->samples));
	json_kshare(&j, "relative", share_of(o->relative, o->samples));
	json_kshare(&j, "unseen", share_of(o->unseen, o->samples));
	put_cpi(&j, &o->program);
	json_kstr(&j, "machine", o->machine.model ? model_name(o->machine.model) : NULL);
	json_key(&j, "summary");
	why_summary_json(&sum, &j);
	json_key(&j, "relative_summary");
	why_summary_json(&relative, &j);
	json_key(&j, "rows");
	json_open(&j, '[');
	vec_each (w, &o->worst)
		put_worst(&j, o, *w);
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static void print_heading(const struct overview *o)
{
	const struct why_program *p = &o->program;

	printf("%s = %" PRIu64 " samples, %zu procedures analysed on %s\n",
		o->report->event[o->event].name, o->samples, o->procedures,
		model_title(o->machine.model));
	printf("%6.2f%% of the time is in procedures whose counts are known\n",
		100 * share_of(o->known, o->samples));
	printf("%6.2f%% where counts are known relative to each other only\n",
		100 * share_of(o->relative, o->samples));
	printf("%6.2f%% where there is no code or no procedure\n\n",
		100 * share_of(o->unseen, o->samples));
	if (p->instructions > 0) {
		struct why_summary sum = why_program_summary(p);

		printf("*** where counts are known: best case %.2f CPI, actual %.2f CPI\n***\n",
			p->best / p->instructions, p->known / p->instructions);
		why_summary_print(&sum, "*** ", stdout);
		printf("\n");
	}
	if (p->relative > 0) {
		struct why_summary sum = why_program_relative(&o->program);

		printf("*** where only ratios of counts are known, if code ran as often as is "
		       "likeliest, or where\n"
		       "*** nothing tells that, as its time allows (if it ran less often, dynamic "
		       "stalls are more and\n"
		       "*** all else is less)\n***\n");
		why_summary_print(&sum, "*** ", stdout);
		printf("\n");
	}
}

enum {
	LOST_WIDTH = 8,
	SAMPLES_WIDTH = 8,
	CYCLES_WIDTH = 10,
	ADDRESS_WIDTH = 14,
	INDENT = LOST_WIDTH + SAMPLES_WIDTH + CYCLES_WIDTH + ADDRESS_WIDTH + 2,
	TEXT_WIDTH = 48,
	WIDE = 130, /* columns of a terminal */
};

static void print_reasons(const struct worst *w)
{
	const struct why_insn *i = &w->place.insn;
	double least = 0.1 * (i->stopped + i->stall);
	char cycles[40];

	if (w->place.stopped >= least) {
		printf("%*c  %s ", INDENT - 2, why_cause_letter(i->cause),
			why_range(w->place.stopped, w->place.stopped, cycles));
		why_cause_words(&w->place, stdout);
		printf("\n");
	}
	for (uint32_t k = 0; k < w->place.ncharges; k++) {
		const struct why_charge *c = &w->place.charges[k];

		if (c->max < least)
			continue;
		printf("%*c  %s ", INDENT - 2, culprit_letter(c->culprit),
			why_range(c->min, c->max, cycles));
		why_charge_words(&w->place, c, stdout);
		printf("\n");
	}
	if (i->unexplained >= least)
		printf("%*c  %s unexplained\n", INDENT - 2, '?',
			why_range(i->unexplained, i->unexplained, cycles));
}

/* What comes behind the procedure's name: ", gzip, deflate.c:123". */
static char *image_and_line(const struct worst *w)
{
	const char *image = selected_image_name(w->row->image);
	const char *slash = w->file ? strrchr(w->file, '/') : NULL;

	if (!w->file)
		return xasprintf(", %s", image);
	return xasprintf(", %s, %s:%d", image, slash ? slash + 1 : w->file, w->line);
}

/* From a column of the terminal on; a long name gives way. */
static void print_procedure(const struct worst *w, size_t column)
{
	enum { LEAST = 16 };
	_cleanup_free_ char *behind = image_and_line(w);
	size_t width = (size_t)term_width(), used = column + text_columns(behind);
	size_t left = width > used + LEAST ? width - used : LEAST;
	_cleanup_free_ char *name = shorten_name(w->row->name, width ? left : 0);

	cmd_put(stdout, name);
	fputs(term_dim(), stdout);
	cmd_put(stdout, behind);
	printf("%s\n", term_reset());
}

/* Instruction and procedure: on one line where the terminal has room for both. */
static void print_where(const struct worst *w)
{
	const char *text = w->text ? w->text : "?";
	size_t columns = text_columns(text);

	if (term_width() >= WIDE) {
		size_t gap = columns < TEXT_WIDTH ? TEXT_WIDTH - columns : 2;

		cmd_put(stdout, text);
		printf("%*s", (int)gap, "");
		print_procedure(w, INDENT + columns + gap);
	} else {
		print_procedure(w, INDENT);
		printf("%*s", INDENT, "");
		cmd_put(stdout, text);
		printf("\n");
	}
}

static void print_worst(const struct overview *o, const struct worst *w)
{
	const struct why_insn *i = &w->place.insn;
	const char *bound = !isnan(i->cpi) ? "" : w->likeliest ? "~" : ">";
	char lost[16], cy[16], cycles[24];

	snprintf(lost, sizeof lost, "%s%.2f%%", bound, 100 * w->place.lost / all_cycles(o));
	snprintf(cycles, sizeof cycles, "%s%s", bound, why_cy(w->place.cycles, cy));
	printf("%s%*s%*.0f%*s%*" PRIx64 "%s  ", term_bold(), LOST_WIDTH, lost, SAMPLES_WIDTH,
		i->samples, CYCLES_WIDTH, cycles, ADDRESS_WIDTH, w->place.address, term_reset());
	print_where(w);
	print_reasons(w);
}

static void print_text(const struct overview *o)
{
	if (!o->samples) {
		printf("no samples\n");
		return;
	}
	print_heading(o);
	if (o->worst.n)
		printf("The instructions that lost most time to stalls:\n%s%*s%*s%*s%*s  "
		       "instruction%s\n",
			term_bold(), LOST_WIDTH, "lost", SAMPLES_WIDTH, "samples", CYCLES_WIDTH,
			"cycles", ADDRESS_WIDTH, "address", term_reset());
	vec_each (w, &o->worst)
		print_worst(o, *w);
	report_epochs_note(o->report);
}

/* ---- the whole ---- */

static int load(struct overview *o, struct err *e)
{
	struct report *r = o->report;
	int rc = report_select(r, NULL, e);

	if (!rc)
		rc = explain_time(r, &o->event, e);
	if (!rc)
		rc = tally_create(r->sel, TALLY_PROCEDURE, r->procedure, &o->tally, e);
	if (!rc && r->nevents)
		o->samples = tally_total(o->tally, o->event);
	if (!rc && o->samples)
		rc = analyse(o, e);
	return rc;
}

int why_program(struct report *r, struct err *e)
{
	struct overview o = {.report = r};
	int rc;

	if (!r->rows)
		r->rows = r->json ? JSON_ROWS : TEXT_ROWS;
	rc = load(&o, e);
	if (!rc) {
		find_text(&o);
		report_pager(r);
		if (r->json)
			print_json(&o);
		else
			print_text(&o);
		fflush(stdout);
		if (o.procedures)
			explain_notes("what was selected", o.branches, &o.machine);
	}
	vec_each (w, &o.worst)
		worst_destroy(*w);
	vec_deinit(&o.worst);
	vec_deinit(&o.rows);
	why_machine_deinit(&o.machine);
	tally_destroy(o.tally);
	return rc;
}
