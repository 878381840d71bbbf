#include "cmd/path_format.h"

#include "analyze/path_code.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/lines.h"

#include <inttypes.h>
#include <string.h>

#define HEAD 5 /* blocks shown in front of those that are left out */

const char *path_start_name(uint8_t start)
{
	static const char *const names[PATH_STARTS] = {
		[PATH_ENTRY] = "entry", [PATH_AGAIN] = "loop", [PATH_ENTERED] = "entered"};

	return names[start];
}

const char *path_end_name(uint8_t end)
{
	static const char *const names[PATH_ENDS] = {[PATH_RETURN] = "return",
		[PATH_TAIL] = "tail",
		[PATH_NEXT] = "next",
		[PATH_STOP] = "stop"};

	return names[end];
}

void path_format(const struct path_shape *s, uint32_t most, struct buf *out)
{
	uint32_t hidden = most && s->n > most ? s->n - most : 0;

	buf_printf(out, "%s", path_start_name(s->start));
	for (uint32_t i = 0; i < s->n; i++) {
		if (hidden && i == HEAD) {
			buf_printf(out, " (%" PRIu32 " more)", hidden);
			i += hidden;
		}
		buf_printf(out, " %" PRIx64, s->blocks[i]);
	}
	if (s->end == PATH_NEXT && s->next)
		buf_printf(out, " -> %" PRIx64, s->next);
	else
		buf_printf(out, " %s", path_end_name(s->end));
}

/* ---- source lines ---- */

struct image_lines {
	int64_t image;
	struct lines *lines; /* NULL: none */
};

struct path_lines {
	struct path_codes *codes;
	VEC(struct image_lines) images;
};

struct path_lines *path_lines_create(struct path_codes *codes)
{
	struct path_lines *p = xcalloc(1, sizeof *p);

	p->codes = codes;
	return p;
}

void path_lines_destroy(struct path_lines *p)
{
	if (!p)
		return;
	vec_each (i, &p->images)
		if (i->lines)
			lines_destroy(i->lines);
	vec_deinit(&p->images);
	free(p);
}

static struct lines *lines_of(struct path_lines *p, const struct selected_image *im)
{
	struct lines *lines = NULL;

	vec_each (i, &p->images)
		if (i->image == im->id)
			return i->lines;
	if (im->kind != IMAGE_ELF || lines_open(im->path, &im->identity, &lines, NULL))
		lines = NULL;
	*vec_add(&p->images) = (struct image_lines){im->id, lines};
	return lines;
}

/* A line, and when its file was first seen on the path. */
struct seen {
	const char *file;
	size_t order;
	int line;
};

struct seen_list {
	struct lines *lines;
	VEC(struct seen) list;
};

static void see(void *arg, uint64_t address)
{
	struct seen_list *s = arg;
	struct line at;
	size_t order = s->list.n;

	if (lines_at(s->lines, address, &at) || at.line <= 0)
		return;
	vec_each (l, &s->list)
		if (!strcmp(l->file, at.file)) {
			order = l->order;
			if (l->line == at.line)
				return;
		}
	*vec_add(&s->list) = (struct seen){at.file, order, at.line};
}

static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void put_ranges(const struct seen *list, size_t n, struct buf *out)
{
	for (size_t i = 0, end; i < n; i = end) {
		const char *slash = strrchr(list[i].file, '/');
		bool fresh = !i || list[i].order != list[i - 1].order;

		for (end = i + 1; end < n && list[end].order == list[i].order &&
				  list[end].line == list[end - 1].line + 1;
			end++)
			;
		if (fresh)
			buf_printf(out, "%s%s:", i ? " " : "", slash ? slash + 1 : list[i].file);
		buf_printf(out, "%s%d", fresh ? "" : ",", list[i].line);
		if (end > i + 1)
			buf_printf(out, "-%d", list[end - 1].line);
	}
}

void path_lines_format(struct path_lines *p, const struct selected_image *im,
	const struct procedure *procedure, const struct path_shape *s, struct buf *out)
{
	struct seen_list seen = {.lines = lines_of(p, im)};
	struct path_code *code = NULL;

	if (!seen.lines || !procedure || path_code_create(p->codes, im, procedure, &code))
		return;
	path_code_each(code, s, see, &seen);
	vec_sort(&seen.list, compare_seen);
	put_ranges(seen.list.p, seen.list.n, out);
	vec_deinit(&seen.list);
	path_code_destroy(code);
}
