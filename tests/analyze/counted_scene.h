/* The fixture of what edited programs counted (fixtures/counted.h), opened for a test. */
#ifndef CULPRIT_TESTS_ANALYZE_COUNTED_SCENE_H
#define CULPRIT_TESTS_ANALYZE_COUNTED_SCENE_H

#include "analyze/selection.h"
#include "base/err.h"
#include "base/mem.h"
#include "fixtures/counted.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct counted_scene {
	char dir[32], path[64]; /* of the database */
	struct store *s;
	struct selection *sel;
	struct err e;
};

static inline void counted_select(struct counted_scene *sc, const char *image)
{
	if (store_open(sc->path, STORE_READ, &sc->s, &sc->e) ||
		selection_create(sc->s, &(struct selection_options){.filter = {.image = image}},
			&sc->sel, &sc->e))
		fail_msg("%s", sc->e.text);
}

static inline int counted_set_up(void **state)
{
	struct counted_scene *sc = xcalloc(1, sizeof *sc);

	strcpy(sc->dir, "/tmp/scene.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	snprintf(sc->path, sizeof sc->path, "%s/db", sc->dir);
	if (fixture_counted(sc->path, &sc->e))
		fail_msg("%s", sc->e.text);
	*state = sc;
	return 0;
}

static inline int counted_tear_down(void **state)
{
	struct counted_scene *sc = *state;

	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

#endif
