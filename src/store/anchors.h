/*
 * Induction anchors: what two samples in a row of one thread say about how often a loop went round
 * between them. The difference of an induction register over its stride counts iterations, and the
 * time between makes a rate of it: the absolute scale that samples alone do not have.
 *
 * A profile of anchors belongs to the image and procedure that both samples are in; offsets are
 * file offsets as in PC profiles. Two things a reader must allow for. That the stack pointer is the
 * same at both does not prove one activation: a procedure that is called again from the same place
 * has it too. And time that a hypervisor stole is not told from the thread's own. So he takes what
 * a loop can have done in that time, and what most pairs agree on. Which register counts, and by
 * how much, is in the code.
 *
 * Pairs are a sample of those that were seen, and each says how many it stands for. They say more
 * about samples that are in a PC profile already, so nobody adds the two up. Reading trusts
 * nothing.
 */
#ifndef CULPRIT_STORE_ANCHORS_H
#define CULPRIT_STORE_ANCHORS_H

#include "base/cursor.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define ANCHORS_MOST     1024 /* of a profile */
#define ANCHOR_REGISTERS 16   /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... r15 */

struct anchor {
	uint64_t pc, last; /* of the second sample, of the first */
	uint64_t between;  /* ns on CPUs, in the kernel too */
	uint64_t weight;   /* pairs that this one stands for, never 0 */
	uint32_t kernel;   /* samples of the thread in the kernel in between */
	bool switched;     /* out in between; `between` is without what others did then */
	uint16_t changed;  /* registers that differ, a bit each */
	uint16_t known;    /* those of them whose difference was small enough to be kept */
	int64_t difference[ANCHOR_REGISTERS]; /* of those known, else 0 */
};

/* Registered by the store; its weight is the sum of the weights. */
extern const struct blob_type blob_anchor;

/* The order of anchors in a profile, by pc first; 0 only when all but the weight is equal. */
int anchor_compare(const void *a, const void *b);

/* Appends a profile. The list must be sorted, and no longer than ANCHORS_MOST. */
void anchors_pack(const struct anchor *list, size_t n, struct buf *out);

struct anchor_reader {
	struct cursor at;
	uint64_t left;
	struct anchor last; /* weight 0: there was none */
};
int anchor_reader_init(struct anchor_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next anchor, 0 at the end, -EBADMSG. */
int anchor_reader_next(struct anchor_reader *r, struct anchor *out);

#endif
