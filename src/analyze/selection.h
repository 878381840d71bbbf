/*
 * What a report reads: the events, images and PC profiles of a database that a filter selects.
 *
 * Events of different epochs with one name are one event. Images are known from the start, their
 * procedures from the first use. Every sample is in exactly one profile (store/schema.c), so
 * profiles by process name and by process add up. Reading a database that is being written, the
 * caller opens a transaction first, so that all of this is of one moment.
 */
#ifndef CULPRIT_ANALYZE_SELECTION_H
#define CULPRIT_ANALYZE_SELECTION_H

#include "analyze/codemap.h"
#include "store/pack.h"
#include "store/store.h"

#include <stdint.h>

struct err;
struct selection;

struct selection_options {
	struct store_filter filter; /* `event` and `type` are not used */
	const char *first;          /* the event to put in front, may be NULL */
	const char *const *events;  /* names in the order wanted; none: all, as they were sampled */
	size_t nevents;
};

/* An event with the accounting of the epochs and times selected (other filters cannot split it). */
struct selected_event {
	const char *name;
	bool clock; /* counts ns */
	double period;
	struct store_account account;
	/* As in struct store_event, 0 unknown: of the epoch that outweighs those before it. */
	int32_t skid;
	double skid_share, cycles_per_ns;
};

struct selected_image {
	int64_t id;
	enum image_kind kind;
	struct image_id identity;
	const char *path;
	const struct segment *segments;
	size_t nsegments;
	/* After selection_load. */
	struct store_procedures procedures;
	struct code_map map;
	bool loaded;
	void *user; /* the caller's, for what belongs to the image */
};

/* -ENOENT when a named event is not in the database; the message names those that are. */
int selection_create(
	struct store *s, const struct selection_options *o, struct selection **out, struct err *e);
void selection_destroy(struct selection *sel);

struct store *selection_store(const struct selection *sel);
const struct store_filter *selection_filter(const struct selection *sel);
size_t selection_events(const struct selection *sel, const struct selected_event **out);
size_t selection_images(const struct selection *sel, struct selected_image **out); /* by id */
struct selected_image *selection_image(const struct selection *sel, int64_t id);   /* NULL: none */

/* Index of the store's event, or -1 when it is not selected. */
int selection_event(const struct selection *sel, int64_t id);

/* Reads the procedures of an image, once. */
int selection_load(struct selection *sel, struct selected_image *im, struct err *e);

/* Calls fn with each PC profile selected; a negative value from fn ends the walk with it. */
typedef int selection_fn(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e);
int selection_profiles(struct selection *sel, selection_fn *fn, void *arg, struct err *e);
/* The same for one image only. */
int selection_profiles_of(struct selection *sel, const struct selected_image *im, selection_fn *fn,
	void *arg, struct err *e);

/*
 * Calls fn with each profile of another type (edges, anchors) of one image, of selected events.
 * -EBADMSG from fn is put into words.
 */
typedef int selection_blob_fn(void *arg, const struct store_profile *p);
int selection_blobs_of(struct selection *sel, const struct selected_image *im,
	const struct blob_type *type, selection_blob_fn *fn, void *arg, struct err *e);

/*
 * How an image is called in labels: the base name of its path, or what stands for it.
 */
const char *selected_image_name(const struct selected_image *im);

#endif
