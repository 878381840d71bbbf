/* Takes the input as a stored path map: it is refused, or can be asked, unfolded, packed and read
 * again. */
#include "base/buf.h"
#include "calls/unfold.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Callers come before those they call. */
static void unfold(const struct call_map *m)
{
	struct unfolded_context *list;
	size_t n = call_map_unfold(m, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].caller != CALL_NONE &&
			(list[i].caller >= i || list[list[i].caller].height >= list[i].height))
			abort();
	free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct call_map *m = call_map_create(), *again = call_map_create();
	struct call_frame f = {100, 256, 16};
	struct buf packed = {0};
	uint32_t others;

	if (!call_map_add(m, data, n)) {
		call_map_find(m, STACK_MAIN, &f, &others);
		call_map_learn(m, NULL, STACK_MAIN, &f, 1);
		unfold(m);
		call_map_pack(m, &packed);
		if (call_map_add(again, packed.p, packed.n) ||
			call_map_size(again) != call_map_size(m))
			abort();
	}
	buf_deinit(&packed);
	call_map_destroy(m);
	call_map_destroy(again);
	return 0;
}
