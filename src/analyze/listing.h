/*
 * One procedure, instruction by instruction, with its samples and source lines (dcpilist).
 *
 * Code comes from the database, or from the file as long as it is the one that was sampled; without
 * either only the addresses that got samples are listed.
 */
#ifndef CULPRIT_ANALYZE_LISTING_H
#define CULPRIT_ANALYZE_LISTING_H

#include "analyze/selection.h"
#include "isa/decode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct listing;

/* The selection must outlive the listing; the image's procedures are loaded. */
int listing_create(struct selection *sel, struct selected_image *im, uint32_t procedure,
	struct listing **out, struct err *e);
void listing_destroy(struct listing *l);

const struct procedure *listing_procedure(const struct listing *l);
uint64_t listing_total(const struct listing *l, size_t event);
uint64_t listing_hottest(
	const struct listing *l, size_t event);       /* samples at one address, at most */
const char *listing_no_code(const struct listing *l); /* why there is no code; NULL: there is */
const char *listing_no_lines(struct listing *l);      /* why there are no source lines */

struct listing_line {
	uint64_t address;
	uint32_t range;   /* of the procedure: 0 the main one, then its fragments */
	const char *text; /* NULL without code */
	const char *file; /* NULL when unknown */
	int line;
	const char *source;      /* the text of that line, "" when it is not there */
	const uint64_t *samples; /* one for each event */
};

/* Calls fn for each instruction; strings are good during the call. A nonzero value stops. */
typedef int listing_fn(void *arg, const struct listing_line *line);
int listing_each(struct listing *l, enum isa_syntax syntax, listing_fn *fn, void *arg);

/*
 * The instruction at an address, which may overlap those of listing_each; -ENOENT where there is no
 * code. Strings are good until the next call.
 */
int listing_at(
	struct listing *l, uint64_t address, enum isa_syntax syntax, struct listing_line *out);

#endif
