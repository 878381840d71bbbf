/* A database with nothing but walks, or the like, of one image, and a selection of all of it. */
#ifndef CULPRIT_TESTS_ANALYZE_WALK_SCENE_H
#define CULPRIT_TESTS_ANALYZE_WALK_SCENE_H

#include "analyze/selection.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/walks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WALK_IMAGE "/bin/x"

struct walk_scene {
	char path[32];
	struct store *s;
	struct selection *sel;
	struct selected_image *image;
	struct err e;
};

#define WALK_MUST(call)                             \
	do {                                        \
		if (call)                           \
			fail_msg("%s", sc->e.text); \
	} while (0)

static inline void walk_scene_fill(
	struct walk_scene *sc, const struct blob_type *type, const struct buf *data)
{
	struct store_host host = {"h", "m", "c", "k", 1};
	struct store_event event = {.name = "cpu-clock", .unit = "ns", .period = 1e6};
	struct store_image image = {.kind = IMAGE_ELF, .path = WALK_IMAGE};
	struct store_process process = {.comm = "x", .cgroup = ""};
	struct store_profile p = {.t0 = 1, .t1 = 2, .type = type};
	int64_t id;

	WALK_MUST(store_host(sc->s, &host, &id, &sc->e));
	WALK_MUST(store_epoch_start(sc->s, id, 1, "", &p.epoch, &sc->e));
	event.epoch = process.epoch = p.epoch;
	WALK_MUST(store_event(sc->s, &event, &sc->e));
	p.event = event.id;
	WALK_MUST(store_image(sc->s, &image, &p.image, &sc->e));
	WALK_MUST(store_process(sc->s, &process, &p.process, &sc->e));
	p.data = data->p;
	p.size = data->n;
	WALK_MUST(store_profile_add(sc->s, &p, &sc->e));
}

static inline void walk_scene_open_with(
	struct walk_scene *sc, const struct blob_type *type, const struct buf *data)
{
	struct selection_options o = {0};

	*sc = (struct walk_scene){.path = "/tmp/walks.XXXXXX"};
	close(mkstemp(sc->path));
	unlink(sc->path);
	WALK_MUST(store_open(sc->path, STORE_WRITE, &sc->s, &sc->e));
	WALK_MUST(store_begin(sc->s, &sc->e));
	walk_scene_fill(sc, type, data);
	WALK_MUST(store_commit(sc->s, &sc->e));
	WALK_MUST(selection_create(sc->s, &o, &sc->sel, &sc->e));
	assert_int_equal(selection_images(sc->sel, &sc->image), 1);
}

/* The list is sorted. */
static inline void walk_scene_open(struct walk_scene *sc, struct walk *list, size_t n)
{
	struct buf data = {0};

	walks_pack(list, walks_settle(list, n), &data);
	walk_scene_open_with(sc, &blob_walk, &data);
	buf_deinit(&data);
}

static inline void walk_scene_close(struct walk_scene *sc)
{
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
}

#endif
