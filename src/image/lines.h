/*
 * Source lines from DWARF, in the file itself or in a separate debug file (by build-id under
 * /usr/lib/debug, by .gnu_debuglink, or from debuginfod when DEBUGINFOD_URLS is set).
 */
#ifndef CULPRIT_IMAGE_LINES_H
#define CULPRIT_IMAGE_LINES_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct image_id;
struct lines;

struct line {
	const char *file; /* lives as long as the struct lines */
	int line;
	unsigned discriminator; /* which part of it */
};

/* One of the lines that an address has: the function's that was inlined there, or who called it. */
struct inlined_line {
	const char *function; /* NULL when nothing names it */
	const char *file;     /* NULL when unknown */
	int line;             /* 0 when unknown */
	/* As compilers that read profiles want it. */
	const char *linkage;    /* the function's name in symbol tables */
	int declared;           /* the line that it begins at, 0 unknown */
	unsigned discriminator; /* which of the code that the line has */
};

/*
 * Opens the lines of an image by its path; when id is given the file must have that identity
 * (-ESTALE otherwise: the file was replaced since). -ENOENT when there is no line information.
 */
int lines_open(const char *path, const struct image_id *id, struct lines **out, struct err *e);
void lines_destroy(struct lines *l);
int lines_at(struct lines *l, uint64_t vaddr, struct line *out); /* -ENOENT when unknown */
/* The innermost first, the function that has a body last; how many, 0 when unknown. */
size_t lines_inlined(struct lines *l, uint64_t vaddr, struct inlined_line *out, size_t most);

/*
 * One line of a source file without its newline, "" when it is not there. Files are read once; the
 * text lives as long as the struct lines.
 */
const char *lines_source(struct lines *l, const char *file, int line);

#endif
