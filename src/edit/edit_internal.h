/*
 * An edit while it is made, for the files that make it: edit.c opens the file and judges its
 * functions, refs.c and patch.c say where old code leads into new, body.c makes the new bodies,
 * entries.c gives functions new addresses, twin.c gives second copies what they need, pad.c makes
 * frames larger, wrap.c makes calls deeper, variable.c finds room for variables, scratch.c says
 * what code in them may use, parts.c keeps what they are made of, emit.c places them and writes
 * their bytes.
 */
#ifndef CULPRIT_EDIT_EDIT_INTERNAL_H
#define CULPRIT_EDIT_EDIT_INTERNAL_H

#include "base/buf.h"
#include "base/vec.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "flow/cfg.h"
#include "isa/reference.h"

struct elf_out;
struct function;
struct lives;
struct pad;
struct unwind;
struct variable;

/* ---- bodies ---- */

enum item_kind {
	ITEM_COPY,    /* instructions as they were, but for displacements and calls */
	ITEM_BRANCH,  /* a direct jump or branch of the old code */
	ITEM_UNLESS,  /* a branch that is turned around: to a label, where the old one would go on */
	ITEM_JUMP,    /* one that is added: to a label */
	ITEM_LEAVE,   /* one that is added: to where an instruction goes out of the function */
	ITEM_FALL,    /* one that is added: to what lies behind an instruction */
	ITEM_CODE,    /* a snippet */
	ITEM_CHANGED, /* an instruction that is not what it was; its bytes are kept like a snippet's
		       */
};

#define LABEL_OUTSIDE UINT32_MAX /* the target of the instruction itself */

/*
 * A part of a new body. Items and labels are numbers, an item's offset counts from the start of its
 * piece.
 */
struct item {
	uint8_t kind;    /* enum item_kind */
	bool grown;      /* a branch that needs its long form */
	uint16_t pushed; /* rsp is so many bytes lower than in the old code */
	uint32_t insn;   /* the old instruction: the first of a copy, the one that it stands for */
	uint32_t count;  /* of a copy: instructions; of code: which of body.codes */
	uint32_t label;  /* of a branch or jump */
	uint32_t offset, size;
};

/* The contiguous copy of one range of the procedure. */
struct piece {
	uint64_t old_start, at;
	uint32_t size;
	uint32_t first, items;
};

struct code {
	uint32_t offset, size; /* in body.bytes */
	uint32_t first_fixup, fixups, first_shift, shifts;
	uint32_t edge;  /* that it is on, GRAPH_NONE: it is before an instruction */
	uint32_t other; /* item with the part that lies apart, or that this lies apart from */
};

/* An edge that leads to a label of its own and not to the one of its block. */
struct way {
	uint32_t edge, label;
};

struct body {
	VEC(struct item) items;
	VEC(uint32_t) labels; /* an item each: first those of the blocks */
	VEC(struct way) ways; /* by edge */
	struct piece *pieces; /* the first has the entry */
	uint32_t npieces;
	VEC(struct code) codes;
	struct buf bytes;
	VEC(struct snippet_fixup) fixups;
	VEC(struct snippet_shift) shifts;
};

/* ---- edges (edge.c) ---- */

/* Where the code on an edge goes. */
enum edge_place {
	PLACE_FALL,   /* behind its source */
	PLACE_BEFORE, /* before the last instruction of its source */
	PLACE_TARGET, /* at the start of its target, which has no other way in */
	PLACE_ENTER,  /* before the label of its target, for those who come from outside */
	PLACE_AROUND, /* behind the branch, which is turned around */
	PLACE_STUB,   /* on its own, with a jump to the target if it cannot be right before it */
};

enum edge_place edge_place(const struct edit *e, const struct function *f, uint32_t edge);
/* Whether control goes on behind a block. */
bool edge_falls(const struct flow_block *b);

/* ---- making them ---- */

int body_create(struct edit *e, struct function *f, struct body **out, struct err *err);
void body_destroy(struct body *b);

/* Adds a part of a lowered snippet to the codes of a body; which it is (parts.c). */
uint32_t body_keep_code(struct body *b, const struct snippet_code *c, size_t from, size_t to);

/* Where a block begins in the new code, and where those who come from outside enter it. */
uint64_t body_label(const struct body *b, uint32_t label);
uint64_t body_entered(const struct function *f, uint32_t block);
/* The label of the block that a jump through a table goes to. */
uint64_t body_table_entry(const struct function *f, const struct flow_jump *j, uint32_t block);

/* ---- branches (branch.c) ---- */

enum branch_shape {
	BRANCH_STRANGE, /* none of these */
	BRANCH_SHORT,   /* jmp or jcc, 8 bits */
	BRANCH_LONG,    /* jmp, jcc, call, xbegin: 32 bits at the end */
	BRANCH_COUNT,   /* loop, jrcxz: 8 bits, and no other form */
};

enum branch_shape branch_shape(const uint8_t *code, const struct flow_insn *i);
uint32_t branch_size(const uint8_t *code, const struct flow_insn *i, bool grown);
/* Writes it to `out` for the address `at`. */
void branch_write(const uint8_t *code, const struct flow_insn *i, bool grown, uint64_t at,
	uint64_t target, uint8_t *out);
void jump_write(bool grown, uint64_t at, uint64_t target, uint8_t *out); /* 2 or 5 bytes */

/* The same branch, taken where the old one is not. */
bool branch_turns(const uint8_t *code, const struct flow_insn *i); /* it can be had */
uint32_t branch_turned_size(bool grown);
void branch_write_turned(const uint8_t *code, const struct flow_insn *i, bool grown, uint64_t at,
	uint64_t target, uint8_t *out);

/* ---- functions ---- */

struct insertion {
	bool on_edge;
	uint32_t number; /* edge or instruction */
	uint32_t order;
	uint32_t arguments; /* in edit.arguments */
	uint32_t memory;    /* in edit.memory, + 1; 0: what the instruction names */
	const struct snippet *snippet;
};

/* Where a call goes instead: to a function, or (NULL) into the code that runs first. */
struct redirect {
	uint32_t insn;
	const struct function *to;
	size_t at;
};

/* A copy of the tables that a second copy jumps through by one address. */
struct clone {
	uint64_t name;      /* the address that the code says */
	uint64_t from, end; /* of the old table */
	uint64_t offset;    /* of the copy, in edit.tables */
	bool moves_base;    /* its entries are relative to that address */
};

/* An instruction of a second copy that says the address of a table, in its last four bytes. */
struct naming {
	uint32_t insn, clone;
};

/* Where the old code must lead to the new. */
struct point {
	uint64_t old;   /* the address of a block */
	uint64_t patch; /* where the jump is written: behind an endbr64 */
};

struct function {
	struct edit_function public;
	VEC(struct point) points; /* by address */
	uint32_t *group;          /* by edge, as edit_edge_group says; NULL: each is one */
	bool referred;            /* its address is taken, or code that nobody describes calls it */
	bool kept;                /* its old address stays what the program sees of it */
	bool undescribed;         /* without a frame description: only a symbol tells its extent */
	size_t procedure;         /* its number in the image, once liveness was asked for */
	VEC(struct insertion) insertions;
	struct pad *pad; /* of a second copy, NULL: as the first; else its frame is as it was */
	VEC(struct variable) variables; /* of the first copy, for both */
	VEC(struct redirect) redirects; /* by instruction, when it is written */
	struct function *twin;          /* its second copy */
	struct function *original;      /* of a second copy: the first */
	VEC(struct clone) clones;       /* of a second copy, as are these by instruction: */
	VEC(struct naming) namings;
	uint32_t *others;  /* by table, then block: registers that may not hold it (bridge.c) */
	struct body *body; /* while and after it is written; NULL: it is not moved */
};

/* A range of a procedure. */
struct home {
	uint64_t start, size;
	struct function *function; /* NULL: of a stub or of what nobody describes */
};

/* A piece as it was written; its spans end where those of the next begin. */
struct fragment {
	uint64_t start, size, old;
	size_t first_span;
	bool twin;
	uint32_t gap, pad;
};

struct edit {
	struct edit_options options;
	struct elf_out *out;
	struct image *image;
	struct program *program;
	struct unwind *unwind;
	struct lives *lives;        /* NULL before it is asked for */
	struct function *functions; /* by entry */
	struct edit_function **list;
	size_t nfunctions;
	VEC(struct home) homes; /* by start */
	VEC(struct function *) twins;
	uint64_t data, data_size;
	VEC(uint64_t) arguments;
	VEC(struct reference) memory;

	struct buf runtime;
	size_t runtime_entry;
	struct buf frames; /* how to unwind it */
	uint64_t frames_at;
	edit_fill_fn *fill;
	void *fill_arg;

	const char *debug_left;
	uint64_t text;
	uint64_t tables, tables_size; /* copies of jump tables, behind the code */
	VEC(struct edit_span) spans;
	VEC(struct fragment) fragments;
};

void edit_refuse(struct function *f, const char *words, uint64_t at);
const struct home *edit_home(const struct edit *e, uint64_t address);       /* or NULL */
const uint8_t *edit_code(const struct edit *e, uint64_t address, size_t n); /* or NULL */

/* The address where control goes on that the old code sends to an address. */
uint64_t edit_resolve(const struct edit *e, uint64_t old, bool twin);

/* Registers with addresses of tables, on ways to the other copy: when there is one; once code for a
 * place is lowered, before an instruction; and a table of the copy that is gone to. */
void bridge_find(const struct edit *e, struct function *twin);
void bridge_add(struct edit *e, const struct function *f, uint32_t insn, struct snippet_code *c);
uint64_t bridge_table(const struct edit *e, const struct function *to, uint64_t clone);

/* Where a copy goes on at a place of the other: behind code on an edge, or at an instruction. */
uint64_t body_same_place(const struct function *f, uint32_t insn, uint32_t edge);

void edit_make_flow(struct edit *e, struct function *f); /* or anew */
void edit_judge(struct edit *e, struct function *f);     /* refuses it for what its flow says */

/* Makes those flows again that more can be known of when all others are there. */
void settle_flows(struct edit *e);

/* Bytes of all registers that a function saves for its caller, and one more word. */
#define SCRATCH_POPPED 56

/* What code may use before an instruction, and on the way into a block; without variables. */
struct snippet_place scratch_before(struct edit *e, struct function *f, uint32_t insn);
struct snippet_place scratch_into(struct edit *e, struct function *f, uint32_t block);

/* Makes the flows again of functions that others enter in the middle, and refuses those that hold
 * data. */
void refs_find(struct edit *e);

/* Refuses functions whose entries, labels or tables cannot be made to lead to new code. */
void patch_plan(struct edit *e);
int patch_write(struct edit *e, struct err *err);

/* Where an entry of a table leads in the old code; false when it cannot be read. */
bool patch_table_target(
	const struct edit *e, const struct flow_jump *j, uint64_t slot, uint64_t *target);
bool patch_is_table(const struct flow_jump *j);

/* Functions and then their second copies. */
size_t twin_copies(const struct edit *e);
struct function *twin_copy(const struct edit *e, size_t i);
const struct naming *twin_naming(const struct function *f, uint32_t insn); /* or NULL */
/* By how much the table has moved whose address an instruction says; 0: it says none. */
int64_t twin_moves_table(const struct edit *e, const struct function *f, uint32_t insn);
/* Appends the copies of all tables to out, which begins at edit.tables. */
int twin_write_tables(const struct edit *e, struct buf *out, struct err *err);
void twin_destroy_all(struct edit *e);
/* Why a function can have no second copy; NULL: it can. */
const char *twin_refused(struct edit *e, struct edit_function *f);

/* Where a call was redirected to, once they are sorted; 0: it was not. */
void redirect_sort(struct function *f);
uint64_t redirect_find(const struct edit *e, const struct function *f, uint32_t insn);

/* Whether an instruction only computes an address. */
bool edit_is_lea(const struct edit *e, const struct flow_insn *i);

/* ---- addresses of functions (entries.c) ---- */

/* Once all bodies have their places: whose address can be the new one. */
void entries_choose(struct edit *e);
/* What an instruction that computes this address shall compute. */
uint64_t entries_address(const struct edit *e, uint64_t old);
/* Puts new addresses where the file has old ones. */
int entries_write(struct edit *e, struct err *err);

/* Places all bodies from edit.text on and writes them to out. */
int emit_all(struct edit *e, struct buf *out, struct err *err);

#endif
