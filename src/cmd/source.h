/*
 * Source lines above instructions: each is printed where it differs from the one before.
 */
#ifndef CULPRIT_CMD_SOURCE_H
#define CULPRIT_CMD_SOURCE_H

#include <stdio.h>

struct listing_line;

struct source_above {
	char *file; /* of the line printed last */
	int line;
};

void source_above_print(
	struct source_above *s, const struct listing_line *line, int indent, FILE *out);
void source_above_deinit(struct source_above *s);

#endif
