/*
 * All that is known of one procedure, brought together for the verbs that show it: frequencies
 * (those of its whole image, since procedures tell of each other), why, and its text.
 */
#ifndef CULPRIT_CMD_EXPLAIN_H
#define CULPRIT_CMD_EXPLAIN_H

#include "analyze/frequencies.h"
#include "analyze/why.h"
#include "cmd/why_view.h"

struct err;
struct report;
struct tally;
struct tally_row;

struct explanation {
	struct tally *tally;
	const struct tally_row *row;
	struct frequencies *frequencies;
	const struct evidence *evidence;
	const struct frequency *frequency;
	struct why_machine machine;
	struct why *why;
	struct listing *listing;
	char build_id[IMAGE_ID_TEXT];
};

/* Selects, finds the procedure that is meant and explains it. */
int explanation_init(struct explanation *x, struct report *r, const char *what, struct err *e);
void explanation_deinit(struct explanation *x); /* before the report's */

/* What the views need of it; options of the view are left as they are. */
void explanation_view(struct explanation *x, const struct report *r, struct why_view *v);

/* Says on standard error what weakens it, if anything does. */
void explanation_notes(const struct explanation *x);

bool explain_saw_branches(const struct evidence *ev);
/* The same for all of `what`. */
void explain_notes(const char *what, bool branches, const struct why_machine *m);

/* -ENOENT with a message when no selected event measures time; its number else. */
int explain_time(const struct report *r, size_t *event, struct err *e);

#endif
