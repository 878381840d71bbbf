/* What a process gone wild may leave in the memory that it shares with the profiler. */
#include "base/err.h"
#include "values/upcall.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct upcall *u;
static struct upcall_shared *theirs;

static void begin(void)
{
	struct upcall_options o = {.library = "/proc/self/exe"};
	char *none[] = {NULL}, **list;
	struct err e;
	int fd;

	if (upcall_prepare(&o, &u, &e) < 0)
		abort();
	list = upcall_environment(u, none);
	fd = open(strchr(list[1], '=') + 1, O_RDWR);
	free(list);
	theirs = mmap(NULL, sizeof *theirs, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (theirs == MAP_FAILED)
		abort();
}

static void take(void *arg, const struct upcall_tuple *t)
{
	(*(size_t *)arg)++;
	if (t->kind > UPCALL_EDGE)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct upcall_ring *r;
	uint64_t ends[2];
	size_t n = 0;

	if (!u)
		begin();
	if (size < sizeof ends)
		return 0;
	memcpy(ends, data, sizeof ends);
	data += sizeof ends;
	size -= sizeof ends;
	r = &theirs->ring[0];
	theirs->owner[0] = 1;
	r->tail = ends[0];
	r->head = ends[0] + ends[1];
	for (size_t i = 0; i < size / sizeof *r->unit && i < UPCALL_UNITS; i++)
		memcpy(&r->unit[(ends[0] + i) % UPCALL_UNITS], data + i * sizeof *r->unit,
			sizeof *r->unit);
	if (upcall_read(u, take, &n) > n)
		abort();
	if (n > UPCALL_UNITS || r->tail != r->head)
		abort();
	return 0;
}
