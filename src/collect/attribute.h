/*
 * From counted samples to profiles: finds process, mapping, image and offset of each sample, sums
 * them up by (event, image, process name[, pid], offset), and writes what has come together to the
 * store.
 */
#ifndef CULPRIT_COLLECT_ATTRIBUTE_H
#define CULPRIT_COLLECT_ATTRIBUTE_H

#include "collect/contexts.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attribution;
struct driver_pair;
struct driver_stack;
struct err;
struct excursion_edge;
struct excursion_stay;
struct only_result;
struct plugin;
struct record;
struct recorded;
struct sample;
struct scout_window;
struct shadow_burst;
struct shadow_watch;
struct store;
struct store_account;
struct upcall_tuple;
struct walk_start;

struct attribution_options {
	size_t nevents;
	bool per_process;             /* profiles by pid too, not only by name */
	bool kernel;                  /* read kernel symbols */
	enum contexts_how contexts;   /* samples tell the height of the stack */
	const struct plugin *plugins; /* that look at bursts with values */
	size_t nplugins;
	const char *const *only; /* keep bursts of these names only (only.h); none: of all */
	size_t nonly;
	struct recorded *recorded; /* NULL: of this machine, now; stays the caller's */
	int64_t clock_offset;      /* of records, with `recorded`: what CLOCK_REALTIME has more */
};

int attribution_create(
	const struct attribution_options *o, struct attribution **out, struct err *e);
void attribution_destroy(struct attribution *a);

/* What runs already: all processes, or those given. */
void attribution_scan(struct attribution *a, const pid_t *pids, size_t n);

void attribution_record(struct attribution *a, const struct record *r);
/* What would tell more of the sample's call path (contexts.h); `ask` is for who wants contexts. */
enum context_wish attribution_sample(struct attribution *a, const struct sample *s, uint64_t *ask);

/* False when nothing that is wanted can ever come from where this burst was. */
bool attribution_burst(struct attribution *a, const struct shadow_burst *b, const uint64_t *words);

/* True and the words to be watched in a burst's thread when that has changed (progress.h). */
bool attribution_watch(
	struct attribution *a, const struct shadow_burst *b, struct shadow_watch *out);

void attribution_pair(struct attribution *a, const struct driver_pair *p);
void attribution_excursion(struct attribution *a, const struct scout_window *w,
	const struct excursion_edge *edges, const struct excursion_stay *stays);
/* As contexts_steps. */
size_t attribution_steps(const struct attribution *a, const struct stack_step **out);
/* As contexts_stack. */
uint64_t attribution_stack(
	struct attribution *a, const struct driver_stack *s, const uint8_t *bytes);

/*
 * The call path of a sample that is counted already (its `where` is WHERE_COPIED), as it was
 * recorded: addresses of the kernel, then of the program, innermost first. With `stack` those of
 * the program are found by it.
 */
struct attribution_path {
	const uint64_t *pcs;
	size_t n;
	const struct walk_start *stack;
};
void attribution_path(
	struct attribution *a, const struct sample *s, const struct attribution_path *path);

/*
 * Branches that the processor remembered at a sample, the latest first. If that is all that were
 * taken, what ran from one to the next is known as well (straight.h).
 */
struct attribution_branch {
	uint64_t from, to;
};
void attribution_branches(struct attribution *a, const struct sample *s,
	const struct attribution_branch *list, size_t n, bool all);

/* A value or an edge that was found inside the program. */
void attribution_tuple(struct attribution *a, const struct upcall_tuple *t);

/* After each drain: `time` is CLOCK_MONOTONIC ns before which everything has been delivered. */
void attribution_drained(struct attribution *a, uint64_t time);

/* Whether kernel symbols are hidden (kptr_restrict). */
bool attribution_kernel_hidden(const struct attribution *a);

/*
 * Writes profiles, totals, new procedures and their code of [t0, t1) (microseconds) inside the
 * caller's transaction. `events` holds the store's id of each event. After 0 the caller commits and
 * calls attribution_flushed, which forgets what was written; after a failure nothing is forgotten.
 */
int attribution_flush(struct attribution *a, struct store *s, int64_t epoch, const int64_t *events,
	int64_t t0, int64_t t1, struct err *e);
void attribution_flushed(struct attribution *a);
/* No more samples come: the next flush is the last one. */
void attribution_finish(struct attribution *a);

/* Samples placed since the last flush. */
void attribution_counts(
	const struct attribution *a, size_t event, uint64_t *attributed, uint64_t *unknown);

/*
 * Samples since the last flush that were given up because flushes failed for so long that memory
 * ran out: they belong to those that are lost.
 */
uint64_t attribution_refused(const struct attribution *a, size_t event);

/* Bursts since the beginning; those that did not come out as in the kernel when they were run
 * again. */
void attribution_bursts(const struct attribution *a, uint64_t *bursts, uint64_t *wrong);

/* What came of the nth name; false when none were given. */
bool attribution_only(const struct attribution *a, size_t n, struct only_result *out);

/* Pairs since the beginning: that came, and that were written. */
void attribution_anchors(const struct attribution *a, uint64_t *seen, uint64_t *kept);

/* What is known of call paths; false when nobody asked for them. */
bool attribution_contexts(const struct attribution *a, struct contexts_statistics *out);
/* Takes over what earlier collections have learned of them. */
int attribution_load(struct attribution *a, struct store *s, struct err *e);

/* Images whose files are not here, though they have samples since the last flush. */
typedef void attribution_absent_fn(void *arg, const char *path, const struct image_id *id);
void attribution_absent(const struct attribution *a, attribution_absent_fn *fn, void *arg);

/* Whether so much has come together that it should be written before it is due. */
bool attribution_full(const struct attribution *a);

size_t attribution_memory(const struct attribution *a);

#endif
