/*
 * What edited programs counted, into the database: as profiles of the original files, under an
 * event of its own that was not sampled.
 */
#ifndef CULPRIT_EDIT_RESULTS_H
#define CULPRIT_EDIT_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct blob_type;
struct err;

/* Of one image. Without a profile only its procedures are kept: others speak of them. */
struct result {
	const char *path;  /* of the original */
	const char *event; /* "exact" */
	const struct blob_type *type;
	struct buf packed;
	VEC(uint64_t) procedures; /* starts of those to keep with their code */
};

struct results {
	const char *command; /* the name of the process */
	uint64_t hash;       /* of the whole command (collect/command.h); 0: it did not run to its
				end, or is not known */
	int64_t t0, t1;      /* microseconds since 1970 */
	VEC(struct result) list;
};

void results_deinit(struct results *r);

/* An epoch of its own, in one transaction. */
int results_store(const char *database, const struct results *r, struct err *e);

#endif
