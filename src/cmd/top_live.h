/* culprit top --live: the rows of `top`, on a terminal, again and again. */
#ifndef CULPRIT_CMD_TOP_LIVE_H
#define CULPRIT_CMD_TOP_LIVE_H

struct err;
struct top;

/* Until the reader ends it. */
int top_live(struct top *t, struct err *e);

#endif
