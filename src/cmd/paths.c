/*
 * culprit paths: which acyclic paths inside procedures the time, or any counter, goes to.
 */
#include "base/err.h"
#include "base/json.h"
#include "cmd/paths_view.h"

#include <fnmatch.h>
#include <getopt.h>
#include <string.h>

#define HOT_DEFAULT 0.01

/* ---- what both forms need ---- */

const struct path_procedure *paths_procedure(const struct paths_view *v, const struct path_entry *p)
{
	const struct path_procedure *list;

	path_list_procedures(v->list, &list);
	return &list[p->procedure];
}

static bool fits(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

bool paths_shows(const struct paths_view *v, const struct path_procedure *p)
{
	char label[512];

	if (v->report.procedure && !fits(v->report.procedure, p->name))
		return false;
	if (!v->what || fits(v->what, p->name))
		return true;
	snprintf(label, sizeof label, "%s!0x%llx", selected_image_name(p->image),
		(unsigned long long)p->start);
	return !strcmp(label, v->what);
}

bool paths_shows_path(const struct paths_view *v, const struct path_entry *p)
{
	return p->weight >= v->hot * path_list_summary(v->list)->weight &&
	       paths_shows(v, paths_procedure(v, p));
}

double paths_predicted(const struct paths_view *v, const struct path_entry *p)
{
	const struct path_entry *all;

	path_list_all(v->list, &all);
	return v->prediction.counts ? v->prediction.counts[p - all] : 0;
}

const char *path_how_name(uint8_t how)
{
	static const char *const names[PATH_HOWS] = {[PATH_HOW_ONE] = "one",
		[PATH_HOW_ARRAY] = "array",
		[PATH_HOW_HASH] = "hash",
		[PATH_HOW_SHORT] = "short"};

	return names[how];
}

/* ---- JSON ---- */

static void put_procedure(struct json *j, const struct path_procedure *p)
{
	char id[IMAGE_ID_TEXT];
	const struct image_id *identity = &p->image->identity;

	json_kstr(j, "procedure", p->name);
	json_kstr(j, "image", p->image->path);
	json_kstr(j, "build_id", identity->size ? image_id_text(identity, id) : NULL);
	json_kaddr(j, "start", p->start);
}

static void put_numbers(struct json *j, const struct paths_view *v, const uint64_t *metrics)
{
	const struct metric_names *names = path_list_metrics(v->list);

	json_open(j, '{');
	for (uint32_t i = 0; i < names->n; i++)
		json_kuint(j, names->name[i], metrics[i]);
	json_close(j);
}

static const char *class_name(enum path_class class)
{
	static const char *const names[PATH_CLASSES] = {
		[PATH_DENSE] = "dense", [PATH_SPARSE] = "sparse", [PATH_COLD] = "cold"};

	return names[class];
}

static void put_shape(struct json *j, const struct path_shape *s)
{
	json_kstr(j, "begins", path_start_name(s->start));
	json_kstr(j, "ends", path_end_name(s->end));
	if (s->next)
		json_kaddr(j, "next", s->next);
	json_key(j, "blocks");
	json_open(j, '[');
	for (uint32_t i = 0; i < s->n; i++)
		json_addr(j, s->blocks[i]);
	json_close(j);
}

static void put_path(struct json *j, struct paths_view *v, const struct path_entry *p)
{
	const struct path_procedure *procedure = paths_procedure(v, p);
	double whole = path_list_summary(v->list)->weight;
	struct buf lines = {0};

	path_lines_format(v->lines, procedure->image, procedure->procedure, &p->shape, &lines);
	json_open(j, '{');
	put_procedure(j, procedure);
	json_kuint(j, "path", p->rank);
	put_shape(j, &p->shape);
	json_kuint(j, "count", p->count);
	json_kshare(j, "share", whole > 0 ? p->weight / whole : 0);
	json_kuint(j, "instructions", p->length);
	json_kstr(j, "class", class_name(p->class));
	json_key(j, "metrics");
	put_numbers(j, v, p->metrics);
	if (v->prediction.counts)
		json_kdouble(j, "predicted", paths_predicted(v, p));
	json_kstr(j, "lines", lines.n ? buf_cstr(&lines) : NULL);
	json_close(j);
	buf_deinit(&lines);
}

static void put_classes(struct json *j, const struct path_summary *s)
{
	json_key(j, "classes");
	json_open(j, '[');
	for (int i = 0; i < PATH_CLASSES; i++) {
		const struct path_share *c = &s->of[i];

		json_open(j, '{');
		json_kstr(j, "class", class_name(i));
		json_kuint(j, "paths", c->paths);
		json_kshare(j, "share", s->weight > 0 ? c->weight / s->weight : 0);
		json_kshare(j, "instructions",
			s->instructions > 0 ? c->instructions / s->instructions : 0);
		json_kuint(j, "procedures", c->procedures);
		json_kuint(j, "paths_in_procedures", c->in_procedures);
		json_kshare(j, "share_of_procedures",
			s->weight > 0 ? c->procedures_weight / s->weight : 0);
		json_close(j);
	}
	json_close(j);
}

static void put_procedures(struct json *j, const struct paths_view *v)
{
	const struct path_procedure *list;
	size_t n = path_list_procedures(v->list, &list);
	double whole = path_list_summary(v->list)->weight;

	json_key(j, "procedures");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		if (!list[i].n || !paths_shows(v, &list[i]))
			continue;
		json_open(j, '{');
		put_procedure(j, &list[i]);
		json_kuint(j, "paths", list[i].n);
		json_kuint(j, "potential", list[i].potential);
		json_kstr(j, "counted", path_how_name(list[i].how));
		json_kuint(j, "cuts", list[i].cuts);
		json_kuint(j, "off", list[i].off);
		json_kuint(j, "count", list[i].count);
		json_kshare(j, "share", whole > 0 ? list[i].weight / whole : 0);
		json_kstr(j, "class", class_name(list[i].class));
		json_close(j);
	}
	json_close(j);
}

static void put_prediction(struct json *j, const struct path_prediction *p)
{
	json_key(j, "prediction");
	json_open(j, '{');
	json_kshare(j, "overlap", p->overlap);
	json_kuint(j, "hot", p->hot);
	json_kuint(j, "foretold", p->foretold);
	json_kuint(j, "cold", p->wrong);
	json_kuint(j, "never", p->never);
	json_close(j);
}

static void print_json(struct paths_view *v)
{
	const struct path_summary *s = path_list_summary(v->list);
	const struct path_entry *const *paths;
	size_t n = path_list_ranked(v->list, &paths);
	uint64_t left = v->report.rows ? v->report.rows : UINT64_MAX;
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "metric", s->metric);
	json_kshare(&j, "threshold", v->hot);
	json_kuint(&j, "paths", s->paths);
	json_kdouble(&j, "total", s->weight);
	json_key(&j, "totals");
	put_numbers(&j, v, s->metrics);
	put_classes(&j, s);
	if (v->prediction.counts)
		put_prediction(&j, &v->prediction);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < n && left; i++)
		if (paths_shows_path(v, paths[i])) {
			put_path(&j, v, paths[i]);
			left--;
		}
	json_close(&j);
	put_procedures(&j, v);
	json_close(&j);
}

/* ---- options ---- */

enum { PATHS_METRIC = REPORT_LAST, PATHS_PROCEDURES, PATHS_COMPARE };

static int paths_option(void *arg, int c, const char *value)
{
	struct paths_view *v = arg;

	switch (c) {
	case PATHS_METRIC:
		v->metric = value;
		return 0;
	case PATHS_PROCEDURES:
		v->by_procedure = true;
		return 0;
	case PATHS_COMPARE:
		v->compare = true;
		return 0;
	}
	return 1;
}

static int parse(struct paths_view *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		REPORT_MIN_SHARE_LONG, {"metric", required_argument, NULL, PATHS_METRIC},
		{"procedures", no_argument, NULL, PATHS_PROCEDURES},
		{"compare", no_argument, NULL, PATHS_COMPARE}, {0}};
	static const struct report_verb verb = {"paths", ":n:" REPORT_SHORT, options, paths_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	return rc ? rc : report_operand("paths", argc, argv, &v->what);
}

/* ---- the whole ---- */

static int report(struct paths_view *v, struct err *e)
{
	int rc = report_select(&v->report, NULL, e);

	v->hot = v->report.has_min_share ? v->report.min_share : HOT_DEFAULT;
	if (!rc)
		rc = path_list_create(v->report.sel,
			&(struct path_list_options){.metric = v->metric, .hot = v->hot}, &v->list,
			e);
	if (rc)
		return rc;
	if (v->compare)
		path_predict(v->list, v->hot, &v->prediction);
	if (v->what && !v->report.has_min_share)
		v->hot = 0;
	v->lines = path_lines_create(path_list_codes(v->list));
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else
		paths_print_text(v);
	return 0;
}

int cmd_paths(int argc, char **argv)
{
	struct paths_view v = {0};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("paths");
	else if (!code && report(&v, &e))
		code = cmd_fail(&e);
	path_lines_destroy(v.lines);
	path_prediction_deinit(&v.prediction);
	path_list_destroy(v.list);
	report_deinit(&v.report);
	return code;
}
