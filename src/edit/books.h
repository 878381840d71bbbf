/*
 * From what an edited file counted to how often everything ran.
 *
 * The books of a procedure balance when what came into it also left it. Where less left, some call
 * did not come back: the process ended inside it, or an exception or longjmp went past. Such a loss
 * is entered at a call when there is only one that can have it (all others call procedures
 * that always returned), or when the calls of procedures that did not return explain just that
 * much. Then the procedure is exact as any other. Else, and where more left than came (two threads
 * that count at once lose counts), its counts are near the truth and not called exact.
 *
 * Calls of other files are taken to come back where calls inside explain the loss.
 *
 * Where several threads or processes counted at once without locking, counts are lost anywhere, and
 * balanced books prove nothing: then no procedure is called exact.
 */
#ifndef CULPRIT_EDIT_BOOKS_H
#define CULPRIT_EDIT_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "store/exact.h"

typedef VEC(struct exact_row) exact_rows;

struct books_summary {
	uint32_t procedures, exact; /* that ran, that are exact */
	uint64_t blocks;            /* executions of blocks, all together */
};

struct books_source {
	const void *map; /* exact_map.h */
	size_t size;
	const uint64_t *counters; /* all that the map has */
	size_t n;
	bool killed; /* a process was ended by a signal, and so anywhere */
	bool shared; /* several counted at once, without locking */
};

/*
 * Appends the rows of all procedures that ran, as exact_pack wants them. -EBADMSG when the map is
 * damaged or there are fewer counters than it has.
 */
int books_close(const struct books_source *s, exact_rows *rows, struct books_summary *sum);

#endif
