/*
 * Which general registers and flags are live in a procedure: their values may still be read. Live
 * is what is not proved dead, so where the flow may go on unseen everything is.
 *
 * What calls read and overwrite, and what is read when the procedure is left, depends on the other
 * procedures: lives.h finds that out for all of an image. liveness_create knows none of them and is
 * thus on the safe side.
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
 * here. The flow must outlive the liveness.
 */
void liveness_create(const struct flow *f, const struct flow_source *source, struct liveness **out);
void liveness_destroy(struct liveness *l);

uint32_t liveness_in(const struct liveness *l, uint32_t block);
uint32_t liveness_out(const struct liveness *l, uint32_t block);

/* Before an instruction of the flow; takes time by the size of its block. */
uint32_t liveness_before(const struct liveness *l, uint32_t insn);

/* What the instructions of the procedure write themselves, calls not counted; with flags. */
uint32_t liveness_written(const struct liveness *l);

/*
 * How many of the bytes below rsp may be in use anywhere in it, 0 to 128. As compilers have it, a
 * procedure that calls others uses none that its code does not name.
 */
unsigned liveness_red_zone(const struct liveness *l);

#endif
