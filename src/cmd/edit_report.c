#include "cmd/edit_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "edit/edit.h"

enum { LARGEST = 10 };

/* Those that are refused, the largest first. */
struct refused {
	const struct edit_function *function;
	uint64_t size;
};
typedef VEC(struct refused) refused_list;

static int by_size(const void *a, const void *b)
{
	const struct refused *x = a, *y = b;
	uint64_t s = x->function->procedure->start, t = y->function->procedure->start;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return s < t ? -1 : s > t;
}

static void find_refused(struct edit *edit, refused_list *out)
{
	struct edit_function **f;
	size_t n = edit_functions(edit, &f);

	for (size_t i = 0; i < n; i++) {
		struct refused r = {.function = f[i]};
		if (!f[i]->refused)
			continue;
		for (uint32_t k = 0; k < f[i]->procedure->nranges; k++)
			r.size += f[i]->procedure->ranges[k].size;
		*vec_add(out) = r;
	}
	vec_sort(out, by_size);
}

static const char *name_of(const struct edit_function *f, const char *path, char *text, size_t n)
{
	return f->procedure->name ? f->procedure->name
				  : procedure_label(f->procedure, path, text, n);
}

/* ---- text ---- */

static void print_reasons(const struct edit_coverage *c)
{
	struct table *t = table_create(">>><");

	table_cell(t, "functions");
	table_cell(t, "instructions");
	table_cell(t, "%%");
	table_cell(t, "left alone because");
	table_row(t);
	table_header(t);
	for (uint32_t i = 0; i < c->nreasons; i++) {
		const struct edit_reason *r = &c->reasons[i];
		table_cell(t, "%" PRIu32, r->functions);
		table_cell(t, "%" PRIu64, r->insns);
		table_cell(t, "%.2f%%", 100 * share_of(r->insns, c->insns));
		table_cell(t, "%s", r->words);
		table_row(t);
	}
	putchar('\n');
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_largest(const refused_list *refused, const char *path)
{
	struct table *t = table_create("><<<");
	char text[512];

	table_cell(t, "bytes");
	table_cell(t, "at");
	table_cell(t, "because");
	table_cell(t, "function");
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < refused->n && i < LARGEST; i++) {
		const struct refused *r = &refused->p[i];
		table_cell(t, "%" PRIu64, r->size);
		table_cell(t, "0x%" PRIx64, r->function->refused_at);
		table_cell(t, "%s", r->function->refused);
		table_cell(t, "%s", name_of(r->function, path, text, sizeof text));
		table_row(t);
	}
	putchar('\n');
	table_print(t, stdout, term_width());
	table_destroy(t);
	if (refused->n > LARGEST)
		printf("\n%zu smaller ones: --json has them all\n", refused->n - LARGEST);
}

static void print_text(struct edit *edit, const struct edit_coverage *c,
	const refused_list *refused, const char *path)
{
	cmd_put(stdout, path);
	printf(": %" PRIu32 " of %" PRIu32 " functions edited (%.1f%%), %" PRIu64 " of %" PRIu64
	       " instructions (%.1f%%)\n",
		c->moved, c->functions, 100 * share_of(c->moved, c->functions), c->moved_insns,
		c->insns, 100 * share_of(c->moved_insns, c->insns));
	if (c->gaps > 4096 && c->gaps > c->insns) /* not only start code: Go, say */
		printf("%" PRIu64 " bytes of code are described by nothing and left alone\n",
			c->gaps);
	if (edit_debug_left(edit))
		printf(EDIT_DEBUG_LEFT "\n", edit_debug_left(edit));
	if (c->nreasons)
		print_reasons(c);
	if (refused->n)
		print_largest(refused, path);
}

/* ---- JSON ---- */

static void put_reasons(struct json *j, const struct edit_coverage *c)
{
	json_key(j, "reasons");
	json_open(j, '[');
	for (uint32_t i = 0; i < c->nreasons; i++) {
		json_open(j, '{');
		json_kstr(j, "reason", c->reasons[i].words);
		json_kuint(j, "functions", c->reasons[i].functions);
		json_kuint(j, "instructions", c->reasons[i].insns);
		json_close(j);
	}
	json_close(j);
}

static void put_refused(struct json *j, const refused_list *refused, const char *path)
{
	char text[512];

	json_key(j, "refused");
	json_open(j, '[');
	vec_each (r, refused) {
		json_open(j, '{');
		json_kstr(j, "function", name_of(r->function, path, text, sizeof text));
		json_kstr(j, "reason", r->function->refused);
		json_kaddr(j, "start", r->function->procedure->start);
		json_kaddr(j, "at", r->function->refused_at);
		json_kuint(j, "size", r->size);
		json_close(j);
	}
	json_close(j);
}

static void print_json(struct edit *edit, const struct edit_coverage *c,
	const refused_list *refused, const char *path)
{
	struct json j;
	char id[IMAGE_ID_TEXT];

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "image", path);
	json_kstr(&j, "build_id", image_id_text(image_id(edit_image(edit)), id));
	json_kuint(&j, "functions", c->functions);
	json_kuint(&j, "edited", c->moved);
	json_kuint(&j, "instructions", c->insns);
	json_kuint(&j, "edited_instructions", c->moved_insns);
	json_kuint(&j, "undescribed_bytes", c->gaps);
	if (edit_debug_left(edit))
		json_kstr(&j, "debug_information", edit_debug_left(edit));
	put_reasons(&j, c);
	put_refused(&j, refused, path);
	json_close(&j);
}

void edit_report(struct edit *edit, const char *path, bool json)
{
	struct edit_coverage c = {0};
	refused_list refused = {0};

	edit_coverage(edit, &c);
	find_refused(edit, &refused);
	if (json)
		print_json(edit, &c, &refused, path);
	else
		print_text(edit, &c, &refused, path);
	vec_deinit(&refused);
}
