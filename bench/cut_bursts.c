/*
 * Bursts that are cut out of a whole trace: what sampling could find at best, with as many bursts
 * of as many references, whoever is traced and however (beside stream_overlaps and figures.sh 7).
 *
 *   cut_bursts WHOLE IMAGE BURSTS LENGTH SEED OUT
 *
 * Reads the database WHOLE, of a run of the program IMAGE with record --bursts=all, and writes the
 * database OUT with so many bursts of so many references, each at a random place of an equal part.
 */
#include "analyze/streams.h"
#include "base/err.h"
#include "base/mem.h"
#include "edit/results.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

struct cutting {
	uint64_t every, length, at, begins, part, seed;
	VEC(struct trace_reference) burst;
	VEC(struct trace_site) sites;
	struct trace_writer writer;
	uint32_t process;
};

static uint64_t draw(struct cutting *c)
{
	c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
	return c->seed >> 33;
}

static void choose_next(struct cutting *c)
{
	uint64_t room = c->every > c->length ? c->every - c->length : 1;

	c->begins = c->part++ * c->every + draw(c) % room;
}

static void end_burst(struct cutting *c)
{
	trace_writer_put(&c->writer,
		&(struct trace_burst){c->process, c->process, c->at, c->burst.p, c->burst.n});
	c->burst.n = 0;
	choose_next(c);
}

static int count_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	(void)sites, (void)part;
	*(uint64_t *)arg += b->n;
	return 0;
}

/* The whole trace is one part, or its sites would be those of another. */
static int cut_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct cutting *c = arg;

	if (part)
		return 0;
	c->process = b->process;
	for (size_t i = 0; i < b->n; i++, c->at++) {
		if (c->at < c->begins)
			continue;
		for (size_t k = c->sites.n; k <= b->references[i].site; k++)
			*vec_add(&c->sites) = sites[k];
		*vec_add(&c->burst) = b->references[i];
		if (c->burst.n == c->length)
			end_burst(c);
	}
	if (c->burst.n)
		end_burst(c);
	return 0;
}

static void keep(struct cutting *c, const char *image, const char *path)
{
	struct results results = {.t0 = 1, .t1 = 2, .command = "cut"};
	struct result *r = vec_add(&results.list);
	struct err e = {0};

	*r = (struct result){.path = image, .event = "bursts", .type = &blob_trace};
	trace_writer_end(&c->writer, c->sites.p, (uint32_t)c->sites.n, 0, &r->packed);
	if (results_store(path, &results, &e))
		errx(1, "%s", e.text);
	results_deinit(&results);
}

int main(int argc, char **argv)
{
	struct cutting c = {0};
	struct selection *sel;
	struct store *store;
	struct err e = {0};
	uint64_t n = 0, lost;

	if (argc != 7)
		errx(2, "usage: cut_bursts WHOLE IMAGE BURSTS LENGTH SEED OUT");
	c.length = strtoull(argv[4], NULL, 0);
	c.seed = strtoull(argv[5], NULL, 0);
	if (store_open(argv[1], STORE_READ, &store, &e) < 0 ||
		selection_create(store, &(struct selection_options){0}, &sel, &e) < 0 ||
		streams_each_burst(sel, count_burst, &n, &lost, &e))
		errx(1, "%s: %s", argv[1], e.text);
	c.every = n / strtoull(argv[3], NULL, 0);
	draw(&c);
	choose_next(&c);
	if (streams_each_burst(sel, cut_burst, &c, &lost, &e))
		errx(1, "%s: %s", argv[1], e.text);
	keep(&c, argv[2], argv[6]);
	vec_deinit(&c.burst);
	vec_deinit(&c.sites);
	return 0;
}
