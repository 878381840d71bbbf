/*
 * How the analysis of a procedure or program is shown (the paper's Figures 2 and 4): pure functions
 * over what src/analyze made, so that tests can show them things made by hand.
 */
#ifndef CULPRIT_CMD_WHY_VIEW_H
#define CULPRIT_CMD_WHY_VIEW_H

#include "analyze/listing.h"
#include "analyze/why.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json;

/* One procedure, and what is said of it besides. Strings are the caller's. */
struct why_view {
	const struct why *why;
	const char *procedure, *image, *build_id; /* build_id may be NULL */
	uint64_t start;
	const char *event; /* that the time was taken from */
	uint64_t all;      /* its samples in all that is selected */
	enum isa_syntax syntax;
	bool no_source, everything;
	int width; /* columns of the terminal, 0: none */
	/* As listing_at. */
	int (*line)(void *arg, uint64_t address, enum isa_syntax syntax, struct listing_line *out);
	void *arg;
};

void why_view_print(const struct why_view *v, FILE *out);
void why_view_json(const struct why_view *v, FILE *out);

/* ---- parts, for the view of a program and for graphs ---- */

/* "871", "12.3k", "1.21G": three digits. Returns text. */
const char *why_count(double count, char text[16]);
/* Cycles: "0.25cy", "18.0cy", "412cy"; "-" for NAN. */
const char *why_cy(double cycles, char text[16]);
/* A range of them: "12.0-16.2cy", or one figure when both print alike. */
const char *why_range(double low, double high, char text[40]);

/* An instruction with all that is held against it, without the procedure it is of. */
#define WHY_FROM 16
struct why_charge {
	enum culprit culprit;
	double min, max;
	uint32_t nfrom; /* of the first WHY_FROM at most, the addresses follow */
	uint64_t from[WHY_FROM];
};
struct why_place {
	uint64_t address;
	struct why_insn insn;
	double cycles, lost; /* why_insn_cycles, why_lost */
	double stopped;      /* its static stall as far as it showed: what others left of cycles */
	uint64_t on;         /* what a static stall waits for, 0: none */
	char units[64];
	uint32_t ncharges;
	struct why_charge charges[CULPRITS];
};
void why_place_init(struct why_place *p, const struct why *w, uint32_t insn);

/* In words: "D-cache miss: the load at 40133a", "operand of another instruction: that at 4012". */
void why_charge_words(const struct why_place *p, const struct why_charge *c, FILE *out);
void why_cause_words(const struct why_place *p, FILE *out);

double why_block_samples(const struct why *w, uint32_t block); /* after the shift */
/* By block: whether nothing was seen of it, and nothing says that it ran. Free it. */
bool *why_cold_blocks(const struct why *w);

/* A way of an unresolved jump that was seen: the graph has no edge for it. */
struct why_seen {
	uint32_t from, to; /* blocks */
	double count;      /* as the frequencies have it: its part of the block's */
};
size_t why_seen_edges(const struct why *w, struct why_seen **out); /* free it */

/*
 * Cycles of one execution, and the CPI of the procedure. Where the scale is relative they are those
 * of the largest scale that is possible: the least. NAN where nothing ran.
 */
double why_insn_cycles(const struct why *w, const struct why_insn *i);
double why_block_cycles(const struct why *w, uint32_t block);
double why_cpi(const struct why *w);

/* Cycles beyond mere execution that an instruction took in all, if it had stalls. */
double why_lost(const struct why *w, const struct why_insn *i);

/* The table of Figure 4; every line begins with `prefix`. */
void why_summary_print(const struct why_summary *s, const char *prefix, FILE *out);
void why_summary_json(const struct why_summary *s, struct json *j);
/* The keys "static" and "stalls" of an instruction. */
void why_place_json(const struct why_place *p, struct json *j);

#endif
