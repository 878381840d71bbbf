/*
 * Why a procedure took its time (the paper's section 6): cycles per instruction, what the code
 * alone costs, and who may be to blame for the rest.
 *
 * Samples are moved to the instruction that held up retirement (why_machine.skid). On a core that
 * reorders, "the time of an instruction" is the time that it was the oldest one not yet retired;
 * what it waits for then is its own result, or to be fetched at all: operands come from older
 * instructions, which are done. So a load that misses stalls itself and not who uses it, and the
 * refill behind a mispredicted branch stalls the first instruction of where it goes.
 *
 * The best case (min_cpi) is that of the scoreboard on the most frequent way to the block. It is
 * right for a block rather than for each of its instructions: where exactly a core retires what
 * takes one cycle together is chance, so it is laid out over the block as the samples are.
 *
 * Where the scale of the frequencies is relative, cpi is unknown (NAN). Counts, stalls and shares
 * are then the likeliest ones, where the scale is told roughly (frequency.told). Where nobody tells
 * it they are those of the largest scale that the best case allows: nothing can have run much more
 * often in that time, so stalls are what there is at least. cpi_low is a bound, cpi_high is
 * INFINITY.
 */
#ifndef CULPRIT_ANALYZE_WHY_H
#define CULPRIT_ANALYZE_WHY_H

#include "isa/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct evidence;
struct foresight;
struct residence;
struct frequency;
struct selection;
struct stays;

/* ---- words ---- */

/* Dynamic culprits. */
enum culprit {
	CULPRIT_DCACHE,
	CULPRIT_DTLB,
	CULPRIT_MISPREDICT,
	CULPRIT_ICACHE,
	CULPRIT_ITLB,
	CULPRIT_FRONTEND,
	CULPRIT_STORE_BUFFER,
	CULPRIT_FORWARDING,
	CULPRIT_ALIAS,
	CULPRIT_DIVIDER,
	CULPRIT_LOCKED,
	CULPRIT_SERIALISING,
	CULPRIT_CLEAR,
	CULPRIT_ASSIST,
	CULPRIT_CALLEE, /* the return of what was called: its samples fall behind the call */
	CULPRIT_STEAL,
	CULPRITS,
};
const char *culprit_name(enum culprit);  /* "store_buffer", as in JSON */
const char *culprit_title(enum culprit); /* "store buffer full" */
char culprit_letter(enum culprit);       /* 'w' */

/* Static causes: what the scoreboard waited for. */
enum why_cause {
	WHY_OPERAND, /* what another instruction computes */
	WHY_STORED,  /* what another instruction stores, and this one loads */
	WHY_LATENCY, /* its own: nothing before it is left to do meanwhile */
	WHY_UNIT,
	WHY_FRONT,  /* its turn to enter the window */
	WHY_WINDOW, /* room: in the window, schedulers, queues, or registers */
	WHY_ORDER,  /* serialisation */
	WHY_CAUSES,
};
const char *why_cause_name(enum why_cause);  /* "operand", as in JSON */
const char *why_cause_title(enum why_cause); /* "operand of another instruction" */
char why_cause_letter(enum why_cause);       /* 'a' */

/* ---- the machine that was sampled ---- */

#define WHY_CODE_LINES 512 /* lines of 64 bytes that most first caches of code hold */

struct why_machine {
	const struct model *model;
	bool known;           /* else the model is a generic one */
	double cycles_per_ns; /* of the core, while it was sampled */
	double skid;          /* instructions that samples fall behind; 0: a precise event */
	double own;    /* share of a sample's time that is the program's and not the interrupt's */
	double steal;  /* share of the time that a hypervisor took, at most */
	double cycles; /* of all that is selected, 0: unknown */
	/* Lines of 64 bytes and pages that hold nearly all executed code; 0: unknown. */
	uint64_t hot_lines, hot_pages;
	uint64_t code_lines;         /* that the first cache of code holds; 0: WHY_CODE_LINES */
	struct foresight *foresight; /* owned; NULL: there are no walks */
	struct residence *residence; /* the same */
	struct stays *stays;         /* owned; NULL: there are no excursions */
	/* Sampled events that bound a culprit (L1-dcache-load-misses, branch-misses, ...). */
	struct {
		size_t number; /* in the selection; SIZE_MAX: there is none */
		double period;
	} event[CULPRITS];
};

/* By the host and the time event of the selection. */
int why_machine_init(struct why_machine *m, struct selection *sel, struct err *e);
void why_machine_deinit(struct why_machine *m);

/* ---- a procedure ---- */

/* Cycles of each execution; they may all be due to it, and `min` of them cannot be due to another.
 */
struct why_stall {
	enum culprit culprit;
	double min, max;
	uint32_t first_from, nfrom; /* in why.from: instructions to blame, by number in the flow */
};

struct why_insn {
	double samples;                /* after the shift by the skid */
	double count;                  /* executions */
	double cpi, cpi_low, cpi_high; /* cycles as the oldest; cpi NAN: unknown */
	double min_cpi;                /* best case, as it was seen here */
	double execution;              /* its share of the width of the core */
	/* Share of the times that what it loads is gone from the first cache, and its line of code
	 * where it is the first one there; NAN: no excursion tells. */
	double gone, line_gone;
	/* Static stall, cycles: */
	double stopped; /* as scheduled; min_cpi has it where it was seen */
	enum why_cause cause;
	uint32_t on;   /* the instruction that it waits for, or GRAPH_NONE */
	uint8_t group; /* of a WHY_UNIT: the units, see model_group */
	/* Dynamic stall, cycles: */
	double stall;
	double unexplained;            /* of it */
	uint32_t first_stall, nstalls; /* in why.stalls, the likeliest first */
};

/* Cycles of one execution of a block, or of all executions of a procedure per instruction. */
struct why_cycles {
	double best, actual, low, high; /* actual NAN, high INFINITY: unknown */
};

/*
 * Shares of the time. They add up: execution + causes + dynamic + unexplained + gain + error = 1,
 * where the sum of the culprits' min <= dynamic <= sum of their max.
 */
struct why_summary {
	double execution;
	double cause[WHY_CAUSES];
	double dynamic; /* stalls that have a culprit */
	struct {
		double min, max;
	} culprit[CULPRITS];
	double unexplained;      /* stalls that have none */
	double unexplained_gain; /* never positive: faster than the best case */
	double sampling_error;   /* either sign: differences that chance can make */
};

struct why {
	const struct evidence *evidence;
	const struct frequency *frequency;
	struct why_machine machine;
	struct why_insn *insns; /* by instruction of the flow */
	struct why_cycles
		*blocks;       /* by block: cycles of one execution; CPI is that / instructions */
	struct why_cycles cpi; /* of the procedure: best_cpi, actual_cpi, cpi_low, cpi_high */
	struct why_stall *stalls;
	uint32_t nstalls;
	uint32_t *from;
	uint32_t nfrom;
	double sample;  /* cycles that one stands for */
	double cycles;  /* of all samples on instructions */
	double assumed; /* counts here / counts of the frequency; 1 unless nobody tells the scale */
	bool likeliest; /* the scale is relative, and told roughly */
	struct why_summary summary;
};

/* All of them must outlive it. */
int why_create(const struct evidence *ev, const struct frequency *f, const struct why_machine *m,
	struct why **out, struct err *e);
void why_destroy(struct why *w);

/*
 * What the counts of a frequency must be multiplied with to take the time that was seen outside of
 * loads that may miss (why_tempo.c): its scale, give or take a quarter. NAN: nothing is known.
 */
struct why_tempo_parts {
	double all, far; /* samples; of these at loads that may miss */
	double sample;   /* cycles that one stands for */
	/* By the counts as they are, outside of such loads: cycles at best, and of the core's
	 * width; mispredicted branches; lines of code that are gone. */
	double best, work, missed, gone;
};
int why_tempo(const struct evidence *ev, const struct frequency *f, const struct why_machine *m,
	double *out, struct why_tempo_parts *parts, struct err *e);

/* How far tempos of a program are off together, as a logarithm: on chips that were measured less.
 */
double why_tempo_doubt(const struct why_machine *m);

/* The units of a group in words ("ports 0, 5"): at most size bytes. */
const char *why_units(const struct why *w, unsigned group, char *text, size_t size);

/* ---- the rules that acquit ---- */

/* What each rule is called and why it holds; i from 0 until NULL. For listings and manuals. */
struct why_rule_words {
	const char *name, *why;
	enum culprit culprit;
};
const struct why_rule_words *why_rule(size_t i);

/* ---- a program ---- */

struct why_program {
	struct why_summary sum; /* cycles, not shares, while it is added up */
	double known;           /* cycles of procedures whose scale is known */
	double relative;        /* of those whose scale is not: in no line of the summary */
	struct why_summary relative_sum;
	double unseen;             /* of what could not be analysed: no code, no procedure */
	double best, instructions; /* of the known: cycles at best, executed instructions */
};

void why_program_add(struct why_program *p, const struct why *w);
void why_program_add_unseen(struct why_program *p, double cycles);
/* Shares of the known cycles; all 0 when there are none. */
struct why_summary why_program_summary(const struct why_program *p);
/* The same of those whose scale is not known, at the largest that is possible. */
struct why_summary why_program_relative(const struct why_program *p);

#endif
