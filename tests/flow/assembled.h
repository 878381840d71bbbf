/*
 * Flows of functions that a test writes in C or assembly, by the system's compilers.
 */
#ifndef CULPRIT_TESTS_FLOW_ASSEMBLED_H
#define CULPRIT_TESTS_FLOW_ASSEMBLED_H

#include "image/workshop.h"

#include "base/err.h"
#include "flow/cfg.h"
#include "flow/program.h"
#include "image/image.h"

static struct image *built;
static struct program *program;

static inline void forget_built(void)
{
	program_destroy(program);
	image_destroy(built);
	program = NULL;
	built = NULL;
}

static inline void open_built(const char *name)
{
	struct err e = {0};

	forget_built();
	if (image_open_path(in_workshop(name), &built, &e))
		fail_msg("%s", e.text);
	program_create(built, &program);
}

/* Assembles the text into a shared library: functions need `.globl` and `.type NAME, @function`. */
static inline void assemble(const char *text)
{
	write_text("code.s", text);
	shell("gcc -shared -nostdlib -o code.so code.s -Wl,-z,noexecstack");
	open_built("code.so");
}

static inline const struct procedure *find_procedure(const char *name)
{
	const struct procedure *ps;
	size_t n = image_procedures(built, &ps);

	for (size_t i = 0; i < n; i++)
		if (ps[i].name && !strcmp(ps[i].name, name))
			return &ps[i];
	fail_msg("no procedure %s", name);
	return NULL;
}

static inline struct flow *flow_of(const char *name)
{
	struct err e = {0};
	struct flow *f;

	if (program_flow(program, find_procedure(name), &f, &e))
		fail_msg("%s", e.text);
	return f;
}

/* The kind of the edge from one block to another (or the exit), or -1 when there is none. */
static inline int edge_between(const struct flow *f, uint32_t from, uint32_t to)
{
	graph_each_out (e, &f->graph, from)
		if (f->graph.edge[*e].to == to)
			return f->edge_kind[*e];
	return -1;
}

#endif
