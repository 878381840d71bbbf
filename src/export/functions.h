/*
 * The functions of stacks, for formats whose frames are not instructions: one by name, file and
 * line where it begins. Where functions were inlined a frame stands for several.
 */
#ifndef CULPRIT_EXPORT_FUNCTIONS_H
#define CULPRIT_EXPORT_FUNCTIONS_H

#include "base/vec.h"

#include <stdint.h>

struct functions;
struct selected_image;
struct stacks;

struct function {
	const char *name;
	const char *file; /* NULL: unknown */
	int line;         /* where it begins; 0: unknown */
	const struct selected_image *image;
};

typedef VEC(uint32_t) function_list;

struct functions *functions_create(const struct stacks *s);
void functions_destroy(struct functions *f); /* takes NULL */

size_t functions_all(const struct functions *f, const struct function **out);
/* Appends those of a frame of the stacks, the outermost first. */
void functions_of_frame(const struct functions *f, uint32_t frame, function_list *out);
/* Those of a node with all its callers, in a list that is used again. */
void functions_of_node(struct functions *f, uint32_t node, function_list *out);

#endif
