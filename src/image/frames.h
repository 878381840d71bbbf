/*
 * How frames are found again, for all code of a file: the rows of .eh_frame (image/cfi.h). Those of
 * a function are put together when it is first asked for, and from then on the row of an address is
 * a search and no parsing: stacks go through few of the functions that a file has. Few rows differ
 * in what they say, so each is an address and the number of a rule.
 *
 * Registers are numbered as in DWARF: 7 is rsp, 6 is rbp, 16 the return address. Rules live as long
 * as the frames, which are for one thread.
 */
#ifndef CULPRIT_IMAGE_FRAMES_H
#define CULPRIT_IMAGE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct image;
struct frames;

enum { FRAME_RBX = 3, FRAME_RBP = 6, FRAME_RSP = 7, FRAME_RIP = 16, FRAME_REGISTERS = 17 };

/* How the caller's value of a register is found; expressions are `value` bytes into the section. */
enum frame_how {
	FRAME_SAVED,            /* at CFA + value */
	FRAME_IS,               /* it is CFA + value */
	FRAME_MOVED,            /* in register `value` */
	FRAME_SAVED_EXPRESSION, /* where the expression says */
	FRAME_IS_EXPRESSION,    /* it is what the expression says */
	FRAME_LOST,
};

struct frame_save {
	uint8_t reg, how; /* enum frame_how */
	uint16_t size;    /* of an expression */
	int32_t value;
};

#define FRAME_BY_EXPRESSION 255

/* Registers that it does not name have kept their values if the ABI says so, else are lost. */
struct frame_rule {
	uint8_t base;   /* the CFA is this register plus offset, or by an expression at offset */
	uint8_t nsaves; /* the return address comes last */
	bool signal;    /* the frame that a signal handler returns to: the caller was interrupted */
	bool root;      /* nobody called it: the return address is said to be undefined */
	uint16_t size;  /* of the expression */
	uint16_t none;
	int32_t offset;
	struct frame_save saves[FRAME_REGISTERS];
};

/* Of a section that is loaded at vaddr and stays the caller's; `terminated` as in image/eh_entry.h.
 */
void frames_create(const void *p, size_t n, uint64_t vaddr, bool terminated, struct frames **out);
/* Of an image's file. -ENOENT when it is gone or has no such section. */
int frames_open(struct image *im, struct frames **out);
void frames_destroy(struct frames *f);

/* NULL where nothing is said about the code. */
const struct frame_rule *frames_at(const struct frames *f, uint64_t vaddr);
/* The same, and the code that it says it of: from `start` up to `end`. */
const struct frame_rule *frames_around(
	const struct frames *f, uint64_t vaddr, uint64_t *start, uint64_t *end);
const uint8_t *frames_expression(const struct frames *f, uint32_t offset);

/* Made so far. */
size_t frames_rows(const struct frames *f);
size_t frames_rules(const struct frames *f);
size_t frames_memory(const struct frames *f); /* bytes */

#endif
