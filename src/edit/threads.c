#include "edit/threads.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "edit/callers.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "rt/routines.h"

#define BLOCKS_MOST ((uint64_t)2 << 30) /* bytes of all blocks of a file */

_Static_assert(RT_WORD(RT_WORD_NONE) == 632, "as the snippets have it");

int threads_begin(struct threads *t, struct edit *e, struct err *err)
{
	const char *why;

	*t = (struct threads){0};
	if (!runtime_has_thread_words(e, &why))
		return err_set(err, -EOPNOTSUPP,
			"%s: cannot be counted by thread: %s; --atomic is for all",
			image_path(edit_image(e)), why);
	t->at = edit_data(e, sizeof(struct rt_threads), 8);
	return snippet_create(
		THREADS_FIND("t0", "a1") "if t0 == 0 goto new; on: apart; new: call a0(); goto on",
		&t->check, err);
}

void threads_check(struct threads *t, struct edit *e)
{
	const uint64_t arguments[] = {RT_CALL_THREAD_BLOCK, t->at};
	bool *outside = callers_outside(e);
	struct edit_function **all;
	size_t n = edit_functions(e, &all);

	for (size_t i = 0; i < n; i++)
		if (outside[i] && all[i]->chosen && !all[i]->refused)
			edit_at_entry(e, all[i], t->check, arguments);
	free(outside);
}

void threads_finish(struct threads *t, struct edit *e, uint64_t bytes)
{
	uint64_t most = bytes ? BLOCKS_MOST / bytes : 0;
	struct rt_header *h = runtime_header(e);

	h->threads = t->at;
	h->block = bytes;
	h->blocks = most < RT_BLOCKS ? most : RT_BLOCKS;
}

void threads_deinit(struct threads *t)
{
	snippet_destroy(t->check);
}
