/*
 * A path in words: its blocks as addresses, its source lines as ranges.
 */
#ifndef CULPRIT_CMD_PATH_FORMAT_H
#define CULPRIT_CMD_PATH_FORMAT_H

#include "analyze/selection.h"
#include "base/buf.h"
#include "store/shape.h"

const char *path_start_name(uint8_t start); /* "entry", "loop", "entered" */
const char *path_end_name(uint8_t end);     /* "return", "tail", "next", "stop" */

/* "entry 4a30 4a44 -> 4a30"; of more than `most` blocks the middle is left out; 0: never. */
void path_format(const struct path_shape *s, uint32_t most, struct buf *out);

/* Source lines of paths: files of debug information are opened once. */
struct path_codes;
struct path_lines;
struct path_lines *path_lines_create(struct path_codes *codes);
void path_lines_destroy(struct path_lines *p); /* takes NULL */
/* Appends "deflate.c:123-130,140 zip.h:12"; nothing when no line is known. */
void path_lines_format(struct path_lines *p, const struct selected_image *im,
	const struct procedure *procedure, const struct path_shape *s, struct buf *out);

#endif
