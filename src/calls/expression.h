/*
 * DWARF expressions (DWARF 5, 2.5) as unwind rows have them: arithmetic on registers and memory of
 * the frame. Linkage tables, realigned stacks and the frames that signal handlers return to are
 * described so.
 */
#ifndef CULPRIT_CALLS_EXPRESSION_H
#define CULPRIT_CALLS_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct expression_scene {
	const uint64_t *registers;                             /* FRAME_REGISTERS of them */
	uint32_t known;                                        /* a bit for each */
	bool (*read)(void *arg, uint64_t at, uint64_t *value); /* false: not there */
	void *arg;
};

/* `first`, if given, is pushed before. False when it cannot be told. */
bool expression_evaluate(const uint8_t *p, size_t n, const struct expression_scene *scene,
	const uint64_t *first, uint64_t *out);

#endif
