#include "base/buf.h"
#include "base/table.h"
#include "cmd/streams_view.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS       8
#define PART_LEAST 100 /* what has less than a hundredth of the references is not worth words */
#define GAIN_LEAST 20  /* one line in so many saved, at least */

static void take(void *arg, const struct touch *t)
{
	struct streams_view *v = arg;

	v->touches++;
	fields_take(v->fields, t);
	pairs_take(v->pairs, t);
	reaches_take(v->reaches, t);
}

int streams_advice_make(struct streams_view *v, struct err *e)
{
	int rc;

	v->fields = fields_create();
	v->pairs = pairs_create();
	v->reaches = reaches_create();
	rc = touches_each(v->report.sel, v->things, take, v, e);
	if (rc)
		return rc;
	v->nfields = fields_settle(v->fields, &v->field_list);
	v->npairs = pairs_settle(v->pairs, &v->pair_list);
	v->nreaches = reaches_settle(v->reaches, v->things, &v->reach_list);
	return 0;
}

void streams_advice_deinit(struct streams_view *v)
{
	fields_destroy(v->fields);
	pairs_destroy(v->pairs);
	reaches_destroy(v->reaches);
}

static bool is_worth(const struct streams_view *v, uint64_t references)
{
	return references * PART_LEAST >= v->touches;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* ---- data ---- */

static int by_references(const void *a, const void *b)
{
	const struct thing_group *x = *(const struct thing_group *const *)a,
				 *y = *(const struct thing_group *const *)b;

	return x->references > y->references ? -1 : x->references < y->references;
}

static const struct thing_group **sorted_groups(const struct streams_view *v, size_t *n)
{
	const struct thing_group *groups, **list;

	*n = things_groups(v->things, &groups);
	list = xcalloc(*n + 1, sizeof *list);
	for (size_t i = 0; i < *n; i++)
		list[i] = &groups[i];
	if (*n)
		qsort(list, *n, sizeof *list, by_references);
	return list;
}

static const char *kind_name(enum thing_kind k)
{
	static const char *const names[] = {[THING_UNKNOWN] = "unknown",
		[THING_HEAP] = "heap",
		[THING_GLOBAL] = "variable",
		[THING_STACK] = "frame",
		[THING_THREAD] = "thread"};

	return names[k];
}

static void print_groups(struct streams_view *v)
{
	const struct thing_group *groups, **list;
	uint64_t all = streams_summary(v->streams)->references;
	size_t n;

	list = sorted_groups(v, &n);
	things_groups(v->things, &groups);
	puts("\nData, by references:");
	for (size_t i = 0; i < n && i < 2 * ROWS && is_worth(v, list[i]->references); i++) {
		struct buf text = {0};

		things_group_text(v->things, (uint32_t)(list[i] - groups), &text);
		printf("  %5.2f%%  %-8s  ", percent(list[i]->references, all),
			kind_name(list[i]->kind));
		cmd_put(stdout, buf_cstr(&text));
		if (list[i]->type && *list[i]->type->name) {
			fputs(": ", stdout);
			cmd_put(stdout, list[i]->type->name);
		}
		if (list[i]->kind == THING_HEAP)
			printf(", %" PRIu64 " object%s of up to %" PRIu64 " bytes",
				list[i]->objects, list[i]->objects == 1 ? "" : "s", list[i]->size);
		putchar('\n');
		buf_deinit(&text);
	}
	free(list);
}

/* ---- fields ---- */

static bool field_is_worth(const struct streams_view *v, const struct field_advice *a)
{
	return is_worth(v, a->references) && a->visits > 1 && a->n > 1;
}

static bool gains(uint64_t before, uint64_t after)
{
	return after < before && (before - after) * GAIN_LEAST >= before;
}

static int by_proposed(const void *a, const void *b)
{
	const struct field *x = *(const struct field *const *)a,
			   *y = *(const struct field *const *)b;

	if (x->proposed != y->proposed)
		return x->proposed < y->proposed ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void print_order(const struct field_advice *a)
{
	const struct field **order = xcalloc(a->n + 1, sizeof *order);

	for (uint32_t i = 0; i < a->n; i++)
		order[i] = &a->fields[i];
	qsort(order, a->n, sizeof *order, by_proposed);
	fputs("    order:", stdout);
	for (uint32_t i = 0; i < a->n; i++) {
		putchar(' ');
		cmd_put(stdout, *order[i]->name ? order[i]->name : "(base)");
		if (i + 1 < a->n)
			putchar(',');
	}
	putchar('\n');
	free(order);
}

/* Members that visits touch, most first; and what goes with the first of them. */
static void print_members(const struct field_advice *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct field *f = &a->fields[i];
		uint32_t shown = 0;

		if (f->touched * PART_LEAST < a->visits || !f->touched)
			continue;
		printf("    %4" PRIu64 " %5.1f%%  ", f->offset, percent(f->touched, a->visits));
		cmd_put(stdout, *f->name ? f->name : "(base)");
		for (uint32_t k = 0; k < a->n && shown < 4; k++) {
			uint64_t both = a->affinity[i * a->n + k];

			if (k == i || both * 4 < f->touched)
				continue;
			fputs(shown++ ? ", " : "   with ", stdout);
			cmd_put(stdout, *a->fields[k].name ? a->fields[k].name : "(base)");
			printf(" %.0f%%", percent(both, f->touched));
		}
		putchar('\n');
	}
}

static void print_field_advice(const struct field_advice *a)
{
	printf("  ");
	cmd_put(stdout, *a->type->name ? a->type->name : "struct");
	printf(": %" PRIu64 " bytes, %" PRIu64 " visits, %.2f lines each\n", a->type->size,
		a->visits, (double)a->lines / (double)a->visits);
	print_members(a);
	if (gains(a->lines, a->ordered)) {
		print_order(a);
		printf("    saves %.1f%% of its cache lines (%.2f a visit)\n",
			percent(a->lines - a->ordered, a->lines),
			(double)a->ordered / (double)a->visits);
	}
	if (gains(a->ordered, a->aligned))
		printf("    instances at the beginning of a line: saves %.1f%%%s\n",
			percent(a->ordered - a->aligned, a->lines),
			gains(a->lines, a->ordered) ? " more" : "");
	if (a->hot && a->hot * 2 <= a->type->size)
		printf("    split: %" PRIu64 " of %" PRIu64
		       " bytes are hot; one visit in 20 or fewer touches the others\n",
			a->hot, a->type->size);
}

static void print_fields(struct streams_view *v)
{
	size_t shown = 0;

	for (size_t i = 0; i < v->nfields && shown < ROWS; i++) {
		if (!field_is_worth(v, &v->field_list[i]))
			continue;
		if (!shown++)
			puts("\nStructs, and what is touched of them together:");
		print_field_advice(&v->field_list[i]);
	}
}

/* ---- together ---- */

static void print_pairs(struct streams_view *v)
{
	size_t shown = 0;

	for (size_t i = 0; i < v->npairs && shown < ROWS; i++) {
		const struct pair_advice *a = &v->pair_list[i];
		struct buf from = {0}, to = {0};

		if (!pair_is_advised(a) || !is_worth(v, a->steps))
			continue;
		if (!shown++)
			puts("\nTo be put together:");
		things_group_text(v->things, a->from, &from);
		things_group_text(v->things, a->to, &to);
		printf("  %6.2f%%  ", percent(a->steps, v->touches));
		cmd_put(stdout, buf_cstr(&from));
		if (a->from == a->to) {
			printf(": in the order of the walk (%.0f%% of steps go where they went "
			       "before, %.0f%% near)",
				percent(a->same, a->known), percent(a->near, a->steps));
		} else {
			fputs(" and ", stdout);
			cmd_put(stdout, buf_cstr(&to));
			printf(": in one allocation (%.0f%% of steps go to the same, %.0f%% near)",
				percent(a->same, a->known), percent(a->near, a->steps));
		}
		putchar('\n');
		buf_deinit(&from);
		buf_deinit(&to);
	}
}

/* ---- reaches ---- */

static bool reach_is_worth(const struct streams_view *v, const struct reach_advice *a)
{
	return is_worth(v, a->fresh * 10) && a->site.kind & TRACE_LOAD;
}

static void print_reach(struct streams_view *v, const struct reach_advice *a)
{
	struct buf text = {0};
	char name[600];

	fputs("  ", stdout);
	cmd_put(stdout, streams_place(v, &a->site, name, sizeof name));
	printf("  %s", reach_kind_name(a->kind));
	if (a->kind == REACH_STRIDE)
		printf(" of %" PRId64, a->stride);
	if (a->group != OBJECT_NONE) {
		things_group_text(v->things, a->group, &text);
		fputs(" in ", stdout);
		cmd_put(stdout, buf_cstr(&text));
	}
	printf(", %" PRIu64 " lines, new in %.0f%% of %" PRIu64 "\n      %s: %s\n", a->lines,
		percent(a->fresh, a->references), a->references, prefetch_name(a->verdict),
		prefetch_words(a->verdict));
	buf_deinit(&text);
}

static void print_reaches(struct streams_view *v)
{
	size_t shown = 0;

	for (size_t i = 0; i < v->nreaches && shown < ROWS; i++) {
		if (!reach_is_worth(v, &v->reach_list[i]))
			continue;
		if (!shown++)
			puts("\nLoads that reach new lines, and whether to prefetch:");
		print_reach(v, &v->reach_list[i]);
	}
}

void streams_advice_print(struct streams_view *v)
{
	print_groups(v);
	print_fields(v);
	print_pairs(v);
	print_reaches(v);
	if (!things_has_objects(v->things))
		puts("\nAllocations were not written down (record without --no-objects).");
}

/* ---- JSON ---- */

static void put_groups(struct streams_view *v, struct json *j)
{
	const struct thing_group **list;
	struct buf path = {0};
	size_t n;

	list = sorted_groups(v, &n);
	json_key(j, "data");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		json_kstr(j, "kind", kind_name(list[i]->kind));
		json_kstr(j, "name", list[i]->name);
		json_kstr(j, "where", *list[i]->where ? list[i]->where : NULL);
		json_kstr(j, "type", list[i]->type ? list[i]->type->name : NULL);
		json_kuint(j, "references", list[i]->references);
		json_kuint(j, "objects", list[i]->objects);
		json_kuint(j, "size", list[i]->size);
		path.n = 0;
		things_path_text(v->things, list[i]->path, &path);
		json_kstr(j, "path", path.n ? buf_cstr(&path) : NULL);
		json_close(j);
	}
	json_close(j);
	buf_deinit(&path);
	free(list);
}

static void put_members(const struct field_advice *a, struct json *j)
{
	json_key(j, "fields");
	json_open(j, '[');
	for (uint32_t i = 0; i < a->n; i++) {
		json_open(j, '{');
		json_kstr(j, "name", a->fields[i].name);
		json_kuint(j, "offset", a->fields[i].offset);
		json_kuint(j, "size", a->fields[i].size);
		json_kuint(j, "visits", a->fields[i].touched);
		json_kuint(j, "proposed", a->fields[i].proposed);
		json_key(j, "affinity");
		json_open(j, '[');
		for (uint32_t k = 0; k < a->n; k++)
			json_uint(j, a->affinity[i * a->n + k]);
		json_close(j);
		json_close(j);
	}
	json_close(j);
}

static void put_fields(struct streams_view *v, struct json *j)
{
	json_key(j, "structs");
	json_open(j, '[');
	for (size_t i = 0; i < v->nfields; i++) {
		const struct field_advice *a = &v->field_list[i];

		json_open(j, '{');
		json_kstr(j, "type", a->type->name);
		json_kuint(j, "size", a->type->size);
		json_kuint(j, "references", a->references);
		json_kuint(j, "visits", a->visits);
		json_kuint(j, "lines", a->lines);
		json_kuint(j, "lines_ordered", a->ordered);
		json_kuint(j, "lines_aligned", a->aligned);
		json_kuint(j, "hot_bytes", a->hot);
		put_members(a, j);
		json_close(j);
	}
	json_close(j);
}

static void put_pairs(struct streams_view *v, struct json *j)
{
	const struct thing_group *groups;

	things_groups(v->things, &groups);
	json_key(j, "together");
	json_open(j, '[');
	for (size_t i = 0; i < v->npairs; i++) {
		const struct pair_advice *a = &v->pair_list[i];

		json_open(j, '{');
		json_kstr(j, "from", groups[a->from].name);
		json_kstr(j, "to", groups[a->to].name);
		json_kuint(j, "steps", a->steps);
		json_kuint(j, "known", a->known);
		json_kuint(j, "same", a->same);
		json_kuint(j, "near", a->near);
		json_kbool(j, "advised", pair_is_advised(a));
		json_close(j);
	}
	json_close(j);
}

static void put_reaches(struct streams_view *v, struct json *j)
{
	const struct thing_group *groups;
	char name[600];

	things_groups(v->things, &groups);
	json_key(j, "walks");
	json_open(j, '[');
	for (size_t i = 0; i < v->nreaches; i++) {
		const struct reach_advice *a = &v->reach_list[i];

		json_open(j, '{');
		json_kaddr(j, "pc", a->site.at);
		json_kstr(j, "what", streams_place(v, &a->site, name, sizeof name));
		json_kstr(j, "data", a->group != OBJECT_NONE ? groups[a->group].name : NULL);
		json_kstr(j, "kind", reach_kind_name(a->kind));
		json_kint(j, "stride", a->stride);
		json_kuint(j, "references", a->references);
		json_kuint(j, "lines", a->lines);
		json_kuint(j, "fresh", a->fresh);
		json_kstr(j, "verdict", prefetch_name(a->verdict));
		json_kstr(j, "why", prefetch_words(a->verdict));
		json_close(j);
	}
	json_close(j);
}

void streams_advice_json(struct streams_view *v, struct json *j)
{
	put_groups(v, j);
	put_fields(v, j);
	put_pairs(v, j);
	put_reaches(v, j);
}
