/*
 * All that a selection knows of one procedure: its flow, its code, and what was sampled of it, by
 * instruction and edge.
 *
 * Samples stand where they were sampled: nothing is shifted by the host's skid. The flow comes from
 * the file while it is the one that was sampled, else from the code that the database keeps; then
 * jumps through tables are not resolved, and edges seen in bursts show where they went.
 *
 * evidence_create reads the image's profiles for one procedure. Who wants many of an image makes an
 * evidence_source, which reads them once. Both point into the selection, which must outlive them.
 */
#ifndef CULPRIT_ANALYZE_EVIDENCE_H
#define CULPRIT_ANALYZE_EVIDENCE_H

#include "analyze/selection.h"
#include "flow/cfg.h"
#include "store/anchors.h"
#include "store/paces.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* An edge sample that the graph does not have as an edge of its own. */
struct evidence_way {
	uint32_t insn;   /* the transfer, in flow->insns */
	uint64_t target; /* the image that `to` is in: 0 this one, else its key (store/edges.h) */
	uint64_t to;     /* virtual address in this image, file offset in another */
	uint64_t count;
	uint64_t passed; /* by excursions */
};

/* What an excursion (store/excursions.h) showed of a transfer of the procedure. */
struct evidence_passage {
	uint32_t excursion; /* a number, the same in all procedures of a source; */
	uint32_t stretch;   /* and of it (store/excursions.h) */
	uint32_t block;     /* that the transfer ends */
	uint32_t edge;      /* of flow->graph, GRAPH_NONE: it is none of these, but this way */
	struct evidence_way way;
	double count;
	double stands; /* ns that the excursion stands for, */
	double weight; /* and what makes of it how fast it was (analyze/excursions.h) */
};

/* How often everything ran, as edited copies counted (counted.h). */
struct evidence_counts {
	bool tied;            /* while it was sampled; else only relative to each other */
	double *block, *edge; /* by block, by edge of flow->graph */
	double *doubt;        /* by block: how far its count may be off, 0: not at all */
};

struct evidence {
	struct selected_image *image;
	uint32_t procedure;  /* its number in image->procedures */
	struct flow *flow;   /* owned */
	const uint8_t *code; /* of the procedure's ranges, one after the other */
	size_t code_size;

	/* Of the time event: the first selected one that is cycles or a clock. */
	uint64_t *samples; /* by instruction of flow->insns */
	uint64_t total;    /* also what lies on no instruction */
	double period;     /* what one sample stands for: ns of a clock, else cycles */
	bool clock;        /* period is in ns */
	bool timed;        /* there is such an event */

	/* By event of the selection: samples by instruction; NULL where it has none. */
	uint64_t **events;
	size_t nevents;
	uint64_t *none; /* what samples points to when there are none */

	/* Edge samples: by edge of flow->graph, and those that are none of these: calls, returns by
	   where they went, jumps that the graph does not resolve. Ways are by insn, target, to. */
	uint64_t *edges;
	struct evidence_way *ways;
	size_t nways;
	uint64_t *passed; /* the same of excursions, by edge; */
	struct evidence_passage *passages; /* and by block, then excursion, one by one */
	size_t npassages;
	/* Edge samples weighted against the bias of time (even.h), NULL: they are not. */
	double *outcomes;

	/* By block: samples of what it calls, shared out among the callers as returns were seen to
	   go. Callees in other images are not in it. */
	double *callees;

	struct anchor *anchors; /* with virtual addresses in pc and last; both are of this procedure
				 */
	size_t nanchors;

	struct pace *paces; /* with virtual addresses in offset */
	size_t npaces;

	struct evidence_counts *counts; /* NULL: none that hold here */
};

/* -ENOENT when there is no code of the procedure: neither in the database nor in the file. */
int evidence_create(struct selection *sel, struct selected_image *im, uint32_t procedure,
	struct evidence **out, struct err *e);
void evidence_destroy(struct evidence *ev);
void evidence_counts_destroy(struct evidence_counts *c);

/* The time event, by its number in the selection; SIZE_MAX: none is cycles or a clock. */
size_t evidence_time_event(const struct selection *sel);

/* The instruction of a flow that covers an address, GRAPH_NONE; block may be NULL. */
uint32_t evidence_insn_at(const struct flow *f, uint64_t address, uint32_t *block);

/* The edge of flow->graph that an edge sample took, with virtual addresses; GRAPH_NONE: it is none
   of these. */
struct edge;
uint32_t evidence_edge_of(const struct evidence *ev, const struct edge *seen);

/* The number of a way, its counts left aside; GRAPH_NONE. */
uint32_t evidence_way_at(const struct evidence *ev, const struct evidence_way *like);

/* ---- many procedures of one image ---- */

struct evidence_source;

int evidence_source_create(struct selection *sel, struct selected_image *im,
	struct evidence_source **out, struct err *e);
void evidence_source_destroy(struct evidence_source *s);

/* The procedures that have samples of the time event, the hottest first. */
struct evidence_procedure {
	uint32_t procedure;
	uint64_t samples;
};
size_t evidence_source_procedures(
	const struct evidence_source *s, const struct evidence_procedure **out);

/* As evidence_create; the evidence does not need the source any more. */
int evidence_take(
	struct evidence_source *s, uint32_t procedure, struct evidence **out, struct err *e);

#endif
