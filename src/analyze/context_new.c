#include "analyze/context_new.h"

#include "base/err.h"
#include "base/mem.h"
#include "store/contexts.h"

#include <errno.h>
#include <stdlib.h>

/* Adds the paths of a profile; leaves of path maps that are no calls have none. */
static int take_paths(void *arg, const struct store_profile *p)
{
	struct call_tree *to = arg, *from = call_tree_create(NULL);
	int rc = call_tree_add(from, p->data, p->size);
	uint32_t n = rc ? 0 : call_tree_size(from);
	_cleanup_free_ uint32_t *became = xcalloc(n + 1, sizeof *became);

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(from, i);
		struct call_place at = node->at;

		at.site = 0;
		became[i] = node->parent == CALL_NONE ? CALL_NONE : became[node->parent];
		if (!at.image || at.image > CALL_MAP_STEP)
			became[i] = call_tree_child(to, became[i], &at);
	}
	call_tree_destroy(from);
	return rc;
}

static int gather(struct selection *old, struct call_tree *to, struct err *e)
{
	struct store_filter filter = *selection_filter(old);
	int rc;

	filter.event = filter.image = NULL;
	filter.type = &blob_context;
	rc = store_profiles(selection_store(old), &filter, take_paths, to, e);
	filter.type = &blob_pathmap;
	if (!rc)
		rc = store_profiles(selection_store(old), &filter, take_paths, to, e);
	if (rc == -EBADMSG)
		err_set(e, rc, "contexts are damaged: 'culprit db check' says which");
	else if (!rc && !call_tree_size(to))
		rc = err_set(e, -ENOENT, "the earlier profile has no calling contexts");
	return rc;
}

int context_new(const struct context_tree *t, struct selection *old, bool **out, struct err *e)
{
	const struct context_node *nodes;
	size_t n = context_tree_nodes(t, &nodes);
	_cleanup_free_ uint32_t *same = xcalloc(n + 1, sizeof *same);
	struct call_tree *known = call_tree_create(NULL);
	int rc = gather(old, known, e);
	uint32_t before = call_tree_size(known);
	bool *fresh = xcalloc(n + 1, sizeof *fresh);

	for (size_t i = 0; i < n; i++) {
		struct call_place at = call_tree_node(context_tree_calls(t), nodes[i].source)->at;
		uint32_t up = nodes[i].parent;

		at.site = 0;
		same[i] = call_tree_child(known, up == CONTEXT_NONE ? CALL_NONE : same[up], &at);
		fresh[i] = same[i] >= before && context_tree_known(t, &nodes[i]) != CONTEXT_UNKNOWN;
	}
	call_tree_destroy(known);
	if (rc)
		free(fresh);
	else
		*out = fresh;
	return rc;
}
