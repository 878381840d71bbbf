/*
 * The run time of edited files (rt/rt.h), for tools: all share one, and each fills in what is its
 * own. Snippets call its routines by their offsets (rt/routines.h).
 *
 *     struct rt_header *h = runtime_header(e);
 *     h->counters = edit_data(e, size, 4096);
 *     snippet_create("t0 = call a0(a1)", &s, &err);
 *     edit_at_entry(e, f, s, (uint64_t[]){RT_CALL_SOMETHING, 42});
 */
#ifndef CULPRIT_EDIT_RUNTIME_H
#define CULPRIT_EDIT_RUNTIME_H

#include <stdbool.h>

#include "edit/edit.h"
#include "rt/rt.h"

/* It is added by the first who asks. The header is the edit's and may be changed until edit_write;
 * magic, address and next are not the tools'. */
struct rt_header *runtime_header(struct edit *e);

/*
 * Puts constant data behind the run time, aligned to 8, and returns its offset there: routines find
 * it at that distance from rt_header. The header moves: it is to be asked for again.
 */
size_t runtime_append(struct edit *e, const void *p, size_t n);

/*
 * Whether threads have words of their own (RT_WORD) in all code of the file: programs and libraries
 * that use glibc, dynamically; others have something else there, or nothing yet when they
 * start. Else why gets constant words.
 */
bool runtime_has_thread_words(const struct edit *e, const char **why);

#endif
