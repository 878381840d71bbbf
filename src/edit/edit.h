/*
 * An executable or library that is rewritten: its functions are copied into a new segment, with
 * code added where a tool wants it, and run there; what was in the file stays where it was.
 *
 *     edit_open("/usr/bin/gzip", &options, &e, &err);
 *     for each function of edit_functions() that is chosen and not refused:
 *         edit_on_edge(e, f, edge, snippet, arguments);
 *     edit_write(e, "/tmp/gzip", &err);
 *
 * Old entries become jumps to the new bodies. Where everything is known that takes a function's
 * address, that is the new one; else it stays the old one for everybody. Functions that cannot be
 * understood are left alone and say why. All addresses are
 * virtual addresses of the file.
 */
#ifndef CULPRIT_EDIT_EDIT_H
#define CULPRIT_EDIT_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/cfg.h"
#include "image/image.h"

struct err;
struct form;
struct liveness;
struct reference;
struct snippet;
struct edit;

struct edit_options {
	bool strict; /* fill what moved away with int3, so that whoever goes there is found out */
	bool debug;  /* have debug information speak of the new code (edit/debug.h) */
};

struct edit_function {
	const struct procedure *procedure;
	struct flow *flow;   /* NULL when none could be made */
	const char *refused; /* why it stays where it is, constant words; NULL: it can be moved */
	uint64_t refused_at;
	bool chosen; /* true at first; tools may clear it, then it is not moved */
	bool seldom; /* false at first; tools may set it of what hardly runs: its code lies behind
			that of the others, which so share pages */
};

/*
 * -EPERM for files that must not be edited, -EEXIST for edited ones, -EOPNOTSUPP for those without
 * unwind tables; -ENOEXEC, -EBADMSG for what is no program.
 */
int edit_open(
	const char *path, const struct edit_options *options, struct edit **out, struct err *e);
void edit_destroy(struct edit *e);

struct image *edit_image(const struct edit *e);
struct program *edit_program(const struct edit *e);
size_t edit_functions(struct edit *e, struct edit_function ***out); /* by address of the entry */

/* What is live in a function that has a flow; the first call looks at the whole image. */
const struct liveness *edit_liveness(struct edit *e, struct edit_function *f);

/* How much of the file can be moved, of what is chosen. */
struct edit_reason {
	const char *words;
	uint32_t functions;
	uint64_t insns;
};
struct edit_coverage {
	uint32_t functions, moved;
	uint64_t insns, moved_insns;
	uint64_t gaps; /* bytes of code that nothing describes: of no function, never moved */
	struct edit_reason reasons[32]; /* of those that are not moved, the most frequent first */
	uint32_t nreasons;
};
void edit_coverage(const struct edit *e, struct edit_coverage *out);

/* ---- for tools: before edit_write ---- */

/* The memory that an instruction (its number in the flow) names: isa_references. */
unsigned edit_references(const struct edit *e, const struct edit_function *f, uint32_t insn,
	struct reference *out);
/* What it does: isa_form. */
int edit_form(
	const struct edit *e, const struct edit_function *f, uint32_t insn, struct form *out);

/* Memory that the edited program can read and write, zero at its start; returns its address. */
uint64_t edit_data(struct edit *e, uint64_t size, uint64_t align);

/*
 * Code to be run at a place. Arguments (as many as the snippet takes, snippet_arguments()) are
 * copied; the snippet must live until edit_write. Several at one place run in the order in which
 * they were given.
 */

/* When the function is called or jumped to, but not when it loops back to its first block. */
void edit_at_entry(struct edit *e, struct edit_function *f, const struct snippet *snippet,
	const uint64_t *arguments);

/* When an edge of the flow is taken; edit_edge_carries must be true. */
void edit_on_edge(struct edit *e, struct edit_function *f, uint32_t edge,
	const struct snippet *snippet, const uint64_t *arguments);

/* Before an instruction (its number in the flow), from wherever control comes to it. */
void edit_before(struct edit *e, struct edit_function *f, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments);

/* The same, where &m0 and so on are the memory that is listed, 1 to 4: their registers must be what
 * is wanted there. Copied. */
void edit_before_with(struct edit *e, struct edit_function *f, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments, const struct reference *memory,
	unsigned n);

/* Where a call (the number of its instruction) comes back. */
void edit_after_call(struct edit *e, struct edit_function *f, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments);

/* False for edges that nobody can put code on: unseen ones to the exit. */
bool edit_edge_carries(const struct edit_function *f, uint32_t edge);

/* How code on an edge is come to: in line; behind its branch, with a jump more; or by a branch and
 * a jump. */
enum edit_way { EDIT_IN_LINE, EDIT_AROUND, EDIT_ASIDE };
enum edit_way edit_edge_way(
	const struct edit *e, const struct edit_function *f, uint32_t edge);

/*
 * Edges of several jumps through one table cannot be told apart: code on one of them runs on all
 * those that lead from these jumps to the same block. Returns the lowest of them; for all other
 * edges, the edge itself. Tools put code only on such representatives.
 */
uint32_t edit_edge_group(const struct edit_function *f, uint32_t edge);

/*
 * Code that runs before everything else in the edited program, or when the library is initialised;
 * and what snippets call, as many bytes from its start. Tools have it from runtime.h.
 * The blob is copied to the new code and must run wherever it lies; `fill` may change the copy once
 * it is known at which address it is and what would have run first without it (0: nothing).
 */
typedef void edit_fill_fn(void *arg, uint8_t *blob, uint64_t address, uint64_t then);
void edit_runtime(
	struct edit *e, const void *blob, size_t size, size_t entry, edit_fill_fn *fill, void *arg);

/* ---- for tools: functions that change ---- */

/*
 * A second copy of the function: another edit_function with the same flow, which has insertions and
 * redirected calls of its own, and its own copies of jump tables. Nothing leads to it but jumps of
 * snippets and redirected calls; exceptions land in the copy that they come from. Labels whose
 * address the program keeps lead back to the first. NULL when it cannot be had: why gets constant
 * words.
 */
struct edit_function *edit_duplicate(struct edit *e, struct edit_function *f, const char **why);

/* As an argument that a snippet goes to: the same place in the other copy of the function, behind
 * what is inserted there. */
#define EDIT_OTHER UINT64_MAX

/*
 * So many bytes more (a multiple of 16) in the function's frame, in both copies, while it calls
 * others. Its callers and callees see nothing of it. False when that is not proved to be right:
 * why gets constant words.
 */
bool edit_pad_frame(struct edit *e, struct edit_function *f, uint32_t bytes, const char **why);

/*
 * The same for the second copy alone, which then has a frame of its own size (0: as it was).
 * Nothing may go from one copy into the middle of the other, and there may be no variables.
 */
bool edit_pad_copy(struct edit *e, struct edit_function *twin, uint32_t bytes, const char **why);

/*
 * So many bytes more (a multiple of 16) of stack during a direct call, in both copies. False when
 * it is not proved that the callee wants nothing of its caller's frame, or when exceptions may
 * come back to the caller: why gets constant words. Larger frames come first.
 */
bool edit_wrap_call(
	struct edit *e, struct edit_function *f, uint32_t insn, uint32_t bytes, const char **why);

/*
 * A place for the variable v (0 to 6: v0 to v6) of snippets, which then keeps its value in the
 * given blocks (one bool for each of the flow), at places in them and on edges between, into and
 * out of them. NULL: everywhere from the entry to the exits, across calls and into landing pads,
 * unless something else goes into the middle of the function.
 * Undefined at first; in both copies. Blocks of variables with the same number must not meet. False
 * when none is to be had: why gets constant words.
 */
bool edit_variable(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks, const char **why);
/* The same, but only if a register is to be had. */
bool edit_variable_in_register(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks);
/*
 * The same, with a register that these blocks leave alone although it is in use behind them: whoever
 * gets it saves it on all edges into the blocks, in another variable, and puts it back on all edges
 * out of them.
 */
bool edit_variable_borrowed(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks);
/* A register of the program's own, as it is there; not rsp, and rax only where no flags are live.
 * Snippets only read it. */
void edit_variable_is(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks, uint8_t reg);

/*
 * A direct call (or a jump that leaves the function) goes to another function or copy, where it
 * enters as any call does; or into what edit_runtime adds, as many bytes from its start.
 */
void edit_redirect_call(
	struct edit *e, struct edit_function *f, uint32_t insn, const struct edit_function *to);
void edit_redirect_to_runtime(struct edit *e, struct edit_function *f, uint32_t insn, size_t at);

/* Kept in the file's note: the kind of edit ("exact") and what goes with it. Copied. */
void edit_describe(struct edit *e, const char *kind, const void *more, size_t size);

int edit_write(struct edit *e, const char *path, struct err *err);

/* Why debug information will go on to speak of the old code, constant words ("is split"); NULL: it
 * will not, or there is none. After edit_write all is known, before it what can be told at once. */
const char *edit_debug_left(const struct edit *e);

/* ---- after edit_write ---- */

/* The new address of an old instruction; 0: it was not moved. */
uint64_t edit_moved(const struct edit *e, uint64_t old);

/* ---- what the new code consists of, for unwinding ---- */

/*
 * New code [at, at + size). If copied, it is the old code from `old` on, instruction by instruction
 * at the same distances; else all of it stands for the old instruction at `old`: its unwind row (as
 * before the instruction) and its exception region hold. rsp is `pushed` bytes lower than in the
 * old code.
 */
struct edit_span {
	uint64_t at, old;
	uint32_t size;
	uint16_t pushed;
	bool copied;
};

/* A contiguous piece of new code from one range of one procedure; spans ascending, no holes. */
struct edit_fragment {
	bool twin;         /* of a second copy */
	uint32_t gap, pad; /* what was saved below CFA - gap is `pad` bytes lower */
	uint64_t start, size;
	uint64_t old_start;
	const struct edit_span *spans;
	size_t nspans;
};

/* Where control that comes from outside to an old address (a landing pad) goes on, in the second
 * copy if there is one and it is asked for; 0: not moved. */
typedef uint64_t edit_moved_fn(void *arg, uint64_t old, bool twin);

#endif
