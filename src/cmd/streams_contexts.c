/* The calling contexts of a stream, as `culprit streams --by context` shows them. */
#include "analyze/call_name.h"
#include "analyze/stream_contexts.h"
#include "base/buf.h"
#include "cmd/streams_view.h"

#include <inttypes.h>
#include <stdio.h>

#define SHOWN 5 /* of a stream */

static const char *name_of(
	struct streams_view *v, const struct stream_frame *f, char *text, size_t size)
{
	struct call_place at = {.image = f->image, .procedure = f->procedure};

	return call_name(v->report.sel, &at, text, size);
}

static uint64_t all_of(const struct stream_context *list, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i].occurrences;
	return sum;
}

static void print_path(struct streams_view *v, const struct stream_context *c)
{
	char name[512];

	if (!c->n)
		fputs("[unknown]", stdout);
	for (uint32_t i = 0; i < c->n; i++) {
		fputs(!i ? "" : c->frames[i].gap ? " ... " : " > ", stdout);
		cmd_put(stdout, name_of(v, &c->frames[i], name, sizeof name));
	}
	putchar('\n');
}

void streams_contexts_print(struct streams_view *v, size_t stream)
{
	const struct stream_context *list;
	size_t n = stream_contexts_of(v->contexts, stream, &list);
	uint64_t all = all_of(list, n);

	if (n)
		puts("      called by");
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		printf("      %5.1f%%  ", 100 * share_of(list[i].occurrences, all));
		print_path(v, &list[i]);
	}
	if (n > SHOWN)
		printf("              and %zu other contexts (--json has them all)\n", n - SHOWN);
}

static void put_context(struct streams_view *v, const struct stream_context *c, struct json *j)
{
	char name[512];

	json_key(j, "path");
	json_open(j, '[');
	for (uint32_t i = 0; i < c->n; i++)
		json_str(j, name_of(v, &c->frames[i], name, sizeof name));
	json_close(j);
	json_key(j, "frames");
	json_open(j, '[');
	for (uint32_t i = 0; i < c->n; i++) {
		const struct selected_image *im =
			call_name_image(v->report.sel, c->frames[i].image);

		json_open(j, '{');
		json_kstr(j, "image", im ? im->path : NULL);
		json_kaddr(j, "start", c->frames[i].procedure);
		json_kbool(j, "gap", c->frames[i].gap);
		json_close(j);
	}
	json_close(j);
}

void streams_contexts_json(struct streams_view *v, size_t stream, struct json *j)
{
	const struct stream_context *list;
	size_t n = stream_contexts_of(v->contexts, stream, &list);
	uint64_t all = all_of(list, n);

	json_key(j, "contexts");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		put_context(v, &list[i], j);
		json_kuint(j, "occurrences", list[i].occurrences);
		json_kshare(j, "share", share_of(list[i].occurrences, all));
		json_close(j);
	}
	json_close(j);
}
