/*
 * Paths by context (Ammons, Ball and Larus 1997, section 4.1: the counters of a procedure's paths
 * lie in its call records): for the tool of contexts, what has to be done for paths.
 *
 * Paths are numbered as paths/choose.h does it, with smaller arrays, since every record has one. A
 * procedure with a single path needs none if it calls nobody: it ran as often as it was entered.
 */
#ifndef CULPRIT_CONTEXT_PATH_WORDS_H
#define CULPRIT_CONTEXT_PATH_WORDS_H

#include "context/map.h"
#include "context/survey.h"
#include "paths/code.h"

struct path_words {
	struct choosing choosing;
	struct paths_code code;
	struct paths_map_writer writer;
	uint64_t words;    /* of all procedures, one record each */
	uint64_t left_out; /* procedures whose paths cannot be counted */
};

void path_words_init(
	struct path_words *w, struct edit *edit, const struct guide *guide, bool atomic);
/* The snippets are in use until the edit is written. */
void path_words_deinit(struct path_words *w);

/* Which functions need their record, for they have several paths; to be freed. */
bool *path_words_recorded(struct path_words *w);
/* Has a function count its paths, behind what is inserted for contexts; p->paths becomes how many
 * words more a record has, below those for calls. */
void path_words_add(
	struct path_words *w, const struct survey_function *f, struct context_procedure *p);

/* ---- maps ---- */

/* A map of contexts, with what the words mean; the writer is done with. */
void path_words_put(struct path_words *w, const struct context_map *m, struct buf *out);

struct path_words_map {
	struct context_map context; /* with words of procedures */
	const void *paths;          /* a map of paths/map.h, in the bytes that were read; */
	size_t size;                /* 0: paths were not counted */
	uint64_t left_out;
};
/* Of either kind. -EBADMSG; deinitialise `context`. */
int path_words_read(struct path_words_map *m, const void *p, size_t n);
/* The path of the original, in the bytes of a map that can be read. */
const char *path_words_original(const void *p, size_t n);

#endif
