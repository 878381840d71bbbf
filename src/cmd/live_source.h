/*
 * Where a live display has its samples from: the database of a daemon or of a recording that goes
 * on, or, where none is named and no daemon runs, one of its own that is sampled while it is shown.
 */
#ifndef CULPRIT_CMD_LIVE_SOURCE_H
#define CULPRIT_CMD_LIVE_SOURCE_H

#include <stdbool.h>

struct err;
struct live_source;

/* `input` may be NULL. Waits until there is a database. */
int live_source_open(const char *input, struct live_source **out, struct err *e);
void live_source_close(struct live_source *s); /* a database of its own goes, too */

const char *live_source_database(const struct live_source *s);
bool live_source_grows(const struct live_source *s);        /* somebody samples into it */
const char *live_source_words(const struct live_source *s); /* what it is, for the reader */

/* What was sampled so far is asked for. -ECHILD when sampling has ended by itself. */
int live_source_turn(struct live_source *s, struct err *e);

#endif
