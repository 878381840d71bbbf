/* record --exact: runs a command from edited copies of its files, and keeps what they counted. */
#ifndef CULPRIT_CMD_RECORD_EXACT_H
#define CULPRIT_CMD_RECORD_EXACT_H

#include "cmd/cmd.h"

struct exact_choice {
	bool exact, atomic;
	const char *counted; /* run nothing: read what this edited copy counted */
	name_list libs; /* patterns of base names, or of paths; none: all libraries but libc's */
};

/* The exit code. */
int record_exact(
	const struct exact_choice *choice, char **command, const char *database, bool quiet);

#endif
