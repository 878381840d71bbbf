/*
 * What is known at a point of a procedure: the values of registers and of places in memory as
 * expressions, what the flags compare, and bounds of values. It is what holds on all paths that
 * lead to the point.
 *
 * A place in memory that is addressed by the stack pointer of the entry survives calls and stores
 * through pointers. Where the address of such a place may be known to others it is then "weak", and
 * so is what is made of it: likely, but no proof.
 */
#ifndef CULPRIT_FLOW_STATE_H
#define CULPRIT_FLOW_STATE_H

#include "flow/expr.h"
#include "isa/form.h"

enum { STATE_SLOTS = 40, STATE_FACTS = 16 };

struct slot {
	uint32_t address, value; /* expressions */
	uint8_t width;
	bool weak;
};

struct comparison {
	uint8_t op, width; /* FORM_COMPARE, FORM_TEST; FORM_OTHER: none is known */
	uint32_t a, b;
};

struct state {
	uint32_t reg[16];
	uint16_t weak; /* registers */
	struct comparison flags;
	uint32_t nslots, nfacts;
	struct fact facts[STATE_FACTS]; /* the newest last */
	struct slot slots[STATE_SLOTS]; /* the newest last */
};

/* What is the same for all states of a procedure. */
struct machine {
	struct exprs exprs;
	uint32_t stack;  /* the stack pointer at the entry */
	int64_t escaped; /* the lowest offset from it whose address got out; INT64_MAX: none */
	expr_reader *read;
	void *arg;
};

void machine_init(struct machine *m, expr_reader *read, void *arg);
void machine_deinit(struct machine *m);

/* At the entry; then the expressions of the registers are those of state_entry for good. */
void state_entry(struct machine *m, struct state *s);

/* Nothing is known; place names the point (a block). */
void state_unknown(struct machine *m, struct state *s, uint32_t place);

/* Runs an instruction; number names it. A call changes what its form is said to write. */
void state_step(struct machine *m, struct state *s, const struct form *f, uint32_t number);

/* A conditional branch went this way. */
void state_branch(struct machine *m, struct state *s, uint8_t condition, bool taken);

/* The value of an indirect jump's operand, before it runs. */
uint32_t state_operand(
	struct machine *m, struct state *s, const struct form *f, uint32_t number, bool *weak);

/*
 * Makes s what it and t have in common, at a place where they meet. With widen, bounds that differ
 * are dropped, so that loops come to an end. Returns whether s changed.
 */
bool state_join(
	struct machine *m, struct state *s, const struct state *t, uint32_t place, bool widen);

bool state_equal(const struct state *a, const struct state *b);

/* Whether a value is an address in the frame: offset gets how far from the entry's stack pointer.
 */
bool state_on_stack(const struct machine *m, uint32_t e, int64_t *offset);

#endif
