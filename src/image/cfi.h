/*
 * Call frame instructions (DWARF 5, 6.4): the rows that say, for each stretch of a function's code,
 * where its frame is (the CFA) and how the caller's registers are found again.
 *
 *     cfi_init(&c, &reader.cie, NULL, &fde);
 *     while (cfi_next(&c))
 *             ... c.row holds from c.pc up to c.until ...
 *     cfi_deinit(&c);
 *
 * Expressions point into the section.
 */
#ifndef CULPRIT_IMAGE_CFI_H
#define CULPRIT_IMAGE_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "image/eh_entry.h"

/* Of the x86-64 ABI: general registers, the return address, xmm0 to xmm15. */
enum { CFI_RSP = 7, CFI_RIP = 16, CFI_REGISTERS = 33 };

enum cfi_kind {
	CFI_UNSPECIFIED,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_REGISTER,       /* in register `value`; of the CFA: that plus cfa_offset */
	CFI_OFFSET,         /* saved at CFA + value */
	CFI_VAL_OFFSET,     /* it is CFA + value */
	CFI_EXPRESSION,     /* saved where the expression says */
	CFI_VAL_EXPRESSION, /* it is what the expression says; of the CFA: this one */
};

struct cfi_rule {
	enum cfi_kind kind;
	uint32_t size; /* of an expression */
	union {
		int64_t value;
		const uint8_t *expression;
	};
};

struct cfi_row {
	struct cfi_rule cfa;
	int64_t cfa_offset;
	struct cfi_rule registers[CFI_REGISTERS];
	uint64_t args_size; /* pushed for a call, to be popped before a landing pad */
};

struct cfi {
	const struct eh_cie *cie;
	const struct cfi_row *initial; /* what the CIE sets up */
	struct cursor left;
	uint64_t pc, until, end;
	struct cfi_row row;
	VEC(struct cfi_row) remembered;
	bool failed; /* something was not understood, and the row is no more than a guess */
};

/* The rows of an FDE, or what its CIE sets up (fde NULL, which then is one row). */
void cfi_init(struct cfi *c, const struct eh_cie *cie, const struct cfi_row *initial,
	const struct eh_fde *fde);
void cfi_deinit(struct cfi *c);
bool cfi_next(struct cfi *c); /* a row that is not empty; false at the end or when it failed */

/* What a CIE sets up; false when it is not understood (out has what was). */
bool cfi_initial(const struct eh_cie *cie, struct cfi_row *out);

bool cfi_rule_equal(const struct cfi_rule *a, const struct cfi_rule *b);

#endif
