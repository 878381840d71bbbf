/*
 * Hot data streams (Chilimbi, PLDI 2001; Hirzel and Chilimbi, FDDO 2001, section 5.2): sequences of
 * references to memory that come again and again.
 *
 * A reference is an instruction and an address, of one run and process. Sequitur (or, offline,
 * Re-Pair) finds what repeats. Where two references follow each other too rarely for any hot stream
 * the trace is cut, then into pieces of a wanted length (stream_cut.h). These are looked for in the
 * trace again; occurrences do not overlap, and what several could have belongs to the hottest of
 * them (heat is length x occurrences). The hottest that together account for a wanted share of all
 * references are hot, if each by itself has a share that is worth it. Bursts are never joined.
 */
#ifndef CULPRIT_ANALYZE_STREAMS_H
#define CULPRIT_ANALYZE_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/selection.h"
#include "store/traces.h"

struct err;
struct streams;

struct streams_options {
	uint32_t shortest, longest; /* lengths that are wanted */
	double coverage;            /* share of all references that hot streams shall have */
	double least;               /* and that each must have */
	bool offline;               /* Re-Pair over the whole trace instead of Sequitur */
};

struct stream_reference {
	struct trace_site site;
	uint64_t address;
	uint32_t process;
	uint64_t time; /* of the burst that had it first */
};

struct stream {
	const struct stream_reference *references;
	uint32_t length;
	uint64_t occurrences, heat;
	uint32_t lines, least; /* cache lines that it touches; that its bytes would need */
};

struct streams_summary {
	uint64_t bursts, references, lost;
	uint64_t hot;          /* references in hot streams */
	uint64_t candidates;   /* streams of wanted length that came twice at least */
	size_t rules, symbols; /* of the grammar */
};

/* -ENOENT: the selection has no bursts. */
int streams_create(struct selection *sel, const struct streams_options *o, struct streams **out,
	struct err *e);
void streams_destroy(struct streams *s);

size_t streams_all(const struct streams *s, const struct stream **out); /* the hottest first */
const struct streams_summary *streams_summary(const struct streams *s);

/* Each burst of a selection; a negative value from fn ends it with that. */
typedef int streams_burst_fn(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b);
int streams_each_burst(
	struct selection *sel, streams_burst_fn *fn, void *arg, uint64_t *lost, struct err *e);

/* A hot stream in a burst: its number in streams_all, and its first and last event. */
struct streams_occurrence {
	size_t stream;
	size_t first, last;
};

/* Each burst again, with what occurs in it, in no order. */
typedef int streams_occurrences_fn(void *arg, const struct trace_site *sites,
	const struct trace_burst *b, const struct streams_occurrence *list, size_t n);
int streams_each_occurrence(
	struct streams *s, streams_occurrences_fn *fn, void *arg, struct err *e);

#endif
