/*
 * The file that an edited program or library counted into: counters, and where it counted by
 * thread, those of threads (rt/rt.h), which are added up.
 */
#ifndef CULPRIT_EDIT_COUNTS_H
#define CULPRIT_EDIT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct err;

struct counts {
	uint64_t *p; /* mapped; whoever reads counters may change this copy */
	uint64_t bytes;
	bool by_thread;
	uint32_t blocks;   /* of threads */
	uint32_t together; /* threads that counted with others, for there was no room */
};

/* -EBADMSG when the file has less than so many bytes. */
int counts_map(const char *path, uint64_t bytes, struct counts *out, struct err *e);
void counts_unmap(struct counts *c);

#endif
