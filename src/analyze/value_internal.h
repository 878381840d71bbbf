/*
 * What the parts of the report on values share: value_report.c (from profiles to rows),
 * value_ask.c (which rows) and value_words.c (rows in words).
 */
#ifndef CULPRIT_ANALYZE_VALUE_INTERNAL_H
#define CULPRIT_ANALYZE_VALUE_INTERNAL_H

#include "analyze/value_gather.h"
#include "analyze/value_report.h"
#include "base/mem.h"

struct value_report {
	struct value_gathering data;
	struct arena memory;
	VEC(const struct value_procedure *) procedures;
	size_t rows;
	uint64_t values, edges, nowhere, left_out;
	/* The code that a text was last asked of. */
	struct value_code *code;
	const struct value_procedure *code_of;
};

/* A row to be: all that was seen, before anybody asked for it. */
struct value_item {
	struct value_image *vi;
	uint32_t procedure;
	unsigned kind;
	uint64_t address, offset, context;
	uint64_t samples;
	const struct hotlist *list;
	size_t first_edge, edges;
};
typedef VEC(struct value_item) value_item_list;

/* File offset to virtual address; false when the image has nothing there. */
bool value_image_address(const struct selected_image *im, uint64_t offset, uint64_t *vaddr);

/* The procedure at an address, or CODE_NOWHERE. */
uint32_t value_procedure_at(const struct selected_image *im, uint64_t vaddr);

#endif
