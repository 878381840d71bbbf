/*
 * What was measured beside how often: names of metrics ("tsc"), by which a profile orders its
 * numbers. A run measures two at most; a sum of several runs may have more.
 *
 * As bytes: u8 number of names, then each with its NUL. They ascend.
 */
#ifndef CULPRIT_STORE_METRICS_H
#define CULPRIT_STORE_METRICS_H

#include "base/cursor.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

#define METRICS_MOST 4
#define METRIC_NAME  32 /* bytes, with the NUL */

struct metric_names {
	uint32_t n;
	char name[METRICS_MOST][METRIC_NAME];
};

/* What goes with what was measured, and is no measurement itself: how often metrics were read, and
 * ticks of the clock that reading it is estimated to have added. */
#define METRIC_READINGS  "readings"
#define METRIC_MEASURING "measuring"
bool metric_is_beside(const char *name);
/* The first that is none of these, or NULL. */
const char *metric_first(const struct metric_names *m);

/* Which of them it is, -1: none. */
int metric_find(const struct metric_names *m, const char *name);
/* Puts it where it belongs; false when there is no room or the name is empty or too long. */
bool metric_add(struct metric_names *m, const char *name);
/* All of both; the first METRICS_MOST if there are more. */
void metric_unite(
	const struct metric_names *a, const struct metric_names *b, struct metric_names *out);
/* Numbers in the order of `from` put into that of `to`; 0 where it has none. */
void metric_reorder(const struct metric_names *from, const uint64_t *values,
	const struct metric_names *to, uint64_t *out);

void metric_names_put(const struct metric_names *m, struct buf *out);
int metric_names_read(struct metric_names *m, struct cursor *c); /* -EBADMSG */

/* The sum, UINT64_MAX when it is larger. */
uint64_t metric_sum(uint64_t a, uint64_t b);

#endif
