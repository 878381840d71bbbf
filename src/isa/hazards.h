/*
 * What an instruction may cost beyond the figures of a model: operations whose time depends on
 * data, on other cores, or on everything before them.
 */
#ifndef CULPRIT_ISA_HAZARDS_H
#define CULPRIT_ISA_HAZARDS_H

#include <stddef.h>

enum hazard {
	HAZARD_LOCKED = 1 << 0,      /* also xchg with memory */
	HAZARD_DIVIDES = 1 << 1,     /* divisions and square roots */
	HAZARD_FLOAT = 1 << 2,       /* floating-point arithmetic: denormals may need help */
	HAZARD_SERIALISING = 1 << 3, /* fences, system calls, cpuid and the like */
	HAZARD_REPEATS = 1 << 4,     /* string operations with a rep prefix */
	HAZARD_LENGTH = 1 << 5,      /* a prefix that changes its length: decoded slowly */
	HAZARD_PAUSES = 1 << 6,      /* pause, tpause, umwait, rdtsc, rdrand, ...: slow by design */
};

/* A set of them; 0 also when the bytes are no instruction. */
unsigned isa_hazards(const void *code, size_t n);

#endif
