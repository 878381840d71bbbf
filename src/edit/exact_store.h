/*
 * Exact counts into the database: as profiles of the original files, under an event called "exact".
 */
#ifndef CULPRIT_EDIT_EXACT_STORE_H
#define CULPRIT_EDIT_EXACT_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "edit/books.h"

struct err;

struct exact_image {
	const char *path; /* of the original */
	exact_rows rows;
};

struct exact_run {
	const char *command; /* the name of the process */
	int64_t t0, t1;      /* microseconds since 1970 */
	const struct exact_image *images;
	size_t n;
};

/* An epoch of its own, in one transaction; procedures that ran are kept with their code. */
int exact_store(const char *database, const struct exact_run *run, struct err *e);

#endif
