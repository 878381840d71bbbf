/*
 * The frequencies of all procedures of an image that were sampled, each by itself: what its file,
 * profiles, edges and pairs say is read once.
 *
 * Procedures without code are left out. The selection must outlive it.
 */
#ifndef CULPRIT_ANALYZE_FREQUENCIES_H
#define CULPRIT_ANALYZE_FREQUENCIES_H

#include "analyze/frequency.h"

struct err;
struct frequencies;
struct why_machine;

struct frequencies_row {
	uint32_t procedure; /* its number in the image */
	struct evidence *evidence;
	struct frequency *frequency;
};

/* The machine tells scales by how long code takes (why.h); NULL: they come without that. */
int frequencies_create(struct selection *sel, struct selected_image *im,
	const struct why_machine *machine, struct frequencies **out, struct err *e);
void frequencies_destroy(struct frequencies *f);

/* Rows are by procedure. */
size_t frequencies_rows(const struct frequencies *f, const struct frequencies_row **out);
const struct frequencies_row *frequencies_of(
	const struct frequencies *f, uint32_t procedure); /* NULL: none */

/* Samples of the time event in procedures that have no row. */
uint64_t frequencies_left_out(const struct frequencies *f);

#endif
