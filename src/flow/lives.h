/*
 * Liveness in all procedures of an image, each with what is known of those it calls and of those
 * that call it. Compilers that know a callee keep values in registers that the ABI would not save
 * but the callee leaves alone (-fipa-ra), and hand-written code has conventions of its own. So
 *
 * - a direct call reads what its callee reads, and overwrites only what its callee, or one that
 * this one calls, overwrites;
 * - a procedure leaves alone at its ends what some direct caller reads afterwards, whether it is
 *   written on the way or not; all that it does not write if there is code that cannot be read;
 * - calls through pointers and of other images are by the ABI.
 */
#ifndef CULPRIT_FLOW_LIVES_H
#define CULPRIT_FLOW_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/liveness.h"
#include "flow/program.h"

struct lives;

/* A procedure of image_procedures, and its flow where there is one. */
struct lives_procedure {
	const struct procedure *procedure;
	const struct flow *flow;
};

/* All procedures of the program's image, by start. Flows must outlive it. */
void lives_create(
	struct program *p, const struct lives_procedure *list, size_t n, struct lives **out);
void lives_destroy(struct lives *l);

/* By number in the list; NULL where there is no flow. */
const struct liveness *lives_of(const struct lives *l, size_t procedure);

/* What a call of it may overwrite, registers and flags, and whether something in the image calls or
 * jumps to it directly. */
uint32_t lives_clobbers(const struct lives *l, size_t procedure);
bool lives_direct(const struct lives *l, size_t procedure);

#endif
