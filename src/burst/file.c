#include "burst/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "rt/burst.h"
#include "store/traces.h"

int burst_file_create(
	const char *path, const struct burst_rates *rates, uint64_t bytes, struct err *e)
{
	struct burst_file page = {.magic = BURST_MAGIC,
		.check = rates->check,
		.instr = rates->instr,
		.most = bytes / BURST_CHUNK + 1};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = 0;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	if (ftruncate(fd, BURST_PAGE) < 0 || pwrite(fd, &page, sizeof page, 0) < 0)
		rc = err_errno(e, -errno, "%s", path);
	close(fd);
	return rc;
}

/* ---- reading ---- */

struct place {
	uint64_t number; /* in bursts; the key */
	uint32_t site;   /* in the profile */
};

/* A thread's bursts, as its chunks have them: a list of pieces in the file. */
struct piece {
	uint32_t process, thread;
	const struct burst_head *head;
};

struct reading {
	const struct burst_map *maps;
	size_t nmaps;
	struct hmap places;
	VEC(struct trace_site) sites;
	VEC(struct piece) pieces;
	VEC(struct trace_reference) references;
	struct burst_sum *sum;
};

/* Of a file that was cut off, the last chunk may be shorter. */
static void take_chunk(struct reading *r, const uint8_t *at, uint64_t size)
{
	const struct burst_chunk *chunk = (const struct burst_chunk *)at;
	const uint8_t *p = at + sizeof *chunk;
	uint64_t left;

	if (size < sizeof *chunk)
		return;
	left = chunk->used < size - sizeof *chunk ? chunk->used : size - sizeof *chunk;

	while (left >= sizeof(struct burst_head)) {
		const struct burst_head *head = (const struct burst_head *)p;
		uint64_t n = sizeof *head + head->records * sizeof(struct burst_record);

		if (n > left)
			return;
		*vec_add(&r->pieces) = (struct piece){chunk->process, chunk->thread, head};
		p += n;
		left -= n;
	}
}

/* Chunks of one thread come in the order in which it got them. */
static int by_thread(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->head < y->head ? -1 : x->head > y->head;
}

static const struct burst_map *map_of(const struct reading *r, uint64_t number)
{
	for (size_t i = 0; i < r->nmaps; i++)
		if (number - r->maps[i].first < r->maps[i].sites.n)
			return &r->maps[i];
	return NULL;
}

/* UINT32_MAX: nobody knows it. */
static uint32_t site_of(struct reading *r, uint64_t number)
{
	const struct place *known = hmap_get(&r->places, &number);
	const struct burst_map *map;
	const struct burst_site *s;

	if (known)
		return known->site;
	map = map_of(r, number);
	if (!map)
		return UINT32_MAX;
	s = &map->sites.p[number - map->first];
	*(struct place *)hmap_put(&r->places, &number, NULL) =
		(struct place){number, (uint32_t)r->sites.n};
	*vec_add(&r->sites) =
		(struct trace_site){burst_map_key(map), s->procedure, s->at, s->kind, s->size};
	return (uint32_t)r->sites.n - 1;
}

static void find_sites(struct reading *r)
{
	vec_each (p, &r->pieces) {
		const struct burst_record *list = (const struct burst_record *)(p->head + 1);

		for (uint32_t i = 0; i < p->head->records; i++)
			if (site_of(r, list[i].site) == UINT32_MAX)
				r->sum->odd++;
	}
}

static void add_references(struct reading *r, const struct burst_head *head)
{
	const struct burst_record *list = (const struct burst_record *)(head + 1);

	for (uint32_t i = 0; i < head->records; i++) {
		uint32_t site = site_of(r, list[i].site);

		if (site != UINT32_MAX)
			*vec_add(&r->references) = (struct trace_reference){site, list[i].address};
	}
}

static void put_burst(struct reading *r, const struct piece *p, struct trace_writer *w)
{
	trace_writer_put(w, &(struct trace_burst){p->process, p->thread, p->head->time,
				    r->references.p, r->references.n});
	r->sum->references += r->references.n;
	r->references.n = 0;
}

/* What goes on and has no end is one, too: the program ended, or was killed. */
static bool is_last(const struct reading *r, size_t i)
{
	const struct piece *p = &r->pieces.p[i];

	return !(p->head->flags & BURST_GOES_ON) || i + 1 == r->pieces.n ||
	       p[1].process != p->process || p[1].thread != p->thread;
}

static void write_bursts(struct reading *r, struct buf *packed)
{
	struct trace_writer w;
	uint64_t n = 0;

	for (size_t i = 0; i < r->pieces.n; i++)
		n += is_last(r, i);
	r->sum->bursts = n;
	trace_writer_init(&w, r->sites.p, (uint32_t)r->sites.n, r->sum->lost, n, packed);
	for (size_t i = 0; i < r->pieces.n; i++) {
		add_references(r, r->pieces.p[i].head);
		if (is_last(r, i))
			put_burst(r, &r->pieces.p[i], &w);
	}
	trace_writer_deinit(&w);
}

int burst_file_parse(const void *p, size_t size, const struct burst_map *maps, size_t n,
	struct buf *packed, struct burst_sum *sum)
{
	const struct burst_file *page = p;
	struct reading r = {.maps = maps, .nmaps = n, .sum = sum};

	*sum = (struct burst_sum){0};
	if (size < BURST_PAGE || page->magic != BURST_MAGIC)
		return -EBADMSG;
	sum->lost = page->lost;
	hmap_init(&r.places, sizeof(struct place), sizeof(uint64_t));
	for (size_t at = BURST_PAGE; at < size; at += BURST_CHUNK)
		take_chunk(&r, (const uint8_t *)p + at,
			size - at < BURST_CHUNK ? size - at : BURST_CHUNK);
	vec_sort(&r.pieces, by_thread);
	find_sites(&r);
	write_bursts(&r, packed);
	hmap_deinit(&r.places);
	vec_deinit(&r.sites);
	vec_deinit(&r.pieces);
	vec_deinit(&r.references);
	return 0;
}

int burst_file_read(const char *path, const struct burst_map *maps, size_t n, struct buf *packed,
	struct burst_sum *sum, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -EBADMSG;
	struct stat st;
	void *p;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	if (!fstat(fd, &st) && st.st_size) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			rc = burst_file_parse(p, (size_t)st.st_size, maps, n, packed, sum);
			munmap(p, (size_t)st.st_size);
		}
	}
	close(fd);
	return rc ? err_set(e, rc, "%s: the file of bursts is damaged", path) : 0;
}
