/*
 * Counts as the pre-aggregated profile that `llvm-bolt --pa` reads: "B FROM TO COUNT 0" for
 * branches that were taken and for calls, "F FROM TO COUNT" where control fell through.
 */
#ifndef CULPRIT_EXPORT_BOLT_H
#define CULPRIT_EXPORT_BOLT_H

#include "export/code_counts.h"

#include <stdio.h>

/* Returns how many lines it wrote. The selection is that of the counts. */
size_t bolt_write(struct selection *sel, const struct code_image *im, FILE *out);

#endif
