/*
 * Excursions: what a stopped thread is about to do, for tens of thousands of instructions, found
 * out beside it. They serve where bursts in the interrupt (shadow.h) are too short: what a program
 * does fast is seen too seldom by all that begins where time is spent, until the walk is longer
 * than the stretch that is fast.
 *
 * The chip itself is the interpreter: instructions run one by one, as copies (isa/transplant.h), on
 * a copy of the thread's registers and of the pages of memory that they touch. The thread is never
 * changed. Vector registers stay in the chip from one copy to the next, which is why this lives in
 * code that uses general registers only, and leaves for anything else (excursion_run.c).
 *
 * It ends at a system call, at what traps, at memory that cannot be read, and where the code is not
 * for copying. One excursion at a time, in a process that does nothing else: signals that a copy
 * raises are caught here.
 */
#ifndef CULPRIT_COLLECT_EXCURSION_H
#define CULPRIT_COLLECT_EXCURSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

struct err;
struct excursion;

enum excursion_end {
	EXCURSION_DONE,    /* as many instructions as asked for */
	EXCURSION_STOPPED, /* at a system call, or what cannot be copied */
	EXCURSION_FAULT,   /* memory that cannot be read, or a trap */
	EXCURSION_ROOM,    /* too many pages or branches, or string operations too long */
};

/* Transfers whose target the code alone does not tell: conditional, indirect, return. */
struct excursion_edge {
	uint64_t from, to, count;
};

/*
 * What an instruction loaded, or (is_code) a line of code when control came to it from another: how
 * often it was in the first cache by then, or was gone (excursion_cache.h).
 */
struct excursion_stay {
	uint64_t at; /* the instruction, or where the line begins */
	uint32_t is_code, kept, gone;
};

/* Reads n bytes of the thread's memory within a page; 0 or negative. */
typedef int excursion_read_fn(void *arg, uint64_t address, void *to, size_t n);

int excursion_create(struct excursion **out, struct err *e);
void excursion_destroy(struct excursion *x);

#define EXCURSION_VECTORS 4096 /* bytes of an area for xsave, in its standard form */

struct excursion_start {
	struct user_regs_struct registers;
	/* What xsave has of it, aligned to 64 bytes, as PTRACE_GETREGSET gives it. */
	const void *vectors;
	excursion_read_fn *read;
	void *arg;
};

enum excursion_end excursion_run(
	struct excursion *x, const struct excursion_start *start, uint64_t instructions);

/* The last one goes on where it stands; what it tells is of this part alone. */
enum excursion_end excursion_go_on(struct excursion *x, uint64_t instructions);

/* Of the last one: how far it came, where it stands, which way branches went. */
uint64_t excursion_instructions(const struct excursion *x);
void excursion_registers(const struct excursion *x, struct user_regs_struct *out);
const void *excursion_vectors(const struct excursion *x); /* as start.vectors */
size_t excursion_edges(const struct excursion *x, const struct excursion_edge **out);

/*
 * Of all since the caches were forgotten, but for the first instructions, which only fill them. In
 * no order; the list is good until the next excursion.
 */
void excursion_forget_caches(struct excursion *x);
size_t excursion_stays(const struct excursion *x, const struct excursion_stay **out);

#endif
