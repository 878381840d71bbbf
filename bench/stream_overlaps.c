/*
 * How far the hot data streams of sampled traces agree with those of a whole one (Hirzel and
 * Chilimbi, section 5.2: exact overlap).
 *
 *   stream_overlaps LEAST,MOST HEAT WHOLE SAMPLED...
 *
 * Lengths, the share of all references that a hot stream has at least, and databases. Prints a line
 * of NAME=NUMBER for each, the whole one first: references, bursts, streams, coverage (share of the
 * references in hot streams) and overlap.
 */
#include "analyze/streams.h"
#include "analyze/streams_overlap.h"
#include "base/err.h"

#include <err.h>
#include <stdio.h>

static struct streams *streams_of(const char *path, const struct streams_options *o)
{
	struct store *store;
	struct selection *sel;
	struct streams *s;
	struct err e = {0};

	if (store_open(path, STORE_READ, &store, &e) < 0 ||
		selection_create(store, &(struct selection_options){0}, &sel, &e) < 0 ||
		streams_create(sel, o, &s, &e) < 0)
		errx(1, "%s: %s", path, e.text);
	return s;
}

int main(int argc, char **argv)
{
	struct streams_options o = {.coverage = 0.9};
	struct streams *whole = NULL;

	if (argc < 4 || sscanf(argv[1], "%u,%u", &o.shortest, &o.longest) != 2 ||
		sscanf(argv[2], "%lf", &o.least) != 1)
		errx(2, "usage: stream_overlaps LEAST,MOST HEAT WHOLE SAMPLED...");
	for (int i = 3; i < argc; i++) {
		struct streams *s = streams_of(argv[i], &o);
		const struct streams_summary *sum = streams_summary(s);
		const struct stream *list;

		whole = whole ? whole : s;
		printf("references=%lu bursts=%lu streams=%zu coverage=%.4f overlap=%.4f\n",
			sum->references, sum->bursts, streams_all(s, &list),
			(double)sum->hot / (double)sum->references, streams_overlap(whole, s));
		if (s != whole)
			streams_destroy(s);
	}
	return 0;
}
