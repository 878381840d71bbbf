/*
 * From a request to a command line: which verbs can be asked, with which of their options. All else
 * is refused. Values stand behind "=" or behind "--", so that none can become an option.
 */
#ifndef CULPRIT_WEB_QUERY_H
#define CULPRIT_WEB_QUERY_H

#include "base/vec.h"

#include <stddef.h>

struct err;

struct query_parameter {
	const char *name, *value; /* value may be NULL */
};

typedef VEC(char *) query_line;

/*
 * `endpoint` is what stands behind /api/. Fills `out` with the arguments behind the program's name
 * (query_free). -ENOENT: no such endpoint; -EINVAL: a parameter that it has not, or its value.
 */
int query_command(const char *endpoint, const struct query_parameter *parameters, size_t n,
	const char *const *databases, size_t ndatabases, query_line *out, struct err *e);
void query_free(query_line *line);
/* What the answer is. */
const char *query_content_type(const char *endpoint);

#endif
