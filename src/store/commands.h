/*
 * Commands: which command an epoch is of, when it is of one from its start to its end and of
 * nothing else. Runs of the same command do the same, if anything does: that ties what was counted
 * in one epoch to what was sampled in another. Kept is a hash: what stood on a command line is
 * nobody's business.
 *
 * A profile belongs to the image of the program, so that it comes along when epochs are merged or
 * expire. Merging adds up runs. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_COMMANDS_H
#define CULPRIT_STORE_COMMANDS_H

#include "base/cursor.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

struct command {
	uint64_t hash;
	uint64_t runs; /* never 0 */
};

/* Registered by the store; its weight is the number of runs. */
extern const struct blob_type blob_command;

/* Appends a profile. Hashes must ascend, each once. */
void commands_pack(const struct command *list, size_t n, struct buf *out);

struct command_reader {
	struct cursor at;
	uint64_t left;
	struct command last; /* runs 0: there was none */
};
int command_reader_init(struct command_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next command, 0 at the end, -EBADMSG. */
int command_reader_next(struct command_reader *r, struct command *out);

#endif
