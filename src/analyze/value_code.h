/*
 * The code of one procedure for reports on values: which instruction is where, in which straight
 * run of code, and in a loop or not.
 *
 * Code comes from the database, or from the file as long as it is the one that was sampled.
 */
#ifndef CULPRIT_ANALYZE_VALUE_CODE_H
#define CULPRIT_ANALYZE_VALUE_CODE_H

#include "analyze/selection.h"
#include "isa/roles.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct value_code;

/* An image's file, opened when it is first needed. Zeros at first. */
struct value_file {
	struct image *image;
	bool tried;
};
/* NULL unless it is the file that was sampled. */
struct image *value_file_get(struct value_file *f, const struct selected_image *im);
void value_file_deinit(struct value_file *f);

struct code_insn {
	uint64_t address, target;
	const uint8_t *bytes;
	uint32_t available; /* bytes up to the end of the range */
	uint8_t length;
	enum insn_kind kind;
	bool leads;     /* begins a run: the one before does not simply go on to it */
	bool in_loop;   /* between a backward branch and its target */
	bool guards;    /* protects the stack: reads the guard, stores it or fetches it back */
	uint32_t range; /* of the procedure */
	uint32_t loop;  /* instructions of the loop, where the branch behind this one closes it */
};

/* Without code it has no instructions. The image's procedures are loaded; all must outlive it. */
int value_code_create(struct selection *sel, const struct selected_image *im, uint32_t procedure,
	struct value_file *file, struct value_code **out, struct err *e);
void value_code_destroy(struct value_code *c);

const struct code_insn *value_code_at(
	const struct value_code *c, uint64_t address); /* NULL: none */

/* The run that an instruction is in, as addresses from first up to (not with) end. */
void value_code_run(
	const struct value_code *c, const struct code_insn *i, uint64_t *first, uint64_t *end);

/*
 * A short run, with instructions before and behind it that `fits` and that simply follow one
 * another: as many as a wide core may retire at once.
 */
struct code_group {
	uint64_t first, end; /* addresses, as of a run */
	unsigned run, all;   /* instructions */
};
void value_code_group(const struct value_code *c, const struct code_insn *i,
	bool (*fits)(const void *arg, uint64_t address), const void *arg, struct code_group *out);

/* Bit n: argument register n is read before it is written, looking at the code from its start. */
uint8_t value_code_arguments(const struct value_code *c);

/* Whether a loop stores to memory that is written just so (struct roles.place). */
bool value_code_stores(const struct value_code *c, uint64_t place);

/* Whether an instruction moves this very value to somewhere. */
bool value_code_holds(const struct value_code *c, uint64_t value);

/* Its text with names of what it refers to, as objdump prints it. */
void value_code_text(const struct value_code *c, const struct code_insn *i, enum isa_syntax syntax,
	char *text, size_t size);

/* "name", "name+0x10"; false when no procedure covers the address. `file` may be NULL. */
bool value_code_name(const struct selected_image *im, struct value_file *file, uint64_t address,
	char *name, size_t size);

#endif
