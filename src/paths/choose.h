/*
 * How the paths of a function are numbered: its graph, what is cut, and the plan by which they are
 * counted; and a place for the variable that the plan needs. Where none is to be had, paths end
 * wherever ways meet, so that nothing is needed.
 */
#ifndef CULPRIT_PATHS_CHOOSE_H
#define CULPRIT_PATHS_CHOOSE_H

#include "edit/exact_model.h"
#include "paths/map.h"
#include "paths/plan.h"

struct guide;

struct choosing {
	struct exact_scene scene;
	const struct guide *guide; /* what earlier runs counted; NULL: nobody knows */
	unsigned variable;         /* of snippets: v0 to v2 */
	bool bare;                 /* there is none: paths end wherever ways meet */
	uint64_t array;            /* potential paths that have a counter each */
	uint64_t tight;            /* rather only so many, if that costs hardly more: */
	bool everywhere;           /* also where it is only guessed what that costs */
	bool full;                 /* more are left whole, and hashed; else cut to be as few */
	uint64_t most;             /* even then */
	bool to_the_end;  /* paths are counted where they end, not where they are decided */
	bool derives;     /* paths that others tell of need no counter (derive.h) */
	const bool *ends; /* by edge of the flow: paths end there, whether they must or not; NULL:
			     where they must */
	/* Of the function, after choose_paths: */
	struct edit_function *function;
	struct path_function model; /* but where its counters are */
	exact_places places;
	struct numbering numbering;
	struct plan plan;
	VEC(uint8_t) fast; /* by node: whether the variable is in a register of its own (fast.h) */
	/* Inside: */
	struct graph graph;
	bool refined;         /* weights were counted */
	VEC(double) weights;  /* by link: how often, and what code there costs */
	VEC(double) cuttable; /* the same, negative where no path may end */
	VEC(bool) safe;       /* by node: paths that come there are not lost */
	VEC(bool) early;      /* by node: paths may be counted on the ways to it */
	uint32_t loops;       /* edges that must be cut */
	uint32_t certain;     /* edges at seams where all is put together again */
};

/* Its graph alone: model.graph and places. */
void choose_model(struct choosing *c, struct edit_function *f);
/* All of it, until choose_end. */
void choose_paths(struct choosing *c, struct edit_function *f);
void choose_end(struct choosing *c);

void choosing_deinit(struct choosing *c);

#endif
