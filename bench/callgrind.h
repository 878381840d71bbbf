/*
 * What callgrind counted: executions of every instruction and transfers between them, by object.
 *
 * Reads the output of `callgrind --dump-instr=yes --collect-jumps=yes --skip-plt=no
 * --compress-strings=no --compress-pos=no` (skipped, a stub of the PLT would count as its call).
 * Addresses are file virtual addresses already: callgrind takes off where an object was loaded.
 * Only "jump", "jcnd" and "calls" lines name targets, and calls do so across
 * objects too; a jump that callgrind takes for a call is one of these.
 */
#ifndef CULPRIT_BENCH_CALLGRIND_H
#define CULPRIT_BENCH_CALLGRIND_H

#include "base/hmap.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum callgrind_event {
	CALLGRIND_EXECUTIONS,
	CALLGRIND_I1, /* misses of reads, where --cache-sim=yes: of the first caches and the last
			 one */
	CALLGRIND_D1,
	CALLGRIND_IL,
	CALLGRIND_DL,
	CALLGRIND_D1_WRITE, /* of writes, and of what reads and writes a place */
	CALLGRIND_DL_WRITE,
	CALLGRIND_EVENTS, /* of no interest */
};

struct callgrind_insn {
	uint64_t address;
	uint32_t object, pad;
	uint64_t count[CALLGRIND_EVENTS];
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
	enum callgrind_event columns[16];
	size_t ncolumns;
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

static __attribute__((unused)) uint64_t callgrind_count(
	const struct callgrind *c, uint32_t object, uint64_t address)
{
	struct callgrind_insn key = {.address = address, .object = object};
	const struct callgrind_insn *i = hmap_get(&c->insns, &key);

	return i ? i->count[CALLGRIND_EXECUTIONS] : 0;
}

static __attribute__((unused)) uint64_t callgrind_went(
	const struct callgrind *c, uint32_t object, uint64_t from, uint64_t to)
{
	struct callgrind_transfer key = {.from = from, .to = to, .object = object};
	const struct callgrind_transfer *t = hmap_get(&c->transfers, &key);

	return t ? t->count : 0;
}

/* "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw" */
static void callgrind_columns(struct callgrind *c, const char *text)
{
	static const struct {
		const char *name;
		enum callgrind_event event;
	} known[] = {{"Ir", CALLGRIND_EXECUTIONS}, {"I1mr", CALLGRIND_I1}, {"D1mr", CALLGRIND_D1},
		{"ILmr", CALLGRIND_IL}, {"DLmr", CALLGRIND_DL}, {"D1mw", CALLGRIND_D1_WRITE},
		{"DLmw", CALLGRIND_DL_WRITE}};
	char name[16];
	int n;

	for (c->ncolumns = 0; c->ncolumns < sizeof c->columns / sizeof *c->columns &&
			      sscanf(text, " %15s%n", name, &n) == 1;
		text += n) {
		enum callgrind_event *column = &c->columns[c->ncolumns++];

		*column = CALLGRIND_EVENTS;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (!strcmp(name, known[i].name))
				*column = known[i].event;
	}
}

/* Zeros at the end of a line are left out. */
static int callgrind_costs(struct callgrind *c, uint64_t address, const char *text)
{
	struct callgrind_insn key = {.address = address, .object = c->object}, *i;
	size_t n;

	i = hmap_put(&c->insns, &key, NULL);
	for (n = 0; n < c->ncolumns; n++) {
		char *end;
		uint64_t cost = strtoull(text, &end, 10);

		if (end == text)
			break;
		if (c->columns[n] != CALLGRIND_EVENTS)
			i->count[c->columns[n]] += cost;
		text = end;
	}
	return n ? 0 : -EBADMSG;
}

/* "0xADDRESS LINE [COST...]": what an instruction cost, or where the transfer before came from. */
static int callgrind_position(struct callgrind *c, const char *line)
{
	struct callgrind_transfer t = {.to = c->to, .object = c->object};
	int rc = 0;
	char *end;

	t.from = strtoull(line, &end, 16);
	strtoull(end, &end, 10);
	if (c->expects == CALLGRIND_COSTS)
		rc = callgrind_costs(c, t.from, end);
	else if (c->expects == CALLGRIND_JUMP || c->called == c->object)
		((struct callgrind_transfer *)hmap_put(&c->transfers, &t, NULL))->count += c->count;
	c->expects = CALLGRIND_COSTS;
	c->called = c->object;
	return rc;
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
	if (!strncmp(line, "events:", 7))
		callgrind_columns(c, line + 7);
	else if (!strncmp(line, "ob=", 3))
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

/* Ends the program when there is no such file, or none of callgrind's. */
static __attribute__((unused)) void callgrind_open(struct callgrind *c, const char *path)
{
	FILE *in = fopen(path, "re");
	size_t line;

	if (!in)
		err(2, "%s", path);
	callgrind_init(c);
	if (callgrind_read(c, in, &line) < 0)
		errx(2,
			"%s:%zu: is no line of callgrind's: give it --compress-pos=no "
			"--compress-strings=no",
			path, line);
	fclose(in);
}

#endif
