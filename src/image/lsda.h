/*
 * The language-specific data of a function (LSDA), in the format that the compilers of C++, Rust
 * and others share: which stretches of code ("call sites") are left through which landing pads.
 *
 *   u8        encoding of LPStart, which follows unless omitted (then it is the function's start)
 *   u8        encoding of types; unless omitted the offset of their table's end follows (uleb)
 *   u8        encoding of call sites
 *   uleb      bytes of call sites: start, length, landing pad (0: none), action (uleb) each
 *   ...       actions: type filter (sleb), distance to the next one from its own place (sleb)
 *   ...       types, the first one last; behind their end, exception specifications
 */
#ifndef CULPRIT_IMAGE_LSDA_H
#define CULPRIT_IMAGE_LSDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct lsda {
	struct cursor bytes; /* all from its start; the end is not known */
	uint64_t function, pads;
	uint8_t types, call_sites; /* encodings */
	size_t types_end;          /* offset of the end of the table, 0: none */
	size_t actions;            /* offset */
	struct cursor sites;
};

struct lsda_site {
	uint64_t start, size;
	uint64_t pad;    /* 0: unwinding goes on */
	uint64_t action; /* 1 + offset in the actions, 0: only cleaning up */
};

/* -EBADMSG when it is damaged or of another format. */
int lsda_open(const void *p, size_t n, uint64_t vaddr, uint64_t function, struct lsda *out);

bool lsda_next(
	struct lsda *l, struct lsda_site *out); /* false at the end; sites.failed on damage */

#endif
