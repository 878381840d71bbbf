#include "analyze/path_at.h"

#include "base/err.h"
#include "base/mem.h"
#include "calls/walk.h"
#include "store/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- where ---- */

static bool is_called(const struct selected_image *im, const char *name, size_t n)
{
	const char *base = selected_image_name(im);

	return (strlen(base) == n && !strncmp(base, name, n)) ||
	       (strlen(im->path) == n && !strncmp(im->path, name, n));
}

static bool find_in_image(struct selection *sel, const char *name, size_t n, uint64_t offset,
	const struct selected_image **image, uint64_t *vaddr)
{
	struct selected_image *list;
	size_t images = selection_images(sel, &list);

	for (size_t i = 0; i < images; i++)
		if (list[i].kind == IMAGE_ELF && is_called(&list[i], name, n)) {
			*image = &list[i];
			*vaddr = offset;
			return true;
		}
	return false;
}

static bool find_in_procedure(struct selection *sel, const char *name, size_t n, uint64_t offset,
	const struct selected_image **image, uint64_t *vaddr)
{
	struct selected_image *list;
	size_t images = selection_images(sel, &list);

	for (size_t i = 0; i < images; i++) {
		if (list[i].kind != IMAGE_ELF || selection_load(sel, &list[i], NULL))
			continue;
		for (size_t k = 0; k < list[i].procedures.n; k++) {
			const struct procedure *p = &list[i].procedures.p[k];

			if (!p->name || strlen(p->name) != n || strncmp(p->name, name, n))
				continue;
			*image = &list[i];
			*vaddr = p->start + offset;
			return true;
		}
	}
	return false;
}

/* An image and an address in it, or a procedure and how far behind its start. */
static int find_place(struct selection *sel, const char *where, const struct selected_image **image,
	uint64_t *vaddr, struct err *e)
{
	const char *sign = strrchr(where, '+');
	uint64_t offset = 0;
	char *end = NULL;
	size_t n;

	if (!sign)
		sign = strrchr(where, '!');
	n = sign ? (size_t)(sign - where) : strlen(where);
	if (sign)
		offset = strtoull(sign + 1, &end, 16);
	if (sign && (end == sign + 1 || *end))
		return err_set(
			e, -EINVAL, "'%s': what is behind the %c is no address", where, *sign);
	if (find_in_image(sel, where, n, offset, image, vaddr) ||
		find_in_procedure(sel, where, n, offset, image, vaddr))
		return 0;
	return err_set(
		e, -EINVAL, "'%.*s' is no image and no procedure of the database", (int)n, where);
}

/* ---- how high ---- */

static int find_height(const struct selected_image *image, uint64_t vaddr,
	const struct path_place *place, struct call_frame *out, struct err *e)
{
	uint64_t registers[FRAME_REGISTERS] = {
		[FRAME_RSP] = place->sp, [FRAME_RBP] = place->bp, [FRAME_RIP] = vaddr};
	uint32_t known = 1u << FRAME_RSP | 1u << FRAME_RIP | (place->bp ? 1u << FRAME_RBP : 0);
	const struct procedure *p;
	const struct frame_rule *r;
	struct frames *frames = NULL;
	struct image *im;
	uint64_t cfa;
	int rc = image_open_path(image->path, &im, e);

	if (rc)
		return rc;
	if (!image_id_equal(image_id(im), &image->identity))
		rc = err_set(e, -EINVAL, "%s is not the file that was recorded", image->path);
	else if (frames_open(im, &frames) < 0)
		rc = err_set(e, -EINVAL, "%s has no unwind rows", image->path);
	p = rc ? NULL : image_procedure_at(im, vaddr);
	r = rc ? NULL : frames_at(frames, vaddr);
	if (!rc && (!p || !r || !walk_cfa(frames, r, registers, known, &cfa)))
		rc = err_set(e, -EINVAL,
			"the unwind rows do not tell the frame at %s+0x%llx from these registers%s",
			selected_image_name(image), (unsigned long long)vaddr,
			r && r->base == FRAME_RBP && !place->bp ? "; rbp would do" : "");
	if (!rc)
		*out = (struct call_frame){
			edge_image_key(image->kind, &image->identity, image->path), p->start,
			(int64_t)(place->base - cfa)};
	frames_destroy(frames);
	image_destroy(im);
	return rc;
}

/* ---- who called ---- */

static int by_weight(const void *a, const void *b)
{
	const struct path_named *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void list_paths(const struct path_map *m, enum stack_kind kind, struct path_answer *out)
{
	size_t n = call_map_size(m->map);

	for (size_t i = 0; i < n; i++) {
		struct call_height h;

		call_map_height(m->map, i, &h);
		if (h.kind == kind && h.frame.image == out->frame.image &&
			h.frame.procedure == out->frame.procedure &&
			h.frame.height == out->frame.height)
			*vec_add(&out->paths) = (struct path_named){
				.program = m, .node = h.node, .weight = h.count};
	}
}

static void guess_path(const struct path_map *m, enum stack_kind kind, struct path_answer *out)
{
	uint32_t node = call_map_guess(m->map, kind, &out->frame);

	if (node != CALL_NONE)
		*vec_add(&out->paths) =
			(struct path_named){.program = m, .node = node, .guessed = true};
}

int path_at(struct selection *sel, const struct path_maps *maps, const struct path_place *place,
	struct path_answer *out, struct err *e)
{
	const struct selected_image *image = NULL;
	uint64_t vaddr = 0;
	int rc = find_place(sel, place->where, &image, &vaddr, e);

	*out = (struct path_answer){0};
	if (!rc)
		rc = find_height(image, vaddr, place, &out->frame, e);
	if (rc)
		return rc;
	vec_each (m, &maps->list)
		list_paths(m, place->kind, out);
	if (!out->paths.n)
		vec_each (m, &maps->list)
			guess_path(m, place->kind, out);
	vec_sort(&out->paths, by_weight);
	if (!out->paths.n)
		rc = err_set(e, -ENOENT,
			"no call path is known to %s with the stack %lld bytes high", place->where,
			(long long)out->frame.height);
	return rc;
}

void path_answer_deinit(struct path_answer *a)
{
	vec_deinit(&a->paths);
}
