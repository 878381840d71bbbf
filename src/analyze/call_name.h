/*
 * Names for the places of call trees (calls/tree.h), by the images of a selection.
 */
#ifndef CULPRIT_ANALYZE_CALL_NAME_H
#define CULPRIT_ANALYZE_CALL_NAME_H

#include "analyze/selection.h"
#include "calls/tree.h"

#include <stddef.h>

struct buf;

/* The image with this key; NULL: it is not in the database. */
struct selected_image *call_name_image(const struct selection *sel, uint64_t key);

/* "image!0x4330" where nothing names it, "[unknown]" where nothing is known. Returns text. */
const char *call_name(struct selection *sel, const struct call_place *at, char *text, size_t size);

/* A path, outermost first: "main > f > g". */
void call_name_path(
	struct selection *sel, const struct call_tree *t, uint32_t node, struct buf *out);

#endif
