/*
 * Imports the input as a recording of perf, file or stream: nothing but what is in it comes out, a
 * sound database is left, and what is refused is refused in words.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "import/import.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void no_fault(void *arg, const char *text)
{
	(void)arg;
	fprintf(stderr, "%s\n", text);
	abort();
}

static void remove_files(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char name[80];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[64], database[64];
	struct import_options o = {.path = path};
	struct import_result result;
	struct store *s;
	struct err e = {0};
	int fd = memfd_create("perf.data", MFD_CLOEXEC), r;

	require(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	snprintf(database, sizeof database, "/dev/shm/culprit-fuzz.%d.db", (int)getpid());
	remove_files(database);
	require(store_open(database, STORE_WRITE, &s, &e) == 0);
	r = import_perf(s, &o, &result, &e);
	require(r == 0 || *e.text);
	require(r < 0 || result.unknown <= result.samples);
	require(store_check(s, no_fault, NULL, &e) == 0);
	if (r == 0)
		import_result_deinit(&result);
	store_close(s);
	remove_files(database);
	close(fd);
	return 0;
}
