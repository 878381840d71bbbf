/*
 * Writes a gzip file to a stream as it comes. The same bytes give the same file: it has no time and
 * no name. Who closes the stream sees whether it could be written.
 */
#ifndef CULPRIT_EXPORT_GZIP_H
#define CULPRIT_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct gzip;

struct gzip *gzip_create(FILE *out);
void gzip_put(struct gzip *g, const void *p, size_t n);
void gzip_finish(struct gzip *g); /* and frees it */

#endif
