#include "burst/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "burst/path_sites.h"
#include "rt/burst.h"
#include "store/traces.h"

/* A point of which a record was seen. */
struct place {
	const struct burst_point *point;
	const struct burst_event *events;
	uint32_t image; /* number */
	uint32_t site;  /* in the profile: of its first event; paths have theirs each */
	bool touches;   /* its words are addresses */
};

/* The places of a map. */
struct image_places {
	const struct burst_map *map;
	uint32_t *place; /* by point: its number + 1; 0: none was seen */
};

/* The burst of a thread that is under way. */
struct pending {
	uint64_t who; /* process and thread; the key */
	uint64_t time;
	bool goes_on;
	VEC(struct trace_reference) events;
};

struct full {
	uint64_t order, number;
};

struct burst_reader {
	struct image_places *images;
	size_t nimages, last; /* the one that was asked for last */
	int fd;
	struct burst_file *file;   /* mapped, as programs have it */
	struct burst_chunk *chunk; /* a copy, which nobody changes */
	VEC(struct place) places;
	struct hmap pending;
	trace_sites sites;
	struct path_sites paths;
	VEC(struct full) full;
	struct trace_writer writer;
	struct burst_sum sum;
};

/* ---- records ---- */

static bool has_number(const struct image_places *i, uint64_t number)
{
	return number - i->map->first < i->map->points.n;
}

static struct trace_site site_of(
	const struct burst_map *map, const struct burst_point *p, const struct burst_event *e)
{
	return (struct trace_site){.image = burst_map_key(map),
		.procedure = p->procedure,
		.at = e->at,
		.kind = e->kind,
		.size = e->size};
}

static uint32_t add_place(struct burst_reader *r, size_t image, uint64_t number)
{
	const struct burst_map *map = r->images[image].map;
	const struct burst_point *p = &map->points.p[number - map->first];
	struct place place = {
		p, map->events.p + p->first, (uint32_t)image, (uint32_t)r->sites.n, true};

	for (uint32_t i = 0; i < p->n; i++) {
		place.touches = place.touches && trace_is_reference(place.events[i].kind);
		*vec_add(&r->sites) = site_of(map, p, &place.events[i]);
	}
	*vec_add(&r->places) = place;
	return (uint32_t)r->places.n;
}

/* NULL: nobody knows it. */
static const struct place *place_of(struct burst_reader *r, uint64_t number)
{
	size_t i = r->last;
	uint32_t *known;

	if (!has_number(&r->images[i], number)) {
		for (i = 0; i < r->nimages && !has_number(&r->images[i], number);)
			i++;
		if (i == r->nimages)
			return NULL;
		r->last = i;
	}
	known = &r->images[i].place[number - r->images[i].map->first];
	if (!*known)
		*known = add_place(r, i, number);
	return &r->places.p[*known - 1];
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

static uint32_t path_site(
	struct burst_reader *r, const struct place *p, uint32_t event, uint64_t number)
{
	struct path_site path = {p->point->procedure, number, p->image, 0};
	struct trace_site like = site_of(r->images[p->image].map, p->point, &p->events[event]);

	return path_sites_add(&r->paths, p->site + event, &path, &like, &r->sites);
}

static void add_events(
	struct burst_reader *r, const struct place *p, const uint64_t *words, struct pending *to)
{
	for (uint32_t i = 0; i < p->point->n; i++) {
		const struct burst_event *e = &p->events[i];
		uint64_t base = e->word == BURST_NO_WORD ? 0 : words[e->word];
		uint64_t value = base + (e->thread ? r->chunk->pointer : 0) + (uint64_t)e->by;

		*vec_add(&to->events) = (struct trace_reference){
			e->kind == TRACE_PATH ? path_site(r, p, i, value) : p->site + i, value};
	}
}

static void take_words(
	struct burst_reader *r, const uint64_t *words, uint32_t n, struct pending *to)
{
	for (uint32_t at = 0; at < n;) {
		const struct place *p = place_of(r, words[at]);

		if (!p || !is_whole(p, words + at, n - at)) {
			r->sum.odd++;
			at++;
			continue;
		}
		add_events(r, p, words + at + 1, to);
		at += 1u + p->point->words;
	}
}

/* ---- bursts ---- */

static void put_burst(struct burst_reader *r, struct pending *p)
{
	trace_writer_put(&r->writer, &(struct trace_burst){(uint32_t)(p->who >> 32),
					     (uint32_t)p->who, p->time, p->events.p, p->events.n});
	r->sum.bursts++;
	r->sum.events += p->events.n;
	p->events.n = 0;
	p->goes_on = false;
}

static void take_burst(struct burst_reader *r, const struct burst_head *head)
{
	uint64_t who = (uint64_t)r->chunk->process << 32 | r->chunk->thread;
	struct pending *p = hmap_put(&r->pending, &who, NULL);

	p->time = head->time;
	take_words(r, (const uint64_t *)(head + 1), head->words, p);
	p->goes_on = head->flags & BURST_GOES_ON;
	if (!p->goes_on)
		put_burst(r, p);
}

/* Nothing is in it, should whoever gets it next be killed at once. */
static void clear_chunk(const struct burst_reader *r, uint64_t number)
{
	static const uint64_t none;
	uint64_t at = BURST_PAGE + number * BURST_CHUNK + offsetof(struct burst_chunk, used);

	if (pwrite(r->fd, &none, sizeof none, (off_t)at) == (ssize_t)sizeof none) {
		__atomic_store_n(&r->file->state[number], BURST_EMPTY, __ATOMIC_RELEASE);
		__atomic_fetch_add(&r->file->empty, 1, __ATOMIC_RELEASE);
	}
}

/* What is in the copy; of a file that was cut off, there may be less than the chunk says. */
static void take_chunk(struct burst_reader *r, uint64_t size)
{
	const uint8_t *p = (const uint8_t *)(r->chunk + 1);
	uint64_t left;

	if (size < sizeof *r->chunk)
		return;
	left = size - sizeof *r->chunk;
	left = r->chunk->used < left ? r->chunk->used : left;
	while (left >= sizeof(struct burst_head)) {
		const struct burst_head *head = (const struct burst_head *)p;
		uint64_t n = sizeof *head + head->words * sizeof(uint64_t);

		if (n > left)
			return;
		take_burst(r, head);
		p += n;
		left -= n;
	}
}

/* ---- chunks ---- */

static uint64_t chunks_of(const struct burst_reader *r)
{
	uint64_t n = __atomic_load_n(&r->file->chunks, __ATOMIC_ACQUIRE);

	n = n < r->file->most ? n : r->file->most;
	return n < BURST_CHUNKS ? n : BURST_CHUNKS;
}

static void read_chunk(struct burst_reader *r, uint64_t number)
{
	ssize_t n = pread(r->fd, r->chunk, BURST_CHUNK, (off_t)(BURST_PAGE + number * BURST_CHUNK));

	if (n > 0)
		take_chunk(r, (uint64_t)n);
}

static int by_order(const void *a, const void *b)
{
	const struct full *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/*
 * Those in a state, in the order in which they were given out. One that was given out after the
 * look began is left for the next: the one before it may have become full behind our back.
 */
static void find_chunks(struct burst_reader *r, unsigned states)
{
	uint64_t given = __atomic_load_n(&r->file->given, __ATOMIC_SEQ_CST), n = chunks_of(r);

	r->full.n = 0;
	for (uint64_t i = 0; i < n; i++) {
		unsigned state = __atomic_load_n(&r->file->state[i], __ATOMIC_SEQ_CST);
		uint64_t order = r->file->order[i];

		if (states & 1u << (state & 7) && order < given)
			*vec_add(&r->full) = (struct full){order, i};
	}
	vec_sort(&r->full, by_order);
}

static void settle_paths(struct burst_reader *r)
{
	const struct burst_map **maps = xcalloc(r->nimages + 1, sizeof *maps);

	for (size_t i = 0; i < r->nimages; i++)
		maps[i] = r->images[i].map;
	path_sites_settle(&r->paths, maps, r->nimages, r->sites.p);
	free(maps);
}

void burst_reader_drain(struct burst_reader *r)
{
	find_chunks(r, 1u << BURST_FULL);
	vec_each (f, &r->full) {
		read_chunk(r, f->number);
		clear_chunk(r, f->number);
	}
}

/* What goes on and has no end is a burst, too: the program ended, or was killed. */
void burst_reader_end(struct burst_reader *r, struct buf *packed, struct burst_sum *sum)
{
	find_chunks(r, 1u << BURST_FULL | 1u << BURST_TAKEN);
	vec_each (f, &r->full)
		read_chunk(r, f->number);
	for (struct pending *p = NULL; (p = hmap_next(&r->pending, p));)
		if (p->goes_on)
			put_burst(r, p);
	r->sum.lost = r->file->lost;
	settle_paths(r);
	trace_writer_end(&r->writer, r->sites.p, (uint32_t)r->sites.n, r->sum.lost, packed);
	*sum = r->sum;
}

static int map_file(struct burst_reader *r)
{
	struct stat st;
	void *p;

	if (fstat(r->fd, &st) < 0)
		return -errno;
	if (st.st_size < BURST_PAGE)
		return -EBADMSG;
	p = mmap(NULL, BURST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->file = p;
	return r->file->magic == BURST_MAGIC ? 0 : -EBADMSG;
}

int burst_reader_create(const char *path, const struct burst_map *maps, size_t n,
	struct burst_reader **out, struct err *e)
{
	struct burst_reader *r = xcalloc(1, sizeof *r);
	int rc;

	r->images = xcalloc(n + 1, sizeof *r->images);
	r->nimages = n;
	for (size_t i = 0; i < n; i++)
		r->images[i] = (struct image_places){
			&maps[i], xcalloc(maps[i].points.n + 1, sizeof(uint32_t))};
	r->chunk = xmalloc(BURST_CHUNK);
	path_sites_init(&r->paths);
	hmap_init(&r->pending, sizeof(struct pending), sizeof(uint64_t));
	r->fd = open(path, O_RDWR | O_CLOEXEC);
	rc = r->fd < 0 ? -errno : map_file(r);
	if (!rc) {
		*out = r;
		return 0;
	}
	burst_reader_destroy(r);
	return rc == -EBADMSG ? err_set(e, rc, "%s: the file of bursts is damaged", path)
			      : err_errno(e, rc, "%s", path);
}

void burst_reader_destroy(struct burst_reader *r)
{
	if (!r)
		return;
	for (struct pending *p = NULL; (p = hmap_next(&r->pending, p));)
		vec_deinit(&p->events);
	if (r->file)
		munmap(r->file, BURST_PAGE);
	if (r->fd >= 0)
		close(r->fd);
	buf_deinit(&r->writer.body);
	vec_deinit(&r->writer.last);
	for (size_t i = 0; i < r->nimages; i++)
		free(r->images[i].place);
	free(r->images);
	vec_deinit(&r->places);
	hmap_deinit(&r->pending);
	vec_deinit(&r->sites);
	path_sites_deinit(&r->paths);
	vec_deinit(&r->full);
	free(r->chunk);
	free(r);
}
