/*
 * Paths by context (Ammons, Ball and Larus 1997, section 4.1: the counters of a procedure's paths
 * lie in its call records): for the tool of contexts, what has to be done for paths.
 *
 * Paths are numbered as paths/choose.h does it, with smaller arrays, since every record has one;
 * where they are more than an array should have, a record has a tree of those that ran. A procedure
 * with a single path needs none if it calls nobody: it ran as often as it was entered. One that has
 * no place to keep its record in finds it again at the end of each path, by the thread's word: it
 * announces no calls, so that is as it was at its entry. Its paths end wherever ways meet.
 *
 * Metrics are those of paths; what a context took is their sum.
 */
#ifndef CULPRIT_CONTEXT_PATH_WORDS_H
#define CULPRIT_CONTEXT_PATH_WORDS_H

#include "context/map.h"
#include "context/survey.h"
#include "paths/code.h"

struct measures;

struct path_words_options {
	const struct guide *guide;
	bool atomic, full;
	const struct measures *measures;
	const char *finds; /* statements that find a record (paths/code.h) */
};

struct path_words {
	struct choosing choosing;
	struct paths_code code;
	struct paths_map_writer writer;
	uint64_t words; /* of all procedures, one record each */
	uint64_t keys;  /* of those in trees */
	bool *measured; /* by function */
	uint64_t unmeasured;
	struct handover handover;
};

void path_words_init(
	struct path_words *w, struct edit *edit, const struct path_words_options *options);
/* The snippets are in use until the edit is written. */
void path_words_deinit(struct path_words *w);

/* Which functions need their record, for they have several paths or are measured; to be freed. */
bool *path_words_recorded(struct path_words *w);
/* After the survey: who has places for readings, and who passes them on to whom. */
void path_words_measure(struct path_words *w, const struct survey *s);
/* Of one function after the other: how its paths are counted. p->paths becomes how many words a
 * record has for them, right before it. */
void path_words_choose(
	struct path_words *w, const struct survey_function *f, struct context_procedure *p);
/* Then, behind what is inserted for contexts: has it count them. `finding` are the arguments that
 * find its record. */
void path_words_insert(struct path_words *w, const struct survey_function *f,
	const struct context_procedure *p, const uint64_t *finding);

/* ---- maps ---- */

/* A map of contexts, with what the words mean; the writer is done with. */
void path_words_put(struct path_words *w, const struct context_map *m, struct buf *out);

struct path_words_map {
	struct context_map context; /* with words of procedures */
	const void *paths;          /* a map of paths/map.h, in the bytes that were read; */
	size_t size;                /* 0: paths were not counted */
};
/* Of either kind. -EBADMSG; deinitialise `context`. */
int path_words_read(struct path_words_map *m, const void *p, size_t n);
/* The path of the original, in the bytes of a map that can be read. */
const char *path_words_original(const void *p, size_t n);

#endif
