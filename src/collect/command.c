#include "collect/command.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "image/image.h"
#include "store/commands.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t command_hash(char *const *argv)
{
	_cleanup_free_ char *folder = getcwd(NULL, 0);
	struct buf all = {0};
	struct stat in;
	uint64_t hash;

	for (; *argv; argv++)
		buf_put(&all, *argv, strlen(*argv) + 1);
	buf_put(&all, "", 1);
	if (folder)
		buf_put(&all, folder, strlen(folder) + 1);
	if (!fstat(STDIN_FILENO, &in) && S_ISREG(in.st_mode)) {
		buf_u64(&all, in.st_dev);
		buf_u64(&all, in.st_ino);
	}
	hash = hash_bytes(all.p, all.n);
	buf_deinit(&all);
	return hash ? hash : 1;
}

static int put_image(struct store *s, const char *program, int64_t *id, struct err *e)
{
	struct store_image row = {.kind = IMAGE_ELF, .path = program};
	struct image *im;
	int rc;

	*id = 0;
	if (image_open_path(program, &im, NULL))
		return 0;
	row.identity = *image_id(im);
	row.nsegments = image_segments(im, &row.segments);
	rc = store_image(s, &row, id, e);
	image_destroy(im);
	return rc;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int command_keep(struct store *s, const struct command_run *run, struct err *e)
{
	const struct command command = {.hash = run->command, .runs = 1};
	struct store_profile row = {.epoch = run->epoch,
		.event = run->event,
		.t0 = run->t0,
		.t1 = run->t1,
		.type = &blob_command};
	struct buf packed = {0};
	int rc = put_image(s, run->program, &row.image, e);

	if (rc || !row.image)
		return rc;
	rc = store_process(s,
		&(struct store_process){
			.epoch = run->epoch, .comm = name_of(run->program), .cgroup = ""},
		&row.process, e);
	commands_pack(&command, 1, &packed);
	row.data = packed.p;
	row.size = packed.n;
	if (!rc)
		rc = store_profile_add(s, &row, e);
	buf_deinit(&packed);
	return rc;
}
