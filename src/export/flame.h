/*
 * A flame graph: a tree of weights as a picture (SVG) that any browser shows. Boxes are as wide as
 * their weight, callers below callees; pointing at one tells its name and numbers. It has no
 * script.
 */
#ifndef CULPRIT_EXPORT_FLAME_H
#define CULPRIT_EXPORT_FLAME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct flame_box {
	uint32_t depth;     /* 0: a root */
	double weight;      /* with all that is above it */
	const char *name;   /* written into it as far as there is room */
	const char *detail; /* NULL, or what is told besides */
};

struct flame {
	const char *title, *subtitle;  /* any text */
	const char *unit;              /* of weights */
	double total;                  /* 0: the sum of the roots */
	const struct flame_box *boxes; /* in preorder */
	size_t n;
};

/* Boxes too narrow to be seen are left out, with what is above them. */
void flame_write(const struct flame *f, FILE *out);

#endif
