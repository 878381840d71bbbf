/* What the files of excursions share. */
#ifndef CULPRIT_COLLECT_EXCURSION_INTERNAL_H
#define CULPRIT_COLLECT_EXCURSION_INTERNAL_H

#include "collect/excursion.h"
#include "collect/excursion_cache.h"
#include "isa/transplant.h"

#include <stdbool.h>

/* ---- the chip: excursion_chip.c ---- */

/*
 * Flags as lahf and seto have them: the high byte is SF ZF - AF - PF - CF, the low one OF.
 */
#define CHIP_CF 0x0100u
#define CHIP_PF 0x0400u
#define CHIP_ZF 0x4000u
#define CHIP_SF 0x8000u
#define CHIP_OF 0x0001u

/* What copies see, and the way in and out. Copies reach it relative to rip. */
struct chip_state {
	uint64_t r[16];
	uint64_t flags, host_rsp, copy;
	volatile uint64_t trapped; /* where, in a copy; 0: it did not */
	/* The memory operand, as far from 64 bytes as it is in the program. */
	_Alignas(64) uint8_t operand[TRANSPLANT_OPERAND + 64];
};

struct chip {
	struct chip_state *state;
	void (*enter)(void); /* runs state->copy */
	uint8_t *writable;   /* the code again, to be written */
	uint64_t code;       /* where it runs */
	size_t used, first, size;
	uint64_t leave;
};

int chip_init(struct chip *c, struct err *e);
void chip_deinit(struct chip *c);
/* Puts a copy there; 0: there is no room left. */
uint64_t chip_place(struct chip *c, const struct transplant *t, const struct transplant *end);
void chip_forget(struct chip *c);
/* Signals that copies raise lead to the way out, with state->trapped set. */
int chip_catch(struct chip *c, struct err *e);
void chip_uncatch(struct chip *c);

/* ---- pages: excursion_run.c; all that is remembered of one excursion has its epoch ---- */

#define EXCURSION_PAGES  4096  /* touched by one */
#define EXCURSION_PLACES 16384 /* to find them in */
#define EXCURSION_COPIES 32768 /* that are known */
#define EXCURSION_EDGES  16384 /* places for */
#define EXCURSION_STAYS  32768 /* places for; they are not filled beyond three quarters */
#define EXCURSION_WARM   4000  /* instructions that only fill the caches */
#define EXCURSION_BYTES  38    /* of instructions in a row, */
#define EXCURSION_ROW    8     /* so many at most */

struct excursion_page {
	uint64_t number, epoch;
	uint8_t *data;
};

/* An instruction, or several in a row that need nothing but registers. */
struct excursion_copy {
	uint64_t ip, epoch, place;
	struct transplant t; /* the only one, or the last */
	uint8_t n, nbytes;   /* instructions, and their bytes */
	uint8_t bytes[EXCURSION_BYTES];
};

struct excursion_place {
	struct excursion_edge edge;
	uint64_t epoch;
};

struct excursion_stay_place {
	struct excursion_stay stay;
	uint64_t key, epoch;
};

struct excursion {
	struct chip chip;
	uint64_t ip, epoch, done, base[2];
	uint64_t part;   /* the epoch of edges */
	bool down;       /* string operations go down; */
	uint64_t strung; /* what they have done, as bytes */
	enum excursion_end end;
	excursion_read_fn *read;
	void *arg;
	uint8_t *vectors; /* of the program, while others use the chip's */
	uint8_t *own;     /* and ours, as they are at the beginning of every program */
	uint8_t *memory;  /* EXCURSION_PAGES of it */
	size_t npages, nedges;
	struct excursion_page *pages;
	struct excursion_copy *copies;
	struct excursion_place *places;
	uint32_t *found; /* places with an edge, in the order they came */
	struct excursion_edge *edges;
	struct excursion_cache data, code;
	uint64_t at, line;  /* the instruction under way, the line of code that it is in */
	uint64_t since;     /* instructions since the caches were forgotten, */
	uint64_t forgotten; /* and how often they were: the epoch of stays */
	bool counts;        /* the caches are warm */
	size_t nstays;
	struct excursion_stay_place *stay_places;
	uint32_t *stays_found;
	struct excursion_stay *stays;
};

/* What n bytes of code at an address are; false: nothing that can be done. */
bool excursion_learn(
	struct excursion *x, struct excursion_copy *c, uint64_t ip, const uint8_t *code, size_t n);

/* How many instructions the first n bytes of a row are. */
unsigned excursion_count(const struct excursion_copy *c, size_t n);

void excursion_walk(struct excursion *x, const void *vectors, uint64_t instructions);

#endif
