/*
 * How instructions walk through memory, and whether prefetching would help them. Most often it
 * would not: what lies in the first cache is there already, what steps evenly the hardware fetches,
 * and the next address of a chain is not known before the one before it is there.
 */
#ifndef CULPRIT_ANALYZE_ADVICE_PREFETCH_H
#define CULPRIT_ANALYZE_ADVICE_PREFETCH_H

#include "analyze/touches.h"

enum reach_kind {
	REACH_SAME,      /* one place */
	REACH_STRIDE,    /* even steps */
	REACH_POINTER,   /* to where the memory says */
	REACH_IRREGULAR, /* computed, without a step */
};

enum prefetch_verdict {
	PREFETCH_FITS,     /* don't: it stays in the first cache */
	PREFETCH_HARDWARE, /* don't: the hardware follows it */
	PREFETCH_LATE,     /* don't: the address is known too late; change the layout */
	PREFETCH_POINTER,  /* what the next pointer leads to, at the beginning of a turn */
	PREFETCH_PAGES,    /* some turns ahead: steps are too large for the hardware */
	PREFETCH_COMPUTED, /* some turns ahead, if the index is known by then */
};

struct reach_advice {
	struct trace_site site;
	uint32_t group;             /* that it touches most; OBJECT_NONE */
	uint64_t references, lines; /* different lines that it touched, in all bursts */
	uint64_t fresh;             /* references to a line that the burst had not touched before */
	int64_t stride;             /* the most frequent step in bytes, 0 for none */
	uint64_t steps, even;       /* steps; those of that size */
	uint64_t between;           /* other references between two of its own, in the mean */
	enum reach_kind kind;
	enum prefetch_verdict verdict;
};

struct reaches;
struct reaches *reaches_create(void);
void reaches_destroy(struct reaches *w); /* takes NULL */
void reaches_take(struct reaches *w, const struct touch *t);
/* Those with most fresh lines first. Without things no pointers are known. */
size_t reaches_settle(struct reaches *w, struct things *things, const struct reach_advice **out);

const char *reach_kind_name(enum reach_kind k);
const char *prefetch_name(enum prefetch_verdict v);  /* "don't", "prefetch" */
const char *prefetch_words(enum prefetch_verdict v); /* why */

#endif
