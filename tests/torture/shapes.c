/*
 * An editor that changes the shape of every function that lets it: the files that it makes must
 * run as before. For tests/torture/run:
 *
 *	CULPRIT=build/tests/torture/shapes tests/torture/run -k twin
 *
 * twin: all functions exist twice, and control goes from one copy to the other and back at entries,
 * calls and on edges. pad: frames are larger, by another number of bytes each. both: both. wrap:
 * calls are wrapped, and half of them go to second copies with frames of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/edit.h"
#include "edit/endings.h"
#include "edit/snippet.h"
#include "isa/dice.h"

enum { REASONS = 32, EDGES_PART = 4 };

struct shaper {
	struct edit *e;
	struct edit_function **list, **twins;
	size_t n;
	struct dice dice;
	uint64_t counter;
	struct snippet *leave, *leave_often;
	struct {
		const char *words;
		unsigned n;
	} refused[REASONS];
	unsigned done, moved;
};

static void note_refused(struct shaper *s, const char *words)
{
	unsigned i = 0;

	while (i < REASONS - 1 && s->refused[i].words && strcmp(s->refused[i].words, words))
		i++;
	s->refused[i].words = words;
	s->refused[i].n++;
}

static void report(const struct shaper *s)
{
	printf("%u of %u functions that are moved\n", s->done, s->moved);
	for (unsigned i = 0; i < REASONS && s->refused[i].words; i++)
		printf("%6u %s\n", s->refused[i].n, s->refused[i].words);
}

/* ---- two copies ---- */

/* Goes over to the other copy at the entry, and at the end of every fourth edge now and then. */
static void switch_copies(struct shaper *s, struct edit_function *f)
{
	const uint64_t often[] = {s->counter, 1 + dice_below(&s->dice, 5), EDIT_OTHER};

	edit_at_entry(s->e, f, s->leave, (const uint64_t[]){EDIT_OTHER});
	for (uint32_t i = 0; i < f->flow->graph.edges; i++)
		if (edit_edge_carries(f, i) && edit_edge_group(f, i) == i &&
			f->flow->graph.edge[i].from != f->flow->entry_node &&
			dice_below(&s->dice, EDGES_PART) == 0)
			edit_on_edge(s->e, f, i, s->leave_often, often);
}

/* Half of the calls go to second copies. */
static void redirect_calls(struct shaper *s, struct edit_function *f)
{
	for (uint32_t i = 0; i < f->flow->ninsns; i++) {
		const struct flow_insn *insn = &f->flow->insns[i];
		if (insn->kind != INSN_CALL || dice_below(&s->dice, 2))
			continue;
		size_t to = endings_number(s->list, s->n, flow_target(insn));
		if (to < s->n && s->twins[to])
			edit_redirect_call(s->e, f, i, s->twins[to]);
	}
}

static int make_twins(struct shaper *s, struct err *err)
{
	int r = snippet_create("goto a0", &s->leave, err);

	if (!r)
		r = snippet_create("[a0] -= 1; if [a0] > 0 goto stay; [a0] = a1; goto a2; stay:",
			&s->leave_often, err);
	if (r)
		return r;
	s->counter = edit_data(s->e, 8, 8);
	for (size_t i = 0; i < s->n; i++) {
		const char *why;
		if (s->list[i]->refused)
			continue;
		s->moved++;
		s->twins[i] = edit_duplicate(s->e, s->list[i], &why);
		s->done += s->twins[i] != NULL;
		if (!s->twins[i])
			note_refused(s, why);
	}
	for (size_t i = 0; i < s->n; i++) {
		if (!s->twins[i])
			continue;
		switch_copies(s, s->list[i]);
		switch_copies(s, s->twins[i]);
		redirect_calls(s, s->list[i]);
		redirect_calls(s, s->twins[i]);
	}
	return 0;
}

/* ---- larger frames ---- */

static void pad_frames(struct shaper *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const char *why;
		if (s->list[i]->refused)
			continue;
		s->moved++;
		if (edit_pad_frame(
			    s->e, s->list[i], 16 * (1 + (uint32_t)dice_below(&s->dice, 40)), &why))
			s->done++;
		else
			note_refused(s, why);
	}
}

/* ---- deeper calls ---- */

/* Copies first: who is wrapped is wrapped in both. */
static void copy_functions(struct shaper *s)
{
	for (size_t i = 0; i < s->n; i++) {
		uint32_t bytes = 16 * (uint32_t)dice_below(&s->dice, 40);
		const char *why;
		if (s->list[i]->refused)
			continue;
		s->moved++;
		s->twins[i] = edit_duplicate(s->e, s->list[i], &why);
		if (!s->twins[i]) {
			note_refused(s, why);
		} else if (!edit_pad_copy(s->e, s->twins[i], bytes, &why)) {
			note_refused(s, why);
			s->twins[i] = NULL;
		}
		s->done += s->twins[i] != NULL;
	}
}

static void wrap_calls(struct shaper *s, struct edit_function *f)
{
	for (uint32_t i = 0; i < f->flow->ninsns; i++) {
		const char *why;
		if (f->flow->insns[i].kind != INSN_CALL || dice_below(&s->dice, 2))
			continue;
		s->moved++;
		if (edit_wrap_call(s->e, f, i, 16 * (1 + (uint32_t)dice_below(&s->dice, 9)), &why))
			s->done++;
		else
			note_refused(s, why);
	}
}

static void make_deeper(struct shaper *s)
{
	copy_functions(s);
	for (size_t i = 0; i < s->n; i++) {
		if (s->list[i]->refused)
			continue;
		redirect_calls(s, s->list[i]);
		if (s->twins[i])
			redirect_calls(s, s->twins[i]);
		wrap_calls(s, s->list[i]);
	}
}

static int shape(struct shaper *s, const char *kind, const char *to, struct err *err)
{
	s->n = edit_functions(s->e, &s->list);
	s->twins = xcalloc(s->n, sizeof *s->twins);
	int r = 0;
	if (strcmp(kind, "twin"))
		pad_frames(s);
	if (!strcmp(kind, "wrap"))
		make_deeper(s);
	else if (strcmp(kind, "pad"))
		r = make_twins(s, err);
	if (!r)
		r = edit_write(s->e, to, err);
	if (!r)
		report(s);
	free(s->twins);
	snippet_destroy(s->leave);
	snippet_destroy(s->leave_often);
	return r;
}

/* edit --KIND [--strict] FILE -o EDITED */
int main(int argc, char **argv)
{
	const char *from = NULL, *to = NULL, *kind = "";
	struct edit_options options = {0};
	struct shaper s = {.dice.state = dice_option("SEED", 1)};
	struct err err = {0};

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-o") && i + 1 < argc)
			to = argv[++i];
		else if (!strcmp(argv[i], "--strict"))
			options.strict = true;
		else if (!strncmp(argv[i], "--", 2))
			kind = argv[i] + 2;
		else if (argv[i][0] == '/' || argv[i][0] == '.')
			from = argv[i];
	}
	if (!from || !to) {
		fprintf(stderr, "usage: %s edit --KIND [--strict] FILE -o EDITED\n", argv[0]);
		return EXIT_USAGE;
	}
	int r = edit_open(from, &options, &s.e, &err);
	if (!r)
		r = shape(&s, kind, to, &err);
	edit_destroy(s.e);
	if (r)
		fprintf(stderr, "%s\n", err.text);
	return r ? err_exit_code(err.code) : EXIT_DONE;
}
