/*
 * Takes a recording of perf (perf_file.h) into a database, as an epoch of its own: the samples go
 * the way of those that are taken now (collect/attribute.h), by their own times, and only images
 * are looked for on this machine (collect/recorded.h). All or nothing: it is one transaction.
 */
#ifndef CULPRIT_IMPORT_IMPORT_H
#define CULPRIT_IMPORT_IMPORT_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

struct import_options {
	const char *path;                   /* "-": standard input */
	const char *label;                  /* NULL: the command line of perf */
	void (*progress)(uint64_t samples); /* NULL: nobody looks */
};

/* A file that is not here as it was recorded. */
struct import_absent {
	char *path, *id; /* id "": it was not recorded */
};

struct import_result {
	uint64_t samples, unknown, lost, throttled;
	uint64_t guest;   /* samples of virtual machines, left out */
	uint64_t foreign; /* samples of no event that the file names, left out */
	uint64_t bad;     /* records that are not what their event says, left out */
	uint64_t aux;     /* bytes of processor traces, left out */
	size_t events;
	bool interrupted; /* perf did not end as it should: what it wrote before was taken */
	VEC(struct import_absent) absent;
};

/* The store must be open for writing, outside of any transaction. */
int import_perf(
	struct store *s, const struct import_options *o, struct import_result *out, struct err *e);
void import_result_deinit(struct import_result *r);

#endif
