/*
 * Which general registers and flags are live: their values may still be read. Live is what is not
 * proved dead, so where the flow may go on unseen everything is.
 *
 * By the ABI a call reads its arguments; a direct call inside the image overwrites only what
 * `clobbers` says (nothing without it), for compilers keep values in caller-saved registers over
 * calls of functions they know (-fipa-ra). For the same reason registers that the procedure never
 * writes are live wherever it ends.
 */
#ifndef CULPRIT_FLOW_LIVENESS_H
#define CULPRIT_FLOW_LIVENESS_H

#include <stdint.h>

#include "flow/cfg.h"
#include "isa/form.h"

/* A set: registers by number, flags (enum form_flag) above them. */
#define LIVE_FLAGS(flags) ((uint32_t)(flags) << 16)
#define LIVE_ALL          (REGS_ALL | LIVE_FLAGS(FORM_FLAGS))

struct liveness;

/*
 * source is what the flow was made from; of it only the ranges and the code are used, and only
 * here. clobbers (may be NULL) gives the registers that a direct call to an address may overwrite.
 */
typedef uint16_t liveness_clobbers(void *arg, uint64_t target);
void liveness_create(const struct flow *f, const struct flow_source *source,
	liveness_clobbers *clobbers, void *arg, struct liveness **out);
void liveness_destroy(struct liveness *l);

uint32_t liveness_in(const struct liveness *l, uint32_t block);
uint32_t liveness_out(const struct liveness *l, uint32_t block);

/* Before an instruction of the flow; takes time by the size of its block. */
uint32_t liveness_before(const struct liveness *l, uint32_t insn);

/* What the instructions of the procedure write themselves, calls not counted. */
uint16_t liveness_written(const struct liveness *l);

#endif
