#include "analyze/call_name.h"

#include "base/buf.h"
#include "store/edges.h"

#include <stdio.h>

struct selected_image *call_name_image(const struct selection *sel, uint64_t key)
{
	struct selected_image *list;
	size_t n = selection_images(sel, &list);

	for (size_t i = 0; i < n && key; i++)
		if (edge_image_key(list[i].kind, &list[i].identity, list[i].path) == key)
			return &list[i];
	return NULL;
}

const char *call_name(struct selection *sel, const struct call_place *at, char *text, size_t size)
{
	struct selected_image *im = call_name_image(sel, at->image);
	const struct procedure nameless = {.start = at->procedure}, *p = NULL;

	if (!im) {
		snprintf(text, size, at->procedure ? "?!0x%llx" : "[unknown]",
			(unsigned long long)at->procedure);
		return text;
	}
	if (!selection_load(sel, im, NULL))
		p = store_procedure_at(&im->procedures, at->procedure);
	if (!p || p->start != at->procedure)
		p = &nameless;
	return procedure_label(p, im->path, text, size);
}

void call_name_path(
	struct selection *sel, const struct call_tree *t, uint32_t node, struct buf *out)
{
	const struct call_node *n = call_tree_node(t, node);
	char label[512];

	if (n->parent != CALL_NONE) {
		call_name_path(sel, t, n->parent, out);
		buf_printf(out, " > ");
	}
	buf_printf(out, "%s", call_name(sel, &n->at, label, sizeof label));
}
