/*
 * Which command an epoch is one run of (store/commands.h).
 */
#ifndef CULPRIT_COLLECT_COMMAND_H
#define CULPRIT_COLLECT_COMMAND_H

#include <stdint.h>

struct err;
struct store;

/*
 * Of the arguments, the folder that we are in, and the file that standard input is. Never 0. Two
 * runs of the same hash may still differ: by their environment, by what files hold.
 */
uint64_t command_hash(char *const *argv);

struct command_run {
	const char *program; /* path of what was executed */
	uint64_t command;
	int64_t epoch, event; /* the store's */
	int64_t t0, t1;
};

/* Inside a transaction. A program that cannot be opened (any more) is left out. */
int command_keep(struct store *s, const struct command_run *run, struct err *e);

#endif
