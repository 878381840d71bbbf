/*
 * Counts as the text profile that `clang -fprofile-sample-use` reads: for each function its lines,
 * as far as they are from its first, with how often they ran, functions inlined there below them.
 *
 * The program needs DWARF lines; with -fdebug-info-for-profiling they tell the parts of a line
 * apart (discriminators).
 */
#ifndef CULPRIT_EXPORT_LLVM_SAMPLE_H
#define CULPRIT_EXPORT_LLVM_SAMPLE_H

#include "export/code_counts.h"

#include <stdio.h>

struct err;

/* -ENOENT when the image has no lines; *functions is how many were written. */
int llvm_sample_write(struct selection *sel, const struct code_image *im, FILE *out,
	size_t *functions, struct err *e);

#endif
