/*
 * The instructions of paths: code of one procedure, walked as a path goes through it.
 *
 * A path names the starts of its blocks only. A block ends where control can leave it, or where the
 * next one of the path begins.
 */
#ifndef CULPRIT_ANALYZE_PATH_CODE_H
#define CULPRIT_ANALYZE_PATH_CODE_H

#include "analyze/selection.h"
#include "isa/decode.h"
#include "store/shape.h"

#include <stdint.h>

struct path_code;
struct path_codes;

/* The code of whole images, read when it is first asked for. The selection must outlive it. */
struct path_codes *path_codes_create(struct selection *sel);
void path_codes_destroy(struct path_codes *c); /* takes NULL */

/*
 * Of one procedure: from the database, or from the file as long as it is the one that ran; -ENOENT
 * without either. Good until the next one is made.
 */
int path_code_create(struct path_codes *codes, const struct selected_image *im,
	const struct procedure *p, struct path_code **out);
void path_code_destroy(struct path_code *c); /* takes NULL */

/* How many instructions a path has; 0 when some of its code is not there. */
uint64_t path_code_length(struct path_code *c, const struct path_shape *s);

/* Calls fn with the address of each; -ENOENT where code is missing. */
typedef void path_code_fn(void *arg, uint64_t address);
int path_code_each(struct path_code *c, const struct path_shape *s, path_code_fn *fn, void *arg);

/* Calls fn with each instruction of a block, as far as there is code. */
typedef void path_code_insn_fn(void *arg, const struct insn *insn);
void path_code_block(
	struct path_code *c, uint64_t start, uint32_t size, path_code_insn_fn *fn, void *arg);

#endif
