/*
 * What values are kept of: the procedures and images that a user named.
 *
 * A name is that of an image (its path or base name), of a procedure, or both as IMAGE!PROCEDURE,
 * where the procedure may be an address inside it ("gzip!0x4330", as procedures without a name are
 * shown). Names may be patterns of the shell. Nobody has to know beforehand where the code will be:
 * an image is looked through when it is first met.
 */
#ifndef CULPRIT_COLLECT_ONLY_H
#define CULPRIT_COLLECT_ONLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image_cache;
struct only;
struct process;
struct process_table;

#define ONLY_MOST 64 /* names */

/* Whether this can be a name. */
int only_check(const char *name, struct err *e);

/* NULL for no names. What is given outlives it. */
struct only *only_create(const char *const *names, size_t n, struct image_cache *images,
	struct process_table *processes);
void only_destroy(struct only *o); /* takes NULL */

/* Whether this place is in what was named; notes that something of it was seen. */
bool only_keeps(struct only *o, uint32_t image, uint64_t offset);

/* Whether a process, or the kernel, has anything of it; true while nobody can tell. */
bool only_concerns_process(struct only *o, const struct process *p);
bool only_concerns_kernel(struct only *o);

/* After image_cache_flushed: images have other numbers now. */
void only_flushed(struct only *o);

/* What came of a name. */
struct only_result {
	const char *name;
	bool found;          /* an image or a procedure that was met has it */
	bool seen;           /* and something of it was kept */
	const char *nearest; /* the most similar name that was met, NULL: none is */
};
void only_result(const struct only *o, size_t n, struct only_result *out);

#endif
