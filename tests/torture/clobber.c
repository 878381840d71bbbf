/*
 * An editor that overwrites what is dead, before instructions and on edges: the files that it makes
 * run as before only if what is taken for dead is dead. For tests/torture/run:
 *
 *	CULPRIT=build/tests/torture/clobber tests/torture/run -k clobber
 *
 * Very large files get it at a part of their instructions, chosen by SEED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "isa/dice.h"

#define INSNS_MAX 1000000

static struct dice dice;
static unsigned part; /* of 1000 */

/* Negative numbers of 32 bits: short to write, and no good as pointers. */
static uint64_t anything(void)
{
	return dice_roll(&dice) | UINT64_C(0xffffffff80000000);
}

static bool chosen(void)
{
	return dice_below(&dice, 1000) < part;
}

static void clobber(struct edit *e, struct edit_function *f, const struct snippet *s)
{
	for (uint32_t i = 0; i < f->flow->ninsns; i++)
		if (chosen())
			edit_before(e, f, i, s, (const uint64_t[]){anything()});
	for (uint32_t i = 0; i < f->flow->graph.edges; i++)
		if (edit_edge_carries(f, i) && edit_edge_group(f, i) == i && chosen())
			edit_on_edge(e, f, i, s, (const uint64_t[]){anything()});
}

static void choose_part(struct edit *e)
{
	struct edit_coverage c;

	edit_coverage(e, &c);
	part = c.insns > INSNS_MAX ? (unsigned)(UINT64_C(1000) * INSNS_MAX / c.insns) : 1000;
}

static int edit_file(const char *from, const char *to, bool strict, struct err *err)
{
	const struct edit_options options = {.strict = strict};
	struct edit_function **list;
	struct snippet *s = NULL;
	struct edit *e;
	int r = edit_open(from, &options, &e, err);

	if (r)
		return r;
	r = snippet_create("clobber a0", &s, err);
	choose_part(e);
	size_t n = edit_functions(e, &list);
	for (size_t i = 0; i < n && !r; i++)
		if (!list[i]->refused && list[i]->chosen)
			clobber(e, list[i], s);
	if (!r)
		r = edit_write(e, to, err);
	edit_destroy(e);
	snippet_destroy(s);
	return r;
}

/* edit [--clobber] [--strict] FILE -o EDITED */
int main(int argc, char **argv)
{
	const char *from = NULL, *to = NULL;
	bool strict = false;
	struct err err = {0};

	dice.state = dice_option("SEED", 1);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-o") && i + 1 < argc)
			to = argv[++i];
		else if (!strcmp(argv[i], "--strict"))
			strict = true;
		else if (argv[i][0] == '/' || argv[i][0] == '.')
			from = argv[i];
	}
	if (!from || !to) {
		fprintf(stderr, "usage: %s edit [--strict] FILE -o EDITED\n", argv[0]);
		return EXIT_USAGE;
	}
	if (edit_file(from, to, strict, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return err_exit_code(err.code);
	}
	return EXIT_DONE;
}
