/*
 * An editor that gives every function that lets it a variable of its own, and the files that it
 * makes crash when one loses its value. For tests/torture/run, with jobs of one thread:
 *
 *	CULPRIT=build/tests/torture/variables tests/torture/run -k v0v1 gzip perl sqlite
 *
 * Each activation has a number, which is added to a sum at the entry and subtracted from it at the
 * exit, where the variable tells it; on edges both grow. When no activation is left the sum must be
 * zero. v0, v1: one variable; v0v1: both, which hold the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "edit/variable.h"

enum { REASONS = 40, STEP = 7, WORDS = 3 };

static const char *const texts[][3] = {
	{"[a0] += 1; t0 = [a0 + 16]; t0 += 1; [a0 + 16] = t0; v0 = t0; [a0 + 8] += t0",
		"v0 += a1; [a0 + 8] += a1",
		"[a0 + 8] -= v0; [a0] -= 1; if [a0] != 0 goto fine; if [a0 + 8] == 0 goto fine; "
		"t0 = 0; [t0] = 1; fine:"},
	{"[a0] += 1; t0 = [a0 + 16]; t0 += 1; [a0 + 16] = t0; v1 = t0; [a0 + 8] += t0",
		"v1 += a1; [a0 + 8] += a1",
		"[a0 + 8] -= v1; [a0] -= 1; if [a0] != 0 goto fine; if [a0 + 8] == 0 goto fine; "
		"t0 = 0; [t0] = 1; fine:"},
	{"[a0] += 1; t0 = [a0 + 16]; t0 += 1; [a0 + 16] = t0; v0 = t0; v1 = t0; [a0 + 8] += t0",
		"v0 += a1; v1 += v0; v1 -= v0; v1 += a1; [a0 + 8] += a1",
		"if v0 != v1 goto bad; [a0 + 8] -= v0; [a0] -= 1; if [a0] != 0 goto fine; "
		"if [a0 + 8] == 0 goto fine; bad: t0 = 0; [t0] = 1; fine:"},
};

struct giver {
	struct edit *e;
	unsigned kind; /* 0, 1: the variable; 2: both */
	struct snippet *enter, *step, *leave;
	struct {
		const char *words;
		unsigned functions;
		uint64_t insns;
	} refused[REASONS];
	struct {
		unsigned functions;
		uint64_t insns;
	} all, registers, words;
};

static void note_refused(struct giver *g, const struct edit_function *f, const char *words)
{
	unsigned i = 0;

	while (i < REASONS - 1 && g->refused[i].words && strcmp(g->refused[i].words, words))
		i++;
	g->refused[i].words = words;
	g->refused[i].functions++;
	g->refused[i].insns += f->flow->ninsns;
	if (getenv("NAMES"))
		printf("%llx %s: %s\n", (unsigned long long)f->procedure->start,
			f->procedure->name ? f->procedure->name : "?", words);
}

static bool have(struct giver *g, struct edit_function *f)
{
	const char *why = NULL;
	bool had = true;

	g->all.functions++;
	g->all.insns += f->flow->ninsns;
	for (unsigned v = 0; v < 2 && had; v++)
		if (g->kind == v || g->kind == 2)
			had = edit_variable(g->e, f, v, NULL, &why);
	if (!had) {
		note_refused(g, f, why);
		return false;
	}
	if (((struct function *)f)->variables.p[0].reg != REG_NONE) {
		g->registers.functions++;
		g->registers.insns += f->flow->ninsns;
	} else {
		g->words.functions++;
		g->words.insns += f->flow->ninsns;
	}
	return true;
}

static void give(struct giver *g, struct edit_function *f)
{
	if (!have(g, f))
		return;
	const uint64_t arguments[] = {edit_data(g->e, WORDS * 8, 8), STEP};
	edit_at_entry(g->e, f, g->enter, arguments);
	for (uint32_t i = 0; i < f->flow->graph.edges; i++) {
		uint8_t kind = f->flow->edge_kind[i];
		if (!edit_edge_carries(f, i) || edit_edge_group(f, i) != i)
			continue;
		if (kind == FLOW_EDGE_RETURN || kind == FLOW_EDGE_TAIL)
			edit_on_edge(g->e, f, i, g->leave, arguments);
		else if (kind != FLOW_EDGE_STOP && kind != FLOW_EDGE_ENTRY)
			edit_on_edge(g->e, f, i, g->step, arguments);
	}
}

static void report(const struct giver *g)
{
	printf("%u functions, %u in registers, %u in words; %.2f%% of instructions\n",
		g->all.functions, g->registers.functions, g->words.functions,
		100.0 * (double)(g->registers.insns + g->words.insns) / (double)(g->all.insns + 1));
	for (unsigned i = 0; i < REASONS && g->refused[i].words; i++)
		printf("%6u %8llu %s\n", g->refused[i].functions,
			(unsigned long long)g->refused[i].insns, g->refused[i].words);
}

static int edit_file(struct giver *g, const char *to, struct err *err)
{
	struct edit_function **list;
	size_t n = edit_functions(g->e, &list);
	int r = snippet_create(texts[g->kind][0], &g->enter, err);

	r = r ? r : snippet_create(texts[g->kind][1], &g->step, err);
	r = r ? r : snippet_create(texts[g->kind][2], &g->leave, err);
	for (size_t i = 0; i < n && !r; i++)
		if (!list[i]->refused && list[i]->chosen)
			give(g, list[i]);
	if (!r)
		r = edit_write(g->e, to, err);
	if (!r)
		report(g);
	snippet_destroy(g->enter);
	snippet_destroy(g->step);
	snippet_destroy(g->leave);
	return r;
}

/* edit --KIND [--strict] FILE -o EDITED */
int main(int argc, char **argv)
{
	const char *from = NULL, *to = NULL;
	struct edit_options options = {0};
	struct giver g = {0};
	struct err err = {0};

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-o") && i + 1 < argc)
			to = argv[++i];
		else if (!strcmp(argv[i], "--strict"))
			options.strict = true;
		else if (!strcmp(argv[i], "--v1"))
			g.kind = 1;
		else if (!strcmp(argv[i], "--v0v1"))
			g.kind = 2;
		else if (argv[i][0] == '/' || argv[i][0] == '.')
			from = argv[i];
	}
	if (!from || !to) {
		fprintf(stderr, "usage: %s edit --KIND [--strict] FILE -o EDITED\n", argv[0]);
		return EXIT_USAGE;
	}
	int r = edit_open(from, &options, &g.e, &err);
	if (!r)
		r = edit_file(&g, to, &err);
	edit_destroy(g.e);
	if (r)
		fprintf(stderr, "%s\n", err.text);
	return r ? err_exit_code(err.code) : EXIT_DONE;
}
