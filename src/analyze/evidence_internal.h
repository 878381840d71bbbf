/*
 * What the two halves of the evidence share: evidence_source.c reads an image's profiles and places
 * them in procedures, evidence.c puts those of one procedure onto its flow.
 */
#ifndef CULPRIT_ANALYZE_EVIDENCE_INTERNAL_H
#define CULPRIT_ANALYZE_EVIDENCE_INTERNAL_H

#include "analyze/evidence.h"
#include "base/buf.h"
#include "base/vec.h"
#include "flow/program.h"
#include "store/edges.h"

/* Everything is sorted by procedure first. Addresses are virtual. */
struct placed_samples {
	uint32_t procedure, event;
	uint64_t address, count;
};

struct placed_edge {
	uint32_t procedure;
	struct edge edge; /* from is virtual, and `to` where target is 0 */
};

struct placed_passage {
	uint32_t procedure;
	uint32_t excursion, stretch;
	struct edge edge; /* as that of a placed edge */
	double weight;
};

struct placed_pace {
	uint32_t procedure;
	struct pace pace;
};

struct placed_anchor {
	uint32_t procedure;
	struct anchor anchor;
};

/* Samples of a callee that belong to the call in front of an address. */
struct placed_call {
	uint32_t procedure, callee;
	uint64_t address; /* where the call comes back to */
	double share;     /* of the callee's returns */
	double samples;
};

struct evidence_source {
	struct selection *sel;
	struct selected_image *image;
	struct image *file; /* NULL unless it is the one that was sampled */
	struct program *program;
	VEC(struct placed_samples) samples;
	VEC(struct placed_edge) edges;
	VEC(struct placed_passage) passages;
	uint32_t excursions;    /* so many, */
	uint64_t last_excursion; /* the last one's number */
	VEC(struct placed_anchor) anchors;
	VEC(struct placed_pace) paces;
	VEC(struct placed_call) calls;
	VEC(struct evidence_procedure) procedures;
	size_t time; /* the event, by its number in the selection; SIZE_MAX: there is none */
	double period;
	bool clock;
};

/* The elements of a vector that belong to a procedure: the first, and how many. */
#define evidence_slice(v, number, first) \
	evidence_slice_of((v)->p, (v)->n, sizeof *(v)->p, number, (const void **)(first))
size_t evidence_slice_of(
	const void *p, size_t n, size_t size, uint32_t procedure, const void **first);

/* Finds the calls, once samples and edges are there (evidence_calls.c). */
void evidence_find_calls(struct evidence_source *s);

#endif
