/*
 * What callgrind counted: executions of every instruction and transfers between them, by object.
 *
 * Reads the output of `callgrind --dump-instr=yes --collect-jumps=yes --compress-strings=no
 * --compress-pos=no`. Its addresses are file virtual addresses already: callgrind takes off where
 * an object was loaded. Only "jump", "jcnd" and "calls" lines name targets, and calls do so across
 * objects too; a jump that callgrind takes for a call is one of these.
 */
#ifndef CULPRIT_BENCH_CALLGRIND_H
#define CULPRIT_BENCH_CALLGRIND_H

#include "base/hmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct callgrind_insn {
	uint64_t address;
	uint32_t object, pad;
	uint64_t count;
};

struct callgrind_transfer {
	uint64_t from, to;
	uint32_t object, pad; /* both ends are in it */
	uint64_t count;
};

struct callgrind {
	struct strtab objects; /* paths */
	struct hmap insns, transfers;
	/* While reading: */
	uint32_t object, called; /* current ones */
	uint64_t to, count;      /* of the transfer whose second line comes next */
	enum { CALLGRIND_COSTS, CALLGRIND_JUMP, CALLGRIND_CALL } expects;
};

static void callgrind_init(struct callgrind *c)
{
	*c = (struct callgrind){0};
	hmap_init(&c->insns, sizeof(struct callgrind_insn), offsetof(struct callgrind_insn, count));
	hmap_init(&c->transfers, sizeof(struct callgrind_transfer),
		offsetof(struct callgrind_transfer, count));
}

static void callgrind_deinit(struct callgrind *c)
{
	strtab_deinit(&c->objects);
	hmap_deinit(&c->insns);
	hmap_deinit(&c->transfers);
}

static uint64_t callgrind_count(const struct callgrind *c, uint32_t object, uint64_t address)
{
	struct callgrind_insn key = {.address = address, .object = object};
	const struct callgrind_insn *i = hmap_get(&c->insns, &key);

	return i ? i->count : 0;
}

static uint64_t callgrind_went(
	const struct callgrind *c, uint32_t object, uint64_t from, uint64_t to)
{
	struct callgrind_transfer key = {.from = from, .to = to, .object = object};
	const struct callgrind_transfer *t = hmap_get(&c->transfers, &key);

	return t ? t->count : 0;
}

/* "0xADDRESS LINE [COST]": what an instruction cost, or where the transfer before came from. */
static int callgrind_position(struct callgrind *c, const char *line)
{
	struct callgrind_insn at = {.object = c->object};
	struct callgrind_transfer t = {.to = c->to, .object = c->object};
	char *end;

	at.address = t.from = strtoull(line, &end, 16);
	if (end == line)
		return -EBADMSG;
	strtoull(end, &end, 10);
	if (c->expects == CALLGRIND_COSTS) {
		char *cost = end;

		at.count = strtoull(cost, &end, 10);
		if (end == cost)
			return -EBADMSG;
		((struct callgrind_insn *)hmap_put(&c->insns, &at, NULL))->count += at.count;
	} else if (c->expects == CALLGRIND_JUMP || c->called == c->object) {
		((struct callgrind_transfer *)hmap_put(&c->transfers, &t, NULL))->count += c->count;
	}
	c->expects = CALLGRIND_COSTS;
	c->called = c->object;
	return 0;
}

/* "calls=COUNT 0xTARGET LINE", "jump=COUNT ...", "jcnd=FOLLOWED/EXECUTED ...". */
static int callgrind_transfer(struct callgrind *c, const char *text, bool call)
{
	char *end;

	c->count = strtoull(text, &end, 10);
	if (end != text && *end == '/')
		strtoull(end + 1, &end, 10);
	if (end == text || *end != ' ')
		return -EBADMSG;
	c->to = strtoull(end, &end, 16);
	c->expects = call ? CALLGRIND_CALL : CALLGRIND_JUMP;
	return 0;
}

static int callgrind_line(struct callgrind *c, const char *line)
{
	if (!strncmp(line, "0x", 2))
		return callgrind_position(c, line);
	if (!strncmp(line, "calls=", 6))
		return callgrind_transfer(c, line + 6, true);
	if (!strncmp(line, "jump=", 5) || !strncmp(line, "jcnd=", 5))
		return callgrind_transfer(c, line + 5, false);
	if (!strncmp(line, "ob=", 3))
		c->called = c->object = strtab_add(&c->objects, line + 3);
	else if (!strncmp(line, "cob=", 4))
		c->called = strtab_add(&c->objects, line + 4);
	return 0;
}

/* -EBADMSG and the number of the line that is none of callgrind's. */
static int callgrind_read(struct callgrind *c, FILE *in, size_t *number)
{
	char *line = NULL;
	size_t space = 0;
	ssize_t n;
	int rc = 0;

	for (*number = 1; !rc && (n = getline(&line, &space, in)) > 0; *number += !rc) {
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		rc = callgrind_line(c, line);
	}
	free(line);
	return rc;
}

#endif
