/*
 * How values of plug-ins are printed: by the plug-in that made them, where it can be found. Those
 * that come with culprit are found by themselves when a value of theirs turns up.
 */
#ifndef CULPRIT_CMD_VALUE_FORMAT_H
#define CULPRIT_CMD_VALUE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct value_formats;

struct value_formats *value_formats_create(void);
void value_formats_destroy(struct value_formats *f);

/* A plug-in that the user names: a file, or one that came with culprit. */
int value_formats_add(struct value_formats *f, const char *spec, struct err *e);

/* The plug-in's name, and a value as it prints it; NULL and false without a plug-in. */
const char *value_formats_name(struct value_formats *f, unsigned kind);
bool value_formats_put(
	struct value_formats *f, unsigned kind, uint64_t value, char *text, size_t size);

#endif
