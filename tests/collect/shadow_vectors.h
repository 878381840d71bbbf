/*
 * What the interpreter built for BPF (shadow_vectors.bpf.c) and its test share: memory that is an
 * array, and what became of a run. The machine itself is a map of its own; struct interp is the
 * same on both sides up to its last member of both, `xmm`.
 */
#ifndef CULPRIT_TESTS_SHADOW_VECTORS_H
#define CULPRIT_TESTS_SHADOW_VECTORS_H

#include "isa/interp.h"

#define VECTORS_CODE       0x10000000ull
#define VECTORS_CODE_WORDS 512
#define VECTORS_DATA       0x20000000ull
#define VECTORS_DATA_WORDS 2048

struct vectors {
	u32 steps; /* to do */
	u32 done;
	u32 stop; /* enum interp_stop of the last */
	u32 reads;
	u32 direct, pad; /* code is handed out at once, not by lines */
	u64 missing;     /* of each 64 pieces of 64 bytes in memory, those that cannot be read */
	u64 code[VECTORS_CODE_WORDS];
	u64 data[VECTORS_DATA_WORDS];
};

#endif
