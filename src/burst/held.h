/*
 * Checks of first copies in loops that turn fast. The thread's counter waits there for what the
 * turn before has stored, and that takes longer than the turn: so such loops count in a variable of
 * their own, which is a register or a word of the frame. (Memory that is found by rsp or rbp cores
 * forward at once; what is found by the thread pointer they do not.) It is loaded where the loop is
 * entered and behind calls, and stored where it is left and before calls.
 *
 * Who comes over from the second copy brings it along. A signal handler sees the counter as it was
 * when the loop was entered; what it counts itself while the loop runs on is lost, but never that a
 * burst has begun.
 */
#ifndef CULPRIT_BURST_HELD_H
#define CULPRIT_BURST_HELD_H

#include <stdint.h>

struct burst;
struct checks_loops;
struct edit_function;
struct err;
struct snippet;

/* v0 is the payloads'. */
#define HELD_FIRST 1
#define HELD_END   7

/* Code for one of the variables; what is put where a check is takes the same arguments as there. */
struct held_snippets {
	struct snippet *begin, *end, *leave, *lead, *turn;
};
int held_snippets_create(struct held_snippets *s, struct err *e); /* HELD_END of them */
void held_snippets_destroy(struct held_snippets *s);

/* Of one function. */
struct held {
	uint8_t *variable; /* by block: what is counted in there; 0: the thread's counter */
};

void held_init(
	struct held *h, struct burst *b, struct edit_function *f, const struct checks_loops *loops);
void held_deinit(struct held *h);

/* What a check on an edge counts in; 0: the thread's counter. */
unsigned held_on_edge(const struct held *h, const struct edit_function *f, uint32_t edge);

/* What stands on edges before checks, and behind them. */
void held_put_before(const struct held *h, struct burst *b, struct edit_function *f);
void held_put_behind(const struct held *h, struct burst *b, struct edit_function *f);

#endif
