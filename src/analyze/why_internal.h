/* What the files of the analysis share: the state while one procedure is analysed. */
#ifndef CULPRIT_ANALYZE_WHY_INTERNAL_H
#define CULPRIT_ANALYZE_WHY_INTERNAL_H

#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "analyze/why.h"
#include "base/vec.h"
#include "flow/loops.h"
#include "isa/form.h"
#include "isa/hazards.h"
#include "isa/scoreboard.h"

/* What is known of an instruction from its bytes. */
struct why_fact {
	struct model_insn model;
	uint8_t hazards; /* enum hazard */
	bool ready;      /* the rest is filled */
	bool loads, stores;
};

/* Where the samples are, in cycles of all executions together. */
struct why_time {
	double seen;      /* sampled */
	double best;      /* at best, by the scoreboard */
	double laid;      /* of what is best here and near: what was seen here of it */
	double hidden;    /* of best: seen nowhere near */
	double kept;      /* of seen: the wait for the way of a branch, likely */
	bool significant; /* seen - laid is more than chance */
};

/* How an address changes inside a loop. */
struct why_loop {
	bool ready;
	bool calls;
	uint32_t replaced; /* general registers, a bit each, that change other than by constants */
	int64_t by[16];    /* sum of the constants */
	uint32_t lines, pages; /* of code */
};

/* Shares of the executions of a block. */
struct why_misses {
	double before, before_likely; /* that follow a mispredicted transfer: at most, likely */
	double after, after_likely;   /* that end in one */
	bool foreseen;                /* the likely one is known from walks */
};

/* What shows at an instruction because the pipeline was emptied before, in cycles of all
 * executions.
 */
struct why_shadow {
	double missed, likely; /* at most, likely */
	double most;           /* of the first, by one block */
	uint32_t block;
};

struct why_work {
	struct why *why;
	const struct evidence *evidence;
	const struct frequency *frequency;
	const struct flow *flow;
	const struct why_machine *machine;
	struct why_fact *facts;    /* by instruction, filled on demand: why_fact_of */
	uint32_t *block_of;        /* by instruction */
	struct why_time *time;     /* by instruction */
	struct why_misses *misses; /* by block */
	struct why_shadow *shadow; /* by instruction */
	struct loops loops;
	struct why_loop *loop; /* by loop, filled on demand: why_loop_of */
	struct scoreboard *board;
	double sample; /* cycles that a sample stands for */
	double *late; /* by instruction: cycles that show if what comes from elsewhere comes late */
	double *stayed; /* by instruction: samples that a caller's transfer may have caused */
	/* Cycles of another line of code where nothing else can be to blame: of the next one, and
	   of one that a transfer leads to. */
	double next_line, other_line;
	bool admits; /* that what comes from elsewhere is late */
	VEC(struct why_stall) stalls;
	VEC(uint32_t) from;
};

/* ---- why_code.c: the code and ways through it ---- */

const struct why_fact *why_fact_of(struct why_work *w, uint32_t insn);
const struct why_loop *why_loop_of(struct why_work *w, uint32_t loop);

double why_block_count(const struct why_work *w, uint32_t block);
double why_edge_count(const struct why_work *w, uint32_t edge);

/* Where the byte at an address stands in the file. */
uint64_t why_offset(const struct why_work *w, uint64_t address);

/* An instruction that enters and retires together with the branch after it. */
bool why_fuses(struct why_work *w, uint32_t insn);
/* The last instruction of a block, or the one that it is fused with. */
uint32_t why_last(struct why_work *w, uint32_t block);

/* The edge by which control comes or goes most often, or GRAPH_NONE. */
uint32_t why_edge_in(const struct why_work *w, uint32_t block);
uint32_t why_edge_out(const struct why_work *w, uint32_t block);

/*
 * The most frequent way to an instruction: numbers of those before it, the nearest last; at most
 * `most`. Stops where the procedure is entered.
 */
size_t why_way_to(struct why_work *w, uint32_t insn, uint32_t *way, size_t most);

/*
 * The ways to an instruction that come often, each with its share of the executions; they add up to
 * 1. Order and length as above.
 */
typedef void why_way_fn(void *arg, const uint32_t *way, size_t n, double share);
void why_ways_to(struct why_work *w, uint32_t insn, size_t most, why_way_fn *fn, void *arg);

/* How the address of a memory operand goes on from one iteration to the next. */
enum why_place {
	WHY_PLACE_STACK,   /* of the procedure's frame */
	WHY_PLACE_FIXED,   /* in the code */
	WHY_PLACE_SAME,    /* in all iterations of the innermost loop */
	WHY_PLACE_STRIDED, /* goes on by a constant */
	WHY_PLACE_ANY,
};
enum why_place why_place_of(
	struct why_work *w, uint32_t insn, const struct model_place *p, int64_t *stride);
/* Whether an instruction loads from where it may miss. */
bool why_loads_far(struct why_work *w, uint32_t insn);

/* ---- the steps, in their order ---- */

void why_shift(struct why_work *w);                  /* why_shift.c: why_insn.samples */
int why_schedule(struct why_work *w, struct err *e); /* why_model.c: best case, static stalls */
void why_lay_out(struct why_work *w);                /* why_layout.c: why_work.time */
void why_accuse(struct why_work *w);                 /* why_trial.c: stalls */
void why_sum_up(struct why_work *w);                 /* why_summary.c */
void why_show_stays(struct why_work *w);             /* why_code.c: why_insn.gone, line_gone */

/* Instead of the last three, after the first two: see why_tempo in why.h. */
double why_measure_tempo(struct why_work *w, struct why_tempo_parts *p); /* why_tempo.c */

/* ---- what rules look at ---- */

/* why_memory.c: what older instructions on the way to an instruction did to the place it loads. */
struct why_memory {
	uint32_t stored_by; /* the youngest that stores some of what it loads, or GRAPH_NONE */
	bool covered;       /* and all of it: can be forwarded */
	uint32_t maybe;     /* a smaller store by an index into where it loads, or GRAPH_NONE */
	uint32_t aliased;   /* one that stores a multiple of 4096 bytes away, or GRAPH_NONE */
	uint32_t call;      /* one just before it, or GRAPH_NONE */
	double apart; /* share that may be in another line than what older ones had, of all ways */
	uint32_t far_stores; /* stores on the way that are neither to the stack nor to fixed places
			      */
	uint32_t last_store; /* the youngest of these, or GRAPH_NONE */
	uint32_t next_store; /* such a one that enters the window together with it, or GRAPH_NONE */
	uint32_t slow;       /* a locked or serialising one right beside it, or GRAPH_NONE */
};
void why_memory_at(struct why_work *w, uint32_t insn, struct why_memory *out);

/* why_front.c: what the front end may have had to do before an instruction. */
void why_keep_refills(struct why_work *w); /* why_time.kept */
void why_find_missed(struct why_work *w);  /* why_work.misses */
void why_find_front(struct why_work *w);   /* these, and what lines of code cost */
struct why_front {
	bool leads;        /* it is the first that is fetched behind a transfer, */
	bool ends;         /* it is the transfer, or fused with it */
	double missed;     /* cycles that mispredicted transfers can have cost it, */
	double likely;     /* and likely did */
	bool foreseen;     /* the latter by walks */
	double fresh_line; /* share that comes from another line of code, */
	double fresh_page; /* from another page */
	double gone;       /* of the first: that find the line gone from the cache, by walks; */
	double gone_likely, gone_most; /* by excursions where these came by: */
	bool watched;
	double fresh;    /* share that comes from outside of the loop, */
	uint32_t lines;  /* which has so many lines of code, */
	uint32_t pages;  /* and pages */
	double entered;  /* share that comes from a caller */
	uint32_t branch; /* to blame, or GRAPH_NONE */
};
void why_front_at(struct why_work *w, uint32_t insn, struct why_front *out);
/* How often the innermost loop of a block is entered, for each execution; 1: it is in none. */
double why_fresh(struct why_work *w, uint32_t block);
/* How often the line of an instruction is another than before, and gone from the cache. */
double why_line_gone(struct why_work *w, uint32_t insn);
/* Cycles of a line that is gone, in the mean of programs on the chip (why_tempo.c). */
double why_line_cost(const struct why_work *w);

#endif
