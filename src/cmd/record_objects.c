/* Allocations of a command whose bursts are recorded: what addresses in bursts were. */
#include "base/beside.h"
#include "base/err.h"
#include "base/io.h"
#include "burst/map.h"
#include "burst/objects.h"
#include "cmd/record_edited.h"
#include "edit/linked.h"
#include "rt/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RETURNS_MOST ((size_t)1 << 30)

/* Sanitizers have allocators that want to be the first. */
static bool has_sanitizer(const char *program)
{
	static const char *const names[] = {"libasan.", "libtsan.", "libmsan.", "liblsan."};
	path_list libraries = {0};
	bool found = false;

	linked_libraries(program, &libraries, &(struct err){0});
	vec_each (l, &libraries)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			found |= strstr(*l, names[i]) != NULL;
	path_list_deinit(&libraries);
	return found;
}

static bool wanted(struct edited_run *r)
{
	return !r->choice->no_objects && !r->choice->counted &&
	       (!r->choice->rates || strcmp(r->choice->rates, "never"));
}

int objects_prepare(struct edited_run *r, struct err *e)
{
	char library[PATH_MAX];
	int rc;

	if (!wanted(r) || has_sanitizer(r->files.p[0].original))
		return 0;
	if (!beside_find("culprit-objects.so", library) || strpbrk(library, " :")) {
		cmd_note("culprit-objects.so is neither beside culprit nor in ../lib/culprit: "
			 "allocations are not written down");
		return 0;
	}
	r->log = xasprintf("%s/objects", r->folder);
	rc = burst_objects_create(r->log, OBJECTS_BYTES, e);
	return rc;
}

void objects_enter(struct edited_run *r)
{
	const char *others = getenv("LD_PRELOAD");
	_cleanup_free_ char *list = NULL;
	char library[PATH_MAX];

	if (!r->log || !beside_find("culprit-objects.so", library))
		return;
	list = xasprintf("%s%s%s", library, others && *others ? ":" : "", others ? others : "");
	setenv("LD_PRELOAD", list, 1);
	setenv(OBJECTS_ENVIRONMENT, r->log, 1);
}

static struct burst_image *make_images(struct edited_run *r, const struct burst_map *maps)
{
	struct burst_image *images = xcalloc(r->files.n + 1, sizeof *images);

	for (size_t i = 0; i < r->files.n; i++) {
		const struct edited_file *f = &r->files.p[i];
		struct buf bytes = {0};

		images[i] =
			(struct burst_image){.path = f->original, .key = burst_map_key(&maps[i])};
		if (f->edit.returns &&
			!io_read_file(AT_FDCWD, f->edit.returns, RETURNS_MOST, &bytes))
			returns_read(&images[i].returns, bytes.p, bytes.n);
		buf_deinit(&bytes);
	}
	return images;
}

/* Procedures that paths go through are kept with their names. */
static void keep_procedures(
	struct edited_run *r, const struct burst_image *images, const struct object_set *set)
{
	vec_each (f, &set->frames)
		for (size_t i = 0; i < r->files.n; i++)
			if (f->image == images[i].key)
				*vec_add(&r->results.list.p[i].procedures) = f->procedure;
}

int objects_read(struct edited_run *r, const struct burst_map *maps, struct err *e)
{
	struct burst_image *images;
	struct object_set set = {0};
	struct burst_objects_sum sum;
	struct buf packed = {0};
	int rc;

	if (!r->log)
		return 0;
	images = make_images(r, maps);
	rc = burst_objects_read(
		r->log, images, r->files.n, &r->results.list.p[0].packed, &set, &sum, e);
	if (!rc) {
		keep_procedures(r, images, &set);
		object_set_put(&set, &packed);
		*vec_add(&r->results.list) = (struct result){.path = r->files.p[0].original,
			.event = "bursts",
			.type = &blob_objects,
			.packed = packed};
	}
	if (!rc && !r->quiet)
		cmd_note("allocations: %" PRIu64 ", of which bursts touched %" PRIu64, sum.objects,
			sum.touched);
	if (!rc && sum.lost && !r->quiet)
		cmd_note("%" PRIu64 " allocations found no room", sum.lost);
	for (size_t i = 0; i < r->files.n; i++)
		returns_deinit(&images[i].returns);
	free(images);
	object_set_deinit(&set);
	return rc;
}
