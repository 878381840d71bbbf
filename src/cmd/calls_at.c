/* culprit calls --at: the call path of a crash report, from its registers. */
#include "analyze/call_name.h"
#include "analyze/path_at.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/calls_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool take_number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 16);
	return end != text && !*end;
}

/* "PC,SP,BASE[,BP]"; the base may say of which stack it is. Points into text. */
static int parse_place(char *text, struct path_place *out, struct err *e)
{
	static const struct {
		const char *name;
		enum stack_kind kind;
	} kinds[] = {{"main:", STACK_MAIN}, {"thread:", STACK_THREAD}, {"signal:", STACK_SIGNAL}};
	char *save, *part[5] = {NULL};
	size_t n = 0;

	for (char *p = strtok_r(text, ",", &save); p && n < 5; p = strtok_r(NULL, ",", &save))
		part[n++] = p;
	*out = (struct path_place){.where = part[0]};
	for (size_t i = 0; n > 2 && i < sizeof kinds / sizeof *kinds; i++)
		if (!strncmp(part[2], kinds[i].name, strlen(kinds[i].name))) {
			out->kind = kinds[i].kind;
			part[2] += strlen(kinds[i].name);
		}
	if (n < 3 || n > 4 || !take_number(part[1], &out->sp) ||
		!take_number(part[2], &out->base) || (n == 4 && !take_number(part[3], &out->bp)))
		return err_set(e, -EINVAL,
			"--at takes PC,SP,BASE[,BP] as in gzip+0x4330,0x7ffc01020,0x7ffc02000");
	if (out->base < out->sp)
		return err_set(e, -EINVAL, "--at: the base of a stack is above its pointer");
	return 0;
}

static const char *known_word(const struct path_answer *a, const struct path_named *p)
{
	return context_known_word(a->paths.n > 1 || p->guessed ? CONTEXT_RANKED : CONTEXT_UNIQUE);
}

static uint64_t weight_of(const struct path_answer *a)
{
	uint64_t sum = 0;

	vec_each (p, &a->paths)
		sum += p->weight;
	return sum;
}

static void put_frames(
	struct json *j, struct selection *sel, const struct call_tree *t, uint32_t node)
{
	const struct call_node *n = call_tree_node(t, node);
	char label[512];

	if (n->parent != CALL_NONE)
		put_frames(j, sel, t, n->parent);
	json_str(j, call_name(sel, &n->at, label, sizeof label));
}

static void print_json(struct selection *sel, const struct path_answer *a)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kint(&j, "height", a->frame.height);
	json_kaddr(&j, "start", a->frame.procedure);
	json_key(&j, "paths");
	json_open(&j, '[');
	vec_each (p, &a->paths) {
		json_open(&j, '{');
		json_key(&j, "path");
		json_open(&j, '[');
		put_frames(&j, sel, call_map_tree(p->program->map), p->node);
		json_close(&j);
		json_kstr(&j, "program", p->program->image->path);
		json_kshare(&j, "share", share_of(p->weight, weight_of(a)));
		json_kstr(&j, "known", known_word(a, p));
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

static void print_text(struct selection *sel, const struct path_answer *a)
{
	uint64_t all = weight_of(a);

	vec_each (p, &a->paths) {
		struct buf text = {0};

		call_name_path(sel, call_map_tree(p->program->map), p->node, &text);
		if (p->guessed)
			printf("guessed, for nobody was seen there: ");
		else if (a->paths.n > 1)
			printf("%.1f%%: ", 100 * share_of(p->weight, all));
		cmd_put(stdout, buf_cstr(&text));
		printf("\n");
		buf_deinit(&text);
	}
}

int calls_at(struct calls_view *v, struct err *e)
{
	_cleanup_free_ char *text = xstrdup(v->other);
	struct path_answer answer = {0};
	struct path_maps maps = {0};
	struct path_place place;
	int rc = parse_place(text, &place, e);

	if (!rc)
		rc = report_select(&v->report, NULL, e);
	if (!rc)
		rc = path_maps_load(v->report.sel, &maps, e);
	if (!rc)
		rc = path_maps_train(v->report.sel, &maps, e);
	if (!rc)
		rc = path_at(v->report.sel, &maps, &place, &answer, e);
	if (!rc && v->report.json)
		print_json(v->report.sel, &answer);
	else if (!rc)
		print_text(v->report.sel, &answer);
	path_answer_deinit(&answer);
	path_maps_deinit(&maps);
	return rc;
}
