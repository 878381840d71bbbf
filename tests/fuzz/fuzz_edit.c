/* Edits the input as a program, with code on every edge, and reads what comes out of it again. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void insert(struct edit *e, struct edit_function *f, const struct snippet *s)
{
	uint64_t counter = edit_data(e, 8, 8);

	edit_at_entry(e, f, s, &counter);
	for (uint32_t i = 0; i < f->flow->graph.edges; i++)
		if (edit_edge_carries(f, i) && edit_edge_group(f, i) == i)
			edit_on_edge(e, f, i, s, &counter);
	for (uint32_t i = 0; i < f->flow->ninsns; i += 3)
		edit_before(e, f, i, s, &counter);
}

static void reshape(struct edit *e, struct edit_function *f, const struct snippet *s)
{
	const char *why;

	edit_pad_frame(e, f, 48, &why);
	struct edit_function *twin = edit_duplicate(e, f, &why);
	if (twin)
		insert(e, twin, s);
}

/* What was written is a file that is known as edited. */
static void check(const char *path, const struct edit_options *options)
{
	struct edit *again;
	struct err err = {0};

	if (edit_open(path, options, &again, &err) == 0)
		abort();
}

static void edit_input(int fd, const struct snippet *s, bool strict)
{
	const struct edit_options options = {.strict = strict, .debug = true};
	char from[64], to[64];
	struct edit_function **f;
	struct edit *e;

	snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
	snprintf(to, sizeof to, "/dev/shm/culprit-fuzz-edit-%d", (int)getpid());
	if (edit_open(from, &options, &e, NULL) < 0)
		return;
	size_t count = edit_functions(e, &f);
	for (size_t i = 0; i < count; i++)
		if (!f[i]->refused && s) {
			insert(e, f[i], s);
			reshape(e, f[i], s);
		}
	if (edit_write(e, to, NULL) == 0)
		check(to, &options);
	edit_destroy(e);
	unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct snippet *counter;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (!counter && snippet_create("[a0] += 1", &counter, NULL) < 0)
		abort();
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	edit_input(fd, NULL, true);
	edit_input(fd, counter, false);
	close(fd);
	return 0;
}
