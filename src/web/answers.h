/*
 * What verbs answered: each command is run once while the databases stay as they are, however many
 * ask for it, and what was asked lately is kept. Safe for threads.
 */
#ifndef CULPRIT_WEB_ANSWERS_H
#define CULPRIT_WEB_ANSWERS_H

#include "base/buf.h"
#include "web/query.h"

#include <stddef.h>

struct answers;

struct answer {
	int code;          /* the verb's exit code, or -errno when it could not be run */
	struct buf output; /* of success */
	struct buf words;  /* what it wrote to standard error */
};

/* Files are those whose change makes answers old. All must outlive it. */
struct answers *answers_create(const char *program, const char *const *files, size_t nfiles);
void answers_destroy(struct answers *a); /* takes NULL; nobody may be waiting */

/* Never NULL. The answer is the caller's until it is put back. */
const struct answer *answers_get(struct answers *a, const query_line *line);
void answers_put(struct answers *a, const struct answer *answer);

#endif
