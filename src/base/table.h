/*
 * Text tables: columns as wide as their widest cell, numbers to the right, the last column free.
 * Widths count terminal columns of UTF-8 text. On a terminal the last column is cut to the width.
 */
#ifndef CULPRIT_BASE_TABLE_H
#define CULPRIT_BASE_TABLE_H

#include <stdio.h>

struct table;

/* One character a column: '<' left, '>' right. */
struct table *table_create(const char *columns);
void table_destroy(struct table *t);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_row(struct table *t);    /* ends the row; missing cells are empty */
void table_header(struct table *t); /* the rows so far are the heading */
void table_print(const struct table *t, FILE *out, int width); /* width 0: no limit */

#endif
