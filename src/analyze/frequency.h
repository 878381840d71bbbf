/*
 * How often each block and edge of a procedure ran, estimated from what was sampled of it (section
 * 6.1 of the DCPI paper, for chips where samples over minimum cycles say nothing).
 *
 * Branch outcomes of bursts carry the frequencies, the flow's conservation ties them together, and
 * samples are weak evidence where neither says anything. That gives frequencies relative to each
 * other. Their scale is another matter and is said apart: FREQUENCY_RELATIVE means that counts are
 * right only within the procedure (all of them are made from its time as if instructions took what
 * they take on the average); FREQUENCY_KNOWN that anchors tell it, within scale_low and scale_high.
 * A relative scale may still be told roughly, by how long code takes and by who calls whom: counts
 * are then the likeliest ones.
 */
#ifndef CULPRIT_ANALYZE_FREQUENCY_H
#define CULPRIT_ANALYZE_FREQUENCY_H

#include "analyze/evidence.h"
#include "flow/solver.h"

#include <stdbool.h>

struct err;

#define FREQUENCY_NINETY 1.645 /* standard errors around an interval that holds 9 times of 10 */
/* An anchor that is off by more from what the rest says, as a logarithm, cannot be right. */
#define FREQUENCY_CONTRADICTS 0.8

enum frequency_scale { FREQUENCY_RELATIVE, FREQUENCY_KNOWN, FREQUENCY_EXACT };

enum frequency_confidence {
	CONFIDENCE_LOW,
	CONFIDENCE_MEDIUM, /* within 25% in 9 cases of 10 */
	CONFIDENCE_HIGH,   /* within 10% in 95 cases of 100 */
	CONFIDENCE_EXACT,
};

/* The interval holds 9 times of 10, within the procedure: its scale is taken as right. */
struct estimate {
	double count, low, high;
	enum frequency_confidence confidence;
};

/* What an anchor says: what the logarithm of all counts is off by, and its standard error. */
struct frequency_word {
	double says, error;
};

struct frequency {
	const struct flow *flow; /* the evidence's */
	enum frequency_scale scale;
	double scale_low, scale_high; /* factors that the scale leaves open; 0 and INFINITY when it
					 is relative */
	double told; /* of a relative scale: standard error of its logarithm; 0: nobody tells it */
	/* Of all anchors that were found, though they may not tell the scale of the whole. */
	struct frequency_word *words;
	size_t nwords;
	struct estimate *block, *edge; /* by block, by edge of flow->graph */
	bool converged;                /* false: the fit came to no end, all confidence is low */
	struct flow_start start;       /* for frequency_renew */
};

/* The evidence must outlive it. */
int frequency_create(const struct evidence *ev, struct frequency **out, struct err *e);
/* Once more, when the evidence has changed a little; on failure it stays as it is. */
int frequency_renew(struct frequency **f, const struct evidence *ev, struct err *e);
void frequency_destroy(struct frequency *f);

/*
 * Multiplies the counts of one whose scale is relative; blocks that anchors tell stay near these.
 * `error` is the standard error of the factor's logarithm; the scale is known then if it and the
 * blocks' own are small enough.
 */
void frequency_rescale(struct frequency *f, const struct evidence *ev, double factor, double error);

const char *frequency_scale_name(enum frequency_scale scale);
const char *frequency_confidence_name(enum frequency_confidence confidence);

#endif
