#include "objects/log.h"

#include "rt/rt.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many bursts the thread has begun (rt/burst.h). */
#define BURSTS RT_WORD(53)

/* The record that an address has, and at which burst it was written. */
struct known {
	uint64_t address;
	uint32_t offset, bursts; /* of the record, in words from the first chunk */
};
#define KNOWN (1 << 16)

extern void *__libc_stack_end;

static struct {
	struct objects_file *file; /* the whole, as far as it may grow; NULL: nobody wants it */
	uint32_t process;
	uint32_t generation; /* of processes: forks */
	struct objects_chunk *notes;
	unsigned long long adds; /* images there were when they were noted */
	char path[4096];
	char lock;
} all;

static __thread struct {
	bool busy;
	uint32_t generation;
	struct objects_chunk *chunk;
	struct known *known;
} mine __attribute__((tls_model("initial-exec")));

static uint64_t clock_now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static uint32_t bursts_now(void)
{
	uint64_t self;

	__asm__("mov %%fs:0x10, %0" : "=r"(self));
	return (uint32_t) * (uint64_t *)(self + BURSTS);
}

/* By the kernel itself: this library has an mmap of its own. */
static void *map(void *at, uint64_t bytes, int flags, int fd)
{
	long p = syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == -1 ? NULL : (void *)p;
}

/* ---- chunks ---- */

static char *chunks(void)
{
	return (char *)all.file + OBJECTS_PAGE;
}

/* The file is mapped as large as it may grow; a chunk has its bytes before anybody touches it. */
static struct objects_chunk *take_chunk(uint32_t kind)
{
	uint64_t number = __atomic_fetch_add(&all.file->chunks, 1, __ATOMIC_RELAXED);
	struct objects_chunk *c = (struct objects_chunk *)(chunks() + number * OBJECTS_CHUNK);
	int fd, rc;

	if (number >= all.file->most)
		return NULL;
	fd = open(all.path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	rc = (int)syscall(
		SYS_fallocate, fd, 0, OBJECTS_PAGE + number * OBJECTS_CHUNK, OBJECTS_CHUNK);
	close(fd);
	if (rc)
		return NULL;
	*c = (struct objects_chunk){
		.process = all.process, .thread = (uint32_t)syscall(SYS_gettid), .kind = kind};
	c->stack = c->thread == c->process ? (uint64_t)__libc_stack_end : (uint64_t)pthread_self();
	return c;
}

/* ---- notes ---- */

static void lock(void)
{
	while (__atomic_test_and_set(&all.lock, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
}

static void unlock(void)
{
	__atomic_clear(&all.lock, __ATOMIC_RELEASE);
}

int log_note(uint32_t kind, const uint64_t *words, uint32_t n)
{
	uint64_t bytes = sizeof(struct objects_note) + n * sizeof *words;
	char *to;

	lock();
	if (!all.notes || all.notes->used + bytes > OBJECTS_CHUNK_ROOM)
		all.notes = take_chunk(OBJECTS_NOTES);
	if (all.notes) {
		to = (char *)(all.notes + 1) + all.notes->used;
		*(struct objects_note *)to = (struct objects_note){kind, n};
		memcpy(to + sizeof(struct objects_note), words, n * sizeof *words);
		__atomic_store_n(&all.notes->used, all.notes->used + bytes, __ATOMIC_RELEASE);
	}
	unlock();
	return all.notes != NULL;
}

#define PATH_WORDS 64

static int note_image(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t words[3 + PATH_WORDS] = {info->dlpi_addr, UINT64_MAX, 0};
	char *path = (char *)(words + 3);
	ssize_t n;

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		words[1] = start < words[1] ? start : words[1];
		words[2] = start + p->p_memsz > words[2] ? start + p->p_memsz : words[2];
	}
	if (info->dlpi_name && *info->dlpi_name)
		strncpy(path, info->dlpi_name, PATH_WORDS * 8 - 1);
	else if ((n = readlink("/proc/self/exe", path, PATH_WORDS * 8 - 1)) > 0)
		path[n] = 0;
	log_note(OBJECTS_IMAGE, words, 3 + (uint32_t)(strlen(path) / 8 + 1));
	return 0;
}

static int count_images(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

void log_images(void)
{
	unsigned long long adds = 0;

	dl_iterate_phdr(count_images, &adds);
	if (adds == all.adds)
		return;
	all.adds = adds;
	dl_iterate_phdr(note_image, NULL);
}

/* ---- the process ---- */

static void in_child(void)
{
	all.process = (uint32_t)getpid();
	all.generation++;
	all.notes = NULL;
	all.adds = 0;
	all.lock = 0;
	sites_forget();
}

void log_start(void)
{
	const char *path = getenv(OBJECTS_ENVIRONMENT);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct objects_file *file;

	if (fd < 0 || strlen(path) >= sizeof all.path)
		return;
	strcpy(all.path, path);
	file = map(NULL, OBJECTS_PAGE, MAP_SHARED, fd);
	if (file && file->magic == OBJECTS_MAGIC)
		all.file = map(NULL, OBJECTS_PAGE + file->most * OBJECTS_CHUNK,
			MAP_SHARED | MAP_NORESERVE, fd);
	if (file)
		munmap(file, OBJECTS_PAGE);
	close(fd);
	if (!all.file)
		return;
	all.process = (uint32_t)getpid();
	all.generation = 1;
	pthread_atfork(NULL, NULL, in_child);
	mine.busy = true;
	log_images();
	mine.busy = false;
}

/* ---- objects ---- */

static bool begin_thread(void)
{
	mine.generation = all.generation;
	mine.chunk = NULL;
	if (!mine.known)
		mine.known = map(NULL, KNOWN * sizeof *mine.known,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	else
		memset(mine.known, 0, KNOWN * sizeof *mine.known);
	return mine.known;
}

static struct objects_record *new_record(void)
{
	struct objects_record *r;

	if (!mine.chunk || mine.chunk->used + sizeof *r > OBJECTS_CHUNK_ROOM)
		mine.chunk = take_chunk(OBJECTS_OBJECTS);
	if (!mine.chunk) {
		__atomic_fetch_add(&all.file->lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	r = (struct objects_record *)((char *)(mine.chunk + 1) + mine.chunk->used);
	mine.chunk->used += sizeof *r;
	return r;
}

static uint32_t offset_of(const struct objects_record *r)
{
	return (uint32_t)(((const char *)r - chunks()) / 8);
}

/* Where an object at an address is written down. */
static struct objects_record *record_of(uint64_t address)
{
	uint32_t bursts = bursts_now();
	struct known *k = &mine.known[(address >> 4 ^ address >> 20) & (KNOWN - 1)];
	struct objects_record *r;

	if (k->address == address && k->bursts == bursts)
		return (struct objects_record *)(chunks() + (uint64_t)k->offset * 8);
	r = new_record();
	if (r)
		*k = (struct known){address, offset_of(r), bursts};
	return r;
}

void log_object(uint64_t address, uint64_t size, const void *frame)
{
	struct objects_record *r;
	uint32_t path, ordinal;

	if (!all.file || mine.busy)
		return;
	mine.busy = true;
	if (mine.generation == all.generation || begin_thread()) {
		path = sites_find(frame, &ordinal);
		r = record_of(address);
		if (r)
			*r = (struct objects_record){address, size, clock_now(), path, ordinal};
	}
	mine.busy = false;
}
