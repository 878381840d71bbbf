/*
 * Many raw names in little memory: blocks of them, each packed with zstd when it is full. Of the
 * kernel's 3 MB of names a third is left. Names that lie together are cheap to ask for together:
 * the block unpacked last is kept.
 */
#ifndef CULPRIT_IMAGE_NAMES_H
#define CULPRIT_IMAGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct names {
	struct buf packed;
	VEC(uint32_t) blocks; /* where each begins in packed */
	struct buf open;      /* the block that is being filled, or the one unpacked last */
	uint32_t unpacked;    /* its number, plus one; 0: none */
	struct ZSTD_CCtx_s *packer;
};

void names_deinit(struct names *s);

/* A number for the name, or 0 when there is no room for more. Names end at their first NUL. */
uint32_t names_add(struct names *s, const char *name, size_t n);

/* No more come; gives back spare memory. */
void names_finish(struct names *s);

/* After names_finish: the name of a number; good until the next call. */
const char *names_get(struct names *s, uint32_t number);

/* Lets go of the block unpacked last. */
void names_rest(struct names *s);

size_t names_memory(const struct names *s);

#endif
