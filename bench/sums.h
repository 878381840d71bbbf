/* What programs that add up profiles share. */
#ifndef CULPRIT_BENCH_SUMS_H
#define CULPRIT_BENCH_SUMS_H

#include "base/err.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Gives all profiles of a type to fn, while *store is open; ends the program when that fails. */
static inline void sums_read(const char *path, struct store **store, const struct blob_type *type,
	store_profile_fn *fn, void *arg)
{
	struct store_filter filter = {.type = type};
	struct err e = {0};

	if (store_open(path, STORE_READ, store, &e) ||
		store_profiles(*store, &filter, fn, arg, &e)) {
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, e.text);
		exit(1);
	}
	store_close(*store);
}

#endif
