#include "analyze/frequencies.h"

#include "analyze/counted.h"
#include "analyze/even.h"
#include "analyze/excursions.h"
#include "analyze/scales.h"
#include "analyze/why.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Weights want frequencies, and these the weights: more turns change nothing any more. */
enum { TURNS = 2 };

/* The time of fewer samples than these says little, and there are many such procedures. */
enum { TIMED = 50 };
/* Of the samples: where fewer are outside of loads that may wait for long, the rest retires with
 * these, and its time tells nothing. On twelve programs scales were off by a factor of 2.7 there
 * (one standard deviation), by 1.6 above. */
#define TICKS 0.05

struct frequencies {
	VEC(struct frequencies_row) rows;
	uint64_t left_out;
};

static int by_procedure(const void *a, const void *b)
{
	const struct frequencies_row *x = a, *y = b;

	return x->procedure < y->procedure ? -1 : x->procedure > y->procedure;
}

/* A procedure that cannot be solved (no code, a graph too tangled) is left out. */
static bool is_fatal(int rc)
{
	return rc && rc != -ENOENT && rc != -EINVAL && rc != -EFBIG && rc != -E2BIG;
}

static int add_row(struct frequencies *f, struct evidence_source *source,
	const struct counted *counted, const struct evidence_procedure *p, struct err *e)
{
	struct frequencies_row row = {.procedure = p->procedure};
	int rc = evidence_take(source, p->procedure, &row.evidence, e);

	if (!rc && counted)
		counted_place(counted, row.evidence);
	if (!rc)
		rc = frequency_create(row.evidence, &row.frequency, e);
	if (!rc) {
		*vec_add(&f->rows) = row;
		return 0;
	}
	evidence_destroy(row.evidence);
	f->left_out += p->samples;
	return is_fatal(rc) ? rc : 0;
}

/* Once more, with outcomes that the estimates before have weighted. */
static int estimate_again(struct frequencies *f, struct selection *sel, struct selected_image *im,
	const double *factor, struct err *e)
{
	bool *changed = xcalloc(f->rows.n + 1, sizeof *changed);
	int rc = even_outcomes(sel, im, f->rows.p, f->rows.n, changed, e);

	if (!rc)
		excursions_weigh(f->rows.p, f->rows.n, factor, changed);
	for (size_t i = 0; i < f->rows.n && !rc; i++) {
		struct frequencies_row *row = &f->rows.p[i];

		if (row->evidence->counts || !changed[i])
			continue;
		rc = frequency_renew(&row->frequency, row->evidence, e);
		rc = is_fatal(rc) ? rc : 0;
	}
	free(changed);
	return rc;
}

/* How fast each row's code went by the counts as they are; NAN: that says nothing. */
static void find_tempos(
	const struct frequencies *f, const struct why_machine *machine, double *tempo)
{
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct frequencies_row *row = &f->rows.p[i];
		struct why_tempo_parts parts;
		struct err none;

		if (!machine || !row->evidence->timed || row->evidence->total < TIMED ||
			why_tempo(
				row->evidence, row->frequency, machine, &tempo[i], &parts, &none) ||
			parts.all - parts.far < TICKS * parts.all)
			tempo[i] = NAN;
	}
}

static int estimate_all(struct frequencies *f, struct selection *sel, struct selected_image *im,
	const struct why_machine *machine, struct err *e)
{
	double *tempo = xcalloc(f->rows.n + 1, sizeof *tempo);
	const struct scales_tempos tempos = {tempo, machine ? why_tempo_doubt(machine) : 0};
	double *factor = xcalloc(f->rows.n + 1, sizeof *factor);
	int rc = 0;

	for (size_t i = 0; i < f->rows.n; i++)
		factor[i] = 1;
	for (int turn = 0; turn < TURNS && !rc; turn++) {
		rc = estimate_again(f, sel, im, factor, e);
		if (!rc && turn < TURNS - 1 && machine) {
			find_tempos(f, machine, tempo);
			scales_guess(f->rows.p, f->rows.n, &tempos, factor);
		}
	}
	if (!rc) {
		find_tempos(f, machine, tempo);
		scales_apply(f->rows.p, f->rows.n, &tempos);
	}
	free(tempo);
	free(factor);
	return rc;
}

int frequencies_create(struct selection *sel, struct selected_image *im,
	const struct why_machine *machine, struct frequencies **out, struct err *e)
{
	struct frequencies *f = xcalloc(1, sizeof *f);
	const struct evidence_procedure *list;
	struct evidence_source *source = NULL;
	struct counted *counted = NULL;
	int rc = evidence_source_create(sel, im, &source, e);
	size_t n = rc ? 0 : evidence_source_procedures(source, &list);

	if (!rc)
		rc = counted_create(sel, im, &counted, e);
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_row(f, source, counted, &list[i], e);
	counted_destroy(counted);
	evidence_source_destroy(source);
	vec_sort(&f->rows, by_procedure);
	if (!rc)
		rc = estimate_all(f, sel, im, machine, e);
	if (rc) {
		frequencies_destroy(f);
		return rc;
	}
	*out = f;
	return 0;
}

void frequencies_destroy(struct frequencies *f)
{
	if (!f)
		return;
	vec_each (row, &f->rows) {
		frequency_destroy(row->frequency);
		evidence_destroy(row->evidence);
	}
	vec_deinit(&f->rows);
	free(f);
}

size_t frequencies_rows(const struct frequencies *f, const struct frequencies_row **out)
{
	*out = f->rows.p;
	return f->rows.n;
}

const struct frequencies_row *frequencies_of(const struct frequencies *f, uint32_t procedure)
{
	struct frequencies_row key = {.procedure = procedure};

	return f->rows.n ? bsearch(&key, f->rows.p, f->rows.n, sizeof key, by_procedure) : NULL;
}

uint64_t frequencies_left_out(const struct frequencies *f)
{
	return f->left_out;
}
