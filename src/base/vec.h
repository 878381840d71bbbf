/*
 * Growable arrays: `VEC(struct row) rows = {0}; *vec_add(&rows) = r; vec_deinit(&rows);`
 * Elements may move when the array grows.
 */
#ifndef CULPRIT_BASE_VEC_H
#define CULPRIT_BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

#define VEC(type)             \
	struct {              \
		type *p;      \
		size_t n;     \
		size_t space; \
	}

void vec_grow(void **p, size_t *space, size_t need, size_t size);

#define vec_reserve(v, need)                                                                   \
	((need) > (v)->space ? vec_grow((void **)&(v)->p, &(v)->space, (need), sizeof *(v)->p) \
			     : (void)0)

/* A pointer to a new, uninitialised last element. */
#define vec_add(v) (vec_reserve(v, (v)->n + 1), &(v)->p[(v)->n++])

#define vec_each(it, v) for (__typeof__(&*(v)->p) it = (v)->p; it && it < (v)->p + (v)->n; it++)

#define vec_sort(v, compare) ((v)->n ? qsort((v)->p, (v)->n, sizeof *(v)->p, compare) : (void)0)

/* Gives back what is beyond the last element. */
#define vec_shrink(v)                                                                          \
	((v)->n ? ((v)->p = xrealloc((v)->p, ((v)->space = (v)->n) * sizeof *(v)->p), (void)0) \
		: vec_deinit(v))

#define vec_deinit(v) (free((v)->p), (v)->p = NULL, (v)->n = (v)->space = 0)

#endif
