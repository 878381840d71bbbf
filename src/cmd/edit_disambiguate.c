#include "cmd/edit_disambiguate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/cmd.h"

enum { SHOWN = 20 };

static const char *const methods[SEPARATE_METHODS] = {
	[SEPARATE_PAD] = "frames", [SEPARATE_WRAP] = "calls", [SEPARATE_CLONE] = "copies"};

static const char *name_of(const struct edit_function *f, const char *path, char *text, size_t n)
{
	return f->procedure->name ? f->procedure->name
				  : procedure_label(f->procedure, path, text, n);
}

static double growth(const struct disambiguated *d, const struct separate_state *s)
{
	return d->before.deepest ? (double)s->deepest / (double)d->before.deepest : 1;
}

static uint32_t count_changes(const struct disambiguated *d, enum separate_method method)
{
	uint32_t n = 0;

	vec_each (c, &d->changes)
		n += c->method == method && (method != SEPARATE_CLONE || c->caller);
	return n;
}

/* ---- text ---- */

static void print_state(struct table *t, const char *words, uint32_t changes,
	const struct disambiguated *d, const struct separate_state *s)
{
	table_cell(t, "%s", words);
	table_cell(t, "%" PRIu32, changes);
	table_cell(t, "%.2f%%", 100 * s->samples);
	table_cell(t, "%.2f%%", 100 * s->paths);
	table_cell(t, "%" PRId64, s->deepest);
	table_cell(t, "%.3fx", growth(d, s));
	table_cell(t, "%.1f", s->mean);
	table_row(t);
}

static void print_states(const struct disambiguated *d)
{
	static const char *const words[] = {
		"larger frames", "and wrapped calls", "and second copies"};
	struct table *t = table_create("<>>>>>>");

	table_cell(t, "with");
	table_cell(t, "changes");
	table_cell(t, "samples alone");
	table_cell(t, "paths alone");
	table_cell(t, "deepest stack");
	table_cell(t, "growth");
	table_cell(t, "bytes more, mean");
	table_row(t);
	table_header(t);
	print_state(t, "nothing changed", 0, d, &d->before);
	for (int i = 0; i < SEPARATE_METHODS; i++)
		print_state(
			t, words[i], count_changes(d, (enum separate_method)i), d, &d->after[i]);
	putchar('\n');
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_changes(const struct disambiguated *d, const char *path)
{
	struct table *t = table_create("><<");
	char text[512], other[512];

	table_cell(t, "bytes");
	table_cell(t, "of");
	table_cell(t, "function");
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < d->changes.n && i < SHOWN; i++) {
		const struct disambiguate_change *c = &d->changes.p[i];
		const char *name = name_of(c->function, path, text, sizeof text);

		table_cell(t, "%" PRIu32, c->bytes);
		table_cell(t, "%s",
			c->method == SEPARATE_PAD    ? "the frame"
			: c->method == SEPARATE_WRAP ? "calls"
			: c->caller                  ? "calls of the second copy"
						     : "the second copy's frame");
		if (c->caller)
			table_cell(
				t, "%s by %s", name, name_of(c->caller, path, other, sizeof other));
		else
			table_cell(t, "%s", name);
		table_row(t);
	}
	putchar('\n');
	table_print(t, stdout, term_width());
	table_destroy(t);
	if (d->changes.n > SHOWN)
		printf("\n%zu more: --json has them all\n", d->changes.n - SHOWN);
}

static void print_reasons(const struct disambiguated *d)
{
	struct table *t = table_create(">><");

	table_cell(t, "functions");
	table_cell(t, "samples");
	table_cell(t, "on stacks that were confused, whose frames stay because");
	table_row(t);
	table_header(t);
	vec_each (r, &d->reasons) {
		table_cell(t, "%" PRIu32, r->functions);
		table_cell(t, "%.2f%%", 100 * r->samples);
		table_cell(t, "%s", r->words);
		table_row(t);
	}
	putchar('\n');
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_text(const struct disambiguated *d, const char *path)
{
	cmd_put(stdout, path);
	printf(": %" PRIu32 " contexts; %" PRIu32 " of %" PRIu32
	       " functions on their stacks can have larger frames\n",
		d->contexts, d->resizable, d->functions);
	print_states(d);
	if (d->changes.n)
		print_changes(d, path);
	if (d->reasons.n)
		print_reasons(d);
}

/* ---- JSON ---- */

static void put_state(struct json *j, const struct disambiguated *d, const struct separate_state *s)
{
	json_kshare(j, "samples", s->samples);
	json_kshare(j, "paths", s->paths);
	json_kint(j, "deepest", s->deepest);
	json_kdouble(j, "growth", growth(d, s));
	json_kdouble(j, "mean_extra", s->mean);
}

static void put_states(struct json *j, const struct disambiguated *d)
{
	json_key(j, "before");
	json_open(j, '{');
	put_state(j, d, &d->before);
	json_close(j);
	json_key(j, "after");
	json_open(j, '[');
	for (int i = 0; i < SEPARATE_METHODS; i++) {
		json_open(j, '{');
		json_kstr(j, "method", methods[i]);
		json_kuint(j, "changes", count_changes(d, (enum separate_method)i));
		put_state(j, d, &d->after[i]);
		json_close(j);
	}
	json_close(j);
}

static void put_changes(struct json *j, const struct disambiguated *d, const char *path)
{
	char text[512];

	json_key(j, "changes");
	json_open(j, '[');
	vec_each (c, &d->changes) {
		json_open(j, '{');
		json_kstr(j, "method", methods[c->method]);
		json_kstr(j, "function", name_of(c->function, path, text, sizeof text));
		json_kaddr(j, "start", c->function->procedure->start);
		if (c->caller) {
			json_kstr(j, "caller", name_of(c->caller, path, text, sizeof text));
			json_kaddr(j, "caller_start", c->caller->procedure->start);
		}
		json_kuint(j, "bytes", c->bytes);
		json_close(j);
	}
	json_close(j);
}

static void put_reasons(struct json *j, const struct disambiguated *d)
{
	json_key(j, "refused");
	json_open(j, '[');
	vec_each (r, &d->reasons) {
		json_open(j, '{');
		json_kstr(j, "reason", r->words);
		json_kuint(j, "functions", r->functions);
		json_kshare(j, "samples", r->samples);
		json_close(j);
	}
	json_close(j);
}

static void print_json(struct edit *edit, const struct disambiguated *d, const char *path)
{
	struct json j;
	char id[IMAGE_ID_TEXT];

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "image", path);
	json_kstr(&j, "build_id", image_id_text(image_id(edit_image(edit)), id));
	json_kuint(&j, "contexts", d->contexts);
	json_kuint(&j, "functions", d->functions);
	json_kuint(&j, "resizable", d->resizable);
	json_kuint(&j, "tries", d->tries);
	put_states(&j, d);
	put_changes(&j, d, path);
	put_reasons(&j, d);
	json_close(&j);
}

void edit_disambiguate_report(
	struct edit *edit, const char *path, const struct disambiguated *d, bool json)
{
	if (json)
		print_json(edit, d, path);
	else
		print_text(d, path);
}
