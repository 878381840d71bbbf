#include "export/speedscope.h"

#include "base/json.h"
#include "base/mem.h"
#include "export/functions.h"
#include "export/stacks.h"

#include <string.h>

static void put_frames(struct json *j, const struct functions *f)
{
	const struct function *list;
	size_t n = functions_all(f, &list);

	json_key(j, "shared");
	json_open(j, '{');
	json_key(j, "frames");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		json_kstr(j, "name", list[i].name);
		if (list[i].file)
			json_kstr(j, "file", list[i].file);
		if (list[i].line > 0)
			json_kint(j, "line", list[i].line);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_stacks(
	struct json *j, const struct stacks *s, struct functions *f, const struct stack_group *g)
{
	const struct stack_node *nodes;
	function_list list = {0};

	stacks_nodes(s, &nodes);
	json_key(j, "samples");
	json_open(j, '[');
	for (uint32_t i = g->first; i < g->end; i++) {
		if (!(nodes[i].value[0] > 0))
			continue;
		functions_of_node(f, i, &list);
		json_open(j, '[');
		vec_each (number, &list)
			json_uint(j, *number);
		json_close(j);
	}
	json_close(j);
	vec_deinit(&list);
}

/* Returns their sum. */
static double put_weights(struct json *j, const struct stacks *s, const struct stack_group *g)
{
	const struct stack_measure *measures;
	size_t last = stacks_measures(s, &measures) - 1;
	const struct stack_node *nodes;
	double sum = 0;

	stacks_nodes(s, &nodes);
	json_key(j, "weights");
	json_open(j, '[');
	for (uint32_t i = g->first; i < g->end; i++) {
		if (!(nodes[i].value[0] > 0))
			continue;
		json_double(j, nodes[i].value[last]);
		sum += nodes[i].value[last];
	}
	json_close(j);
	return sum;
}

static void put_profile(
	struct json *j, const struct stacks *s, struct functions *f, const struct stack_group *g)
{
	const struct stack_measure *measures, *last;
	size_t n = stacks_measures(s, &measures);
	_cleanup_free_ char *name = NULL;

	last = &measures[n - 1];
	name = g->pid ? xasprintf("%s (%d): %s", g->process, g->pid, last->name)
		      : xasprintf("%s: %s", g->process, last->name);
	json_open(j, '{');
	json_kstr(j, "type", "sampled");
	json_kstr(j, "name", name);
	json_kstr(j, "unit", strcmp(last->unit, "nanoseconds") ? "none" : last->unit);
	json_kint(j, "startValue", 0);
	put_stacks(j, s, f, g);
	json_kdouble(j, "endValue", put_weights(j, s, g));
	json_close(j);
}

void speedscope_write(const struct stacks *s, const char *name, FILE *out)
{
	struct functions *f = functions_create(s);
	const struct stack_group *groups;
	size_t n = stacks_groups(s, &groups);
	struct json j;

	json_init(&j, out);
	json_open(&j, '{');
	json_kstr(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_kstr(&j, "exporter", "culprit@" CULPRIT_VERSION);
	json_kstr(&j, "name", name);
	json_kint(&j, "activeProfileIndex", 0);
	put_frames(&j, f);
	json_key(&j, "profiles");
	json_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		put_profile(&j, s, f, &groups[i]);
	json_close(&j);
	json_close(&j);
	functions_destroy(f);
}
