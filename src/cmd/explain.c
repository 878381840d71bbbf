#include "cmd/explain.h"

#include "analyze/tally.h"
#include "base/err.h"
#include "base/term.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <string.h>

int explain_time(const struct report *r, size_t *event, struct err *e)
{
	size_t time = evidence_time_event(r->sel);

	if (time == SIZE_MAX && r->nevents)
		return err_set(e, -ENOENT,
			"no event selected in %s measures time: record cycles or cpu-clock, or "
			"select it with -e",
			r->input);
	*event = time;
	return 0;
}

static int find(struct explanation *x, struct report *r, const char *what, struct err *e)
{
	size_t event;
	int rc = report_select(r, NULL, e);

	if (!rc)
		rc = explain_time(r, &event, e);
	if (!rc)
		rc = tally_create(r->sel, TALLY_PROCEDURE, r->procedure, &x->tally, e);
	if (!rc)
		rc = report_choose(r, x->tally, what, &x->row, e);
	return rc;
}

/* One that has no estimate has no code, or no samples of time. Trying it alone says which. */
static int why_none(struct selection *sel, const struct explanation *x, struct selected_image *im,
	struct err *e)
{
	struct evidence *alone = NULL;
	int rc = evidence_create(sel, im, x->row->procedure, &alone, e);

	if (!rc && !alone->total)
		rc = err_set(e, -ENOENT, "%s has no samples that measure time", x->row->name);
	else if (!rc)
		rc = err_set(e, -E2BIG, "the control flow of %s is too tangled to be estimated",
			x->row->name);
	evidence_destroy(alone);
	return rc;
}

static int estimate(struct explanation *x, struct selection *sel, struct err *e)
{
	struct selected_image *im = selection_image(sel, x->row->image->id);
	const struct frequencies_row *row;
	int rc;

	cmd_progress("analysing %s", selected_image_name(im));
	rc = why_machine_init(&x->machine, sel, e);
	if (!rc)
		rc = frequencies_create(sel, im, &x->machine, &x->frequencies, e);
	cmd_progress_end();
	if (rc)
		return rc;
	row = frequencies_of(x->frequencies, x->row->procedure);
	if (!row)
		return why_none(sel, x, im, e);
	x->evidence = row->evidence;
	x->frequency = row->frequency;
	return listing_create(sel, im, x->row->procedure, &x->listing, e);
}

int explanation_init(struct explanation *x, struct report *r, const char *what, struct err *e)
{
	int rc = find(x, r, what, e);

	if (!rc)
		rc = estimate(x, r->sel, e);
	if (!rc)
		rc = why_create(x->evidence, x->frequency, &x->machine, &x->why, e);
	return rc;
}

void explanation_deinit(struct explanation *x)
{
	why_destroy(x->why);
	why_machine_deinit(&x->machine);
	listing_destroy(x->listing);
	frequencies_destroy(x->frequencies);
	tally_destroy(x->tally);
}

static int line_at(void *arg, uint64_t address, enum isa_syntax syntax, struct listing_line *out)
{
	return listing_at(arg, address, syntax, out);
}

void explanation_view(struct explanation *x, const struct report *r, struct why_view *v)
{
	const struct selected_image *im = x->row->image;
	const struct selected_event *event = &r->event[evidence_time_event(r->sel)];

	v->why = x->why;
	v->procedure = x->row->name;
	v->image = im->path;
	v->build_id = im->identity.size ? image_id_text(&im->identity, x->build_id) : NULL;
	v->start = x->row->start;
	v->event = event->name;
	v->all = event->account.attributed + event->account.unknown;
	v->syntax = r->syntax;
	v->width = term_width();
	v->line = line_at;
	v->arg = x->listing;
}

bool explain_saw_branches(const struct evidence *ev)
{
	if (ev->counts)
		return true;
	for (uint32_t i = 0; i < ev->flow->graph.edges; i++)
		if (ev->edges[i])
			return true;
	return ev->nways;
}

void explain_notes(const char *what, bool branches, const struct why_machine *m)
{
	if (!branches)
		cmd_note("no branch of %s was seen: counts are guesses; record longer, as root and "
			 "with BPF ('culprit doctor')",
			what);
	if (!m->known)
		cmd_note("no model of the processor that was sampled: best cases are those of %s",
			model_title(m->model));
}

void explanation_notes(const struct explanation *x)
{
	const struct flow *f = x->evidence->flow;

	explain_notes(
		x->row->name, f->nblocks <= 1 || explain_saw_branches(x->evidence), &x->machine);
}
