/*
 * The small fixture in a folder of its own, and what is made of it: who fills in a field lets the
 * tear-down free it.
 */
#ifndef CULPRIT_TESTS_ANALYZE_SCENE_H
#define CULPRIT_TESTS_ANALYZE_SCENE_H

#include "analyze/edge_tally.h"
#include "analyze/evidence.h"
#include "analyze/tally.h"
#include "base/err.h"
#include "base/mem.h"
#include "fixtures/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	char dir[32], path[64]; /* of the database */
	struct store *s;
	struct selection *sel;
	struct selected_image *demo;
	struct tally *t;
	struct edge_tally *edges;
	struct evidence *ev;
	struct err e;
};

static inline int scene_set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);

	strcpy(sc->dir, "/tmp/scene.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	snprintf(sc->path, sizeof sc->path, "%s/db", sc->dir);
	if (fixture_small(sc->path, &sc->e))
		fail_msg("%s", sc->e.text);
	*state = sc;
	return 0;
}

static inline int scene_tear_down(void **state)
{
	struct scene *sc = *state;

	tally_destroy(sc->t);
	edge_tally_destroy(sc->edges);
	evidence_destroy(sc->ev);
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

#endif
