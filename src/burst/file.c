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

int burst_file_create(const char *path, const struct burst_rates *rates, bool fixed, uint64_t bytes,
	struct err *e)
{
	struct burst_file page = {.magic = BURST_MAGIC,
		.rates = *rates,
		.changed = fixed,
		.most = bytes / BURST_CHUNK + 1};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = 0;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	if (ftruncate(fd, BURST_PAGE) < 0 || pwrite(fd, &page, sizeof page, 0) < 0)
		rc = err_errno(e, -errno, "%s", path);
	close(fd);
	return rc;
}

/* Programs have the page mapped: they see the rates, and then that they have changed. */
int burst_file_set(const char *path, const struct burst_rates *rates, struct err *e)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc = -EBADMSG;
	struct burst_file *page;
	struct stat st;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	page = fstat(fd, &st) || st.st_size < BURST_PAGE
		       ? MAP_FAILED
		       : mmap(NULL, BURST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED) {
		if (page->magic == BURST_MAGIC) {
			page->rates = *rates;
			__atomic_fetch_add(&page->changed, 1, __ATOMIC_RELEASE);
			rc = 0;
		}
		munmap(page, BURST_PAGE);
	}
	return rc ? err_set(e, rc, "%s: no file of bursts", path) : 0;
}

/* ---- reading ---- */

struct place {
	uint64_t number; /* in bursts; the key */
	const struct burst_point *point;
	uint32_t site; /* in the profile: of its first event */
	bool touches;  /* its words are addresses */
	const struct burst_event *events;
};

/* A thread's bursts, as its chunks have them: a list of pieces in the file. */
struct piece {
	uint32_t process, thread;
	uint64_t pointer;
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
		uint64_t n = sizeof *head + head->words * sizeof(uint64_t);

		if (n > left)
			return;
		*vec_add(&r->pieces) =
			(struct piece){chunk->process, chunk->thread, chunk->pointer, head};
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
		if (number - r->maps[i].first < r->maps[i].points.n)
			return &r->maps[i];
	return NULL;
}

/* NULL: nobody knows it. */
static const struct place *place_of(struct reading *r, uint64_t number)
{
	struct place *known = hmap_get(&r->places, &number);
	const struct burst_map *map;
	const struct burst_point *p;

	if (known)
		return known;
	map = map_of(r, number);
	if (!map)
		return NULL;
	p = &map->points.p[number - map->first];
	known = hmap_put(&r->places, &number, NULL);
	*known = (struct place){number, p, (uint32_t)r->sites.n, true, map->events.p + p->first};
	for (uint32_t i = 0; i < p->n; i++) {
		const struct burst_event *e = &known->events[i];

		known->touches = known->touches && trace_is_reference(e->kind);
		*vec_add(&r->sites) = (struct trace_site){
			burst_map_key(map), p->procedure, e->at, e->kind, e->size};
	}
	return known;
}

/* Of a record that a signal handler has written over, not all words are there. */
static bool is_whole(const struct place *p, const uint64_t *words, uint32_t left)
{
	if (left < 1u + p->point->words)
		return false;
	for (unsigned i = 1; p->touches && i <= p->point->words; i++)
		if (words[i] & BURST_NUMBER)
			return false;
	return true;
}

/* The next record of a piece that makes sense; *at is 0 at first. NULL at the end. */
static const struct place *next_record(
	struct reading *r, const struct piece *p, uint32_t *at, const uint64_t **words, bool count)
{
	const uint64_t *all = (const uint64_t *)(p->head + 1);

	while (*at < p->head->words) {
		const struct place *place = place_of(r, all[*at]);

		if (!place || !is_whole(place, all + *at, p->head->words - *at)) {
			r->sum->odd += count;
			++*at;
			continue;
		}
		*words = all + *at + 1;
		*at += 1u + place->point->words;
		return place;
	}
	return NULL;
}

static void find_sites(struct reading *r)
{
	const uint64_t *words;

	vec_each (p, &r->pieces)
		for (uint32_t at = 0; next_record(r, p, &at, &words, true);)
			;
}

static void add_events(struct reading *r, const struct piece *p)
{
	const struct place *place;
	const uint64_t *words;

	for (uint32_t at = 0; (place = next_record(r, p, &at, &words, false));)
		for (uint32_t i = 0; i < place->point->n; i++) {
			const struct burst_event *e = &place->events[i];
			uint64_t base = e->word == BURST_NO_WORD ? 0 : words[e->word];

			*vec_add(&r->references) = (struct trace_reference){place->site + i,
				base + (e->thread ? p->pointer : 0) + (uint64_t)e->by};
		}
}

static void put_burst(struct reading *r, const struct piece *p, struct trace_writer *w)
{
	trace_writer_put(w, &(struct trace_burst){p->process, p->thread, p->head->time,
				    r->references.p, r->references.n});
	r->sum->events += r->references.n;
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
		add_events(r, &r->pieces.p[i]);
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
