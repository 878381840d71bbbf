/*
 * How often code ran, as `export` writes it for people, BOLT and compilers: what edited programs
 * counted, and estimates from samples for procedures that were not.
 *
 * Counts of procedures whose scale is relative are right within the procedure only; between them
 * they are as good as a guess from the machine's best case.
 */
#ifndef CULPRIT_EXPORT_CODE_COUNTS_H
#define CULPRIT_EXPORT_CODE_COUNTS_H

#include "analyze/frequency.h"
#include "analyze/selection.h"
#include "base/vec.h"

#include <stdint.h>

struct err;
struct code_counts;

struct code_block {
	uint64_t start;
	uint32_t size;
	double count;
	enum frequency_confidence confidence;
};

struct code_edge {
	uint64_t from, to; /* the branch, and the block that it leads to */
	double count;
	enum frequency_confidence confidence;
};

struct code_procedure {
	const struct procedure *procedure;
	enum frequency_scale scale;
	size_t block, edge; /* its first ones in the image's lists */
	size_t nblocks, nedges;
};

struct code_image {
	struct selected_image *image;
	VEC(struct code_procedure) procedures; /* by start */
	VEC(struct code_block) blocks;
	VEC(struct code_edge) edges;
};

/* The selection must outlive it. */
int code_counts_create(struct selection *sel, struct code_counts **out, struct err *e);
void code_counts_destroy(struct code_counts *c); /* takes NULL */

/* Images by path. */
size_t code_counts_images(const struct code_counts *c, const struct code_image **out);
uint64_t code_counts_left_out(const struct code_counts *c); /* samples without code */

#endif
