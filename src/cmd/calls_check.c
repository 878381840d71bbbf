/* culprit calls --check: how right call paths are, by those of another database. */
#include "analyze/path_check.h"
#include "base/err.h"
#include "base/json.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/calls_view.h"

#include <inttypes.h>

#define WRONG_ROWS 10

static const char *unit_of(const struct path_check *c)
{
	return c->counted ? CONTEXT_BY_CALLS : CONTEXT_BY_SAMPLES;
}

/* ---- JSON ---- */

static void put_score(struct json *j, const struct call_score *s)
{
	json_open(j, '{');
	for (unsigned weighted = 0; weighted < 2; weighted++) {
		json_key(j, weighted ? "weights" : "paths");
		json_open(j, '{');
		for (unsigned v = 0; v < PATH_CATEGORIES; v++)
			json_kuint(j, call_verdict_word(v),
				weighted ? s->verdicts[v].weight : s->verdicts[v].paths);
		json_close(j);
		json_kshare(j, weighted ? "right_weights" : "right_paths",
			call_score_right(s, weighted));
		json_key(j, weighted ? "degrees_weights" : "degrees_paths");
		json_open(j, '[');
		for (unsigned d = 0; d < CALL_DEGREES; d++)
			json_uint(j, weighted ? s->degrees[d].weight : s->degrees[d].paths);
		json_close(j);
	}
	json_close(j);
}

static void put_scores(struct json *j, const struct call_score score[CALL_KEYS])
{
	json_key(j, "by_height");
	put_score(j, &score[CALL_BY_HEIGHT]);
	json_key(j, "by_caller");
	put_score(j, &score[CALL_BY_CALLER]);
}

/* Paths with their call sites; sampled ones have none. */
static void put_sites(
	struct json *j, const struct path_check *c, const struct call_score score[CALL_KEYS])
{
	if (!c->counted)
		return;
	json_key(j, "call_sites");
	json_open(j, '{');
	put_scores(j, score);
	json_close(j);
}

static void print_json(const struct path_check *c, size_t rows)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "unit", unit_of(c));
	json_kuint(&j, "not_compared", c->training.left + c->training.unmet);
	put_scores(&j, c->all);
	put_sites(&j, c, c->by_site);
	json_key(&j, "programs");
	json_open(&j, '[');
	vec_each (p, &c->programs) {
		json_open(&j, '{');
		json_kstr(&j, "image", p->image->path);
		put_scores(&j, p->score);
		put_sites(&j, c, p->by_site);
		json_close(&j);
	}
	json_close(&j);
	json_key(&j, "wrong");
	json_open(&j, '[');
	for (size_t i = 0; i < c->wrong.n && i < rows; i++) {
		json_open(&j, '{');
		json_kstr(&j, "verdict", call_verdict_word(c->wrong.p[i].verdict));
		json_kuint(&j, "weight", c->wrong.p[i].weight);
		json_kstr(&j, "path", c->wrong.p[i].path);
		json_kstr(&j, "named", c->wrong.p[i].named);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static void put_shares(
	struct table *t, const char *name, const uint64_t parts[4], const uint64_t wholes[4])
{
	for (unsigned i = 0; i < 4; i++)
		table_cell(t, "%.2f%%", 100 * share_of(parts[i], wholes[i]));
	table_cell(t, "%s", name);
	table_row(t);
}

static void print_categories(
	const struct path_check *c, const struct call_score score[CALL_KEYS], const char *what)
{
	static const char *const words[PATH_CATEGORIES] = {[PATH_PRECISE] = "precise: the only one",
		[PATH_FIRST] = "the likeliest of several, and right",
		[PATH_AMBIGUOUS] = "ambiguous: one of several, but not the likeliest",
		[PATH_WRONG] = "incorrect: other paths are known there",
		[PATH_MISSING] = "missing"};
	struct table *t = table_create(">>>><");
	uint64_t parts[PATH_CATEGORIES][4], wholes[4] = {0};

	for (unsigned v = 0; v < PATH_CATEGORIES; v++)
		for (unsigned i = 0; i < 4; i++) {
			const struct call_score *s = &score[i / 2];

			parts[v][i] = i % 2 ? s->verdicts[v].weight : s->verdicts[v].paths;
			wholes[i] += parts[v][i];
		}
	table_cell(t, "paths");
	table_cell(t, "%s", unit_of(c));
	table_cell(t, "paths, caller told");
	table_cell(t, "%s", unit_of(c));
	table_cell(t, "of %" PRIu64 " %s, %" PRIu64 " %s", wholes[0], what, wholes[1], unit_of(c));
	table_row(t);
	table_header(t);
	for (unsigned v = 0; v < PATH_CATEGORIES; v++)
		put_shares(t, words[v], parts[v], wholes);
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_degrees(const struct call_score *s, const char *unit)
{
	uint64_t paths = 0, weight = 0, all = 0, all_weight = 0;

	for (unsigned v = 0; v < PATH_CATEGORIES; v++) {
		all += s->verdicts[v].paths;
		all_weight += s->verdicts[v].weight;
	}
	printf("\ndegree of ambiguity, at most:");
	for (unsigned d = 0; d + 1 < CALL_DEGREES; d++) {
		paths += s->degrees[d].paths;
		weight += s->degrees[d].weight;
		printf("%s %u: %.1f%% (%.1f%%)", d ? "," : "", d + 1, 100 * share_of(paths, all),
			100 * share_of(weight, all_weight));
	}
	printf(" of the paths (%s)\n", unit);
}

static void print_programs(const struct path_check *c)
{
	struct table *t = table_create(">>>><");

	printf("\n");
	table_cell(t, "right paths");
	table_cell(t, "%s", unit_of(c));
	table_cell(t, "right paths, caller told");
	table_cell(t, "%s", unit_of(c));
	table_cell(t, "program");
	table_row(t);
	table_header(t);
	vec_each (p, &c->programs) {
		for (unsigned i = 0; i < 4; i++)
			table_cell(t, "%.2f%%", 100 * call_score_right(&p->score[i / 2], i % 2));
		table_cell(t, "%s", p->image->path);
		table_row(t);
	}
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void print_wrong(const struct path_check *c, size_t rows)
{
	for (size_t i = 0; i < c->wrong.n && i < rows; i++) {
		const struct checked_path *p = &c->wrong.p[i];

		printf("\n%" PRIu64 " %s: ", p->weight, call_verdict_word(p->verdict));
		cmd_put(stdout, p->path);
		if (p->named) {
			printf("\n  named: ");
			cmd_put(stdout, p->named);
		}
		printf("\n");
	}
	if (c->wrong.n > rows)
		printf("and %zu more (-n shows more)\n", c->wrong.n - rows);
}

int calls_check(struct calls_view *v, struct err *e)
{
	struct report truth = {
		.input = v->other, .no_pager = true, .filter.image = v->report.filter.image};
	struct path_check c = {0};
	int rc = report_select(&v->report, NULL, e);

	if (!rc)
		rc = report_select(&truth, NULL, e);
	if (!rc)
		rc = path_check(v->report.sel, truth.sel, &c, e);
	if (!rc && v->report.json)
		print_json(&c, v->report.rows ? v->report.rows : SIZE_MAX);
	if (!rc && !v->report.json) {
		report_pager(&v->report);
		print_categories(&c, c.all, "paths");
		if (c.counted) {
			printf("\n");
			print_categories(&c, c.by_site, "paths with their call sites");
		}
		if (c.training.left + c.training.unmet)
			printf("%" PRIu64 " contexts that were counted cannot be compared: their "
			       "heights are not "
			       "known\n",
				c.training.left + c.training.unmet);
		print_degrees(&c.all[CALL_BY_HEIGHT], unit_of(&c));
		if (c.programs.n > 1)
			print_programs(&c);
		print_wrong(&c, v->report.rows ? v->report.rows : WRONG_ROWS);
	}
	path_check_deinit(&c);
	report_deinit(&truth);
	return rc;
}
