/*
 * The tool that traces in bursts (Hirzel and Chilimbi 2001): every procedure that allows it exists
 * twice in the edited file, with checks in both copies (checks.h) and recording in the second
 * (rt/burst.h). What is recorded is a payload (payload.h): the memory that instructions name, calls
 * and returns, paths, values.
 *
 * Direct calls of the second copy go to second copies; calls through pointers go to first ones,
 * whose check at the entry leads on. What cannot be had twice stays as it was and records nothing.
 */
#ifndef CULPRIT_BURST_BURST_H
#define CULPRIT_BURST_BURST_H

#include <stdbool.h>

#include "burst/checks.h"
#include "edit/tool.h"

struct payload;

struct burst_options {
	enum checks_entries entries;
	unsigned boring; /* loops with at most so many references are left alone; 0: none is */
	const struct payload *payload;
	const char *more; /* what is said of it; NULL: nothing */
};

/* The paper's choice (5.1): checks where cycles need them, no loops with at most 4 references. */
extern const struct burst_options burst_defaults;

/* The options must outlive it. */
void burst_tool(const struct burst_options *o, struct edit_tool *out);

#endif
