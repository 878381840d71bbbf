/*
 * How far estimated counts are from exact ones, weighted by the samples of a database.
 *
 *   score [-n REPEATS] [-v] EXACT ESTIMATED|- DATABASE
 *
 * EXACT and ESTIMATED are texts of `culprit export -f counts`; "-" stands for the simplest
 * estimate, samples over bytes. The job of EXACT ran REPEATS times in the database (1). Prints a
 * line of NAME=NUMBER (accuracy.h); with -v the procedures with most samples and the factor that
 * their scale is off by, and the blocks with most samples that are off by more than 10%.
 */
#include "accuracy.h"
#include "analyze/selection.h"
#include "base/err.h"

#include <err.h>
#include <unistd.h>

struct score {
	struct strtab images;
	struct counts exact, estimate;
	struct comparison comparison;
	size_t *by_address; /* blocks of exact */
	uint64_t *samples;  /* of each of these */
	uint64_t all;       /* samples */
	uint32_t image;     /* whose profile is read */
};

static void read_counts(struct score *s, const char *path, struct counts *c)
{
	FILE *in = fopen(path, "re");
	size_t line;

	if (!in)
		err(2, "%s", path);
	if (counts_read(c, &s->images, in, &line) < 0)
		errx(2, "%s:%zu: is no line of counts", path, line);
	fclose(in);
}

/* ---- samples ---- */

static const struct score *sorted; /* for qsort */

static int compare_places(uint32_t image, uint64_t start, const struct counted_block *b)
{
	uint32_t other = image_of(&sorted->exact, b->procedure);

	if (image != other)
		return image < other ? -1 : 1;
	return start < b->start ? -1 : start > b->start;
}

static int by_place(const void *a, const void *b)
{
	const struct counted_block *x = &sorted->exact.blocks.p[*(const size_t *)a];

	return compare_places(image_of(&sorted->exact, x->procedure), x->start,
		&sorted->exact.blocks.p[*(const size_t *)b]);
}

static void sort_blocks(struct score *s)
{
	size_t n = s->exact.blocks.n;

	s->by_address = xcalloc(n + 1, sizeof *s->by_address);
	for (size_t i = 0; i < n; i++)
		s->by_address[i] = i;
	sorted = s;
	qsort(s->by_address, n, sizeof *s->by_address, by_place);
}

/* The number of the block, or SIZE_MAX. */
static size_t block_at(struct score *s, uint64_t address)
{
	size_t low = 0, high = s->exact.blocks.n;
	const struct counted_block *b;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare_places(s->image, address, &s->exact.blocks.p[s->by_address[middle]]) <
			0)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return SIZE_MAX;
	b = &s->exact.blocks.p[s->by_address[low - 1]];
	return image_of(&s->exact, b->procedure) == s->image && address - b->start < b->size
		       ? s->by_address[low - 1]
		       : SIZE_MAX;
}

static int add_samples(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct score *s = arg;
	struct pc_count pc;
	char id[IMAGE_ID_TEXT];
	uint64_t address;
	size_t block;
	int rc = 0;

	s->image = counts_image(
		&s->images, im->identity.size ? image_id_text(&im->identity, id) : "-", im->path);
	while (!event && (rc = pc_reader_next(pcs, &pc)) > 0) {
		s->all += pc.count;
		if (!segments_vaddr(im->segments, im->nsegments, pc.offset, &address))
			continue;
		block = block_at(s, address);
		if (block != SIZE_MAX)
			s->samples[block] += pc.count;
	}
	return rc < 0 ? err_set(e, rc, "%s: a profile is damaged", im->path) : 0;
}

static void read_samples(struct score *s, const char *path)
{
	struct selection_options o = {0};
	struct selection *sel;
	struct store *store;
	struct err e = {0};

	if (store_open(path, STORE_READ, &store, &e) < 0 ||
		selection_create(store, &o, &sel, &e) < 0 ||
		selection_profiles(sel, add_samples, s, &e) < 0)
		errx(2, "%s", e.text);
	selection_destroy(sel);
	store_close(store);
}

static void estimate_simply(struct score *s)
{
	vec_each (p, &s->exact.procedures) {
		*vec_add(&s->estimate.procedures) = *p;
		s->estimate.procedures.p[s->estimate.procedures.n - 1].claimed = false;
	}
	for (size_t i = 0; i < s->exact.blocks.n; i++) {
		struct counted_block *b = vec_add(&s->estimate.blocks);

		*b = s->exact.blocks.p[i];
		b->count = (double)s->samples[i] / (double)b->size;
		b->high = false;
	}
}

/* ---- what is wrong ---- */

static int by_samples(const void *a, const void *b)
{
	const struct compared_block *const *x = a, *const *y = b;

	return (*x)->samples < (*y)->samples ? 1 : (*x)->samples > (*y)->samples ? -1 : 0;
}

static void print_block(const struct score *s, const struct compared_block *b)
{
	const struct counted_procedure *p = &s->exact.procedures.p[b->exact->procedure];

	printf("block 0x%" PRIx64 " of 0x%" PRIx64 ": samples=%" PRIu64 " exact=%.0f",
		b->exact->start, p->start, b->samples, b->exact->count * s->comparison.repeats);
	if (b->estimate)
		printf(" estimate=%.0f relative=%.3f absolute=%.3f %s\n", b->estimate->count,
			b->relative, b->absolute, b->estimate->high ? "high" : "");
	else
		puts(" no estimate");
}

static void print_blocks(const struct score *s)
{
	enum { MOST = 30 };
	size_t n = s->exact.blocks.n, printed = 0;
	const struct compared_block **list = xcalloc(n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = &s->comparison.blocks[i];
	qsort(list, n, sizeof(*list), by_samples);
	for (size_t i = 0; i < n && printed < MOST && list[i]->samples; i++)
		if (!is_within(list[i]->relative, 0.1)) {
			print_block(s, list[i]);
			printed++;
		}
	free(list);
}

struct procedure_sum {
	uint32_t number;
	uint64_t samples, within;
	bool claimed;
};

static int by_sum(const void *a, const void *b)
{
	const struct procedure_sum *x = a, *y = b;

	return x->samples < y->samples ? 1 : x->samples > y->samples ? -1 : 0;
}

static void print_procedures(const struct score *s)
{
	enum { MOST = 15 };
	size_t n = s->exact.procedures.n;
	struct procedure_sum *sums = xcalloc(n + 1, sizeof *sums);

	for (size_t i = 0; i < n; i++)
		sums[i].number = (uint32_t)i;
	for (size_t i = 0; i < s->exact.blocks.n; i++) {
		const struct compared_block *b = &s->comparison.blocks[i];
		struct procedure_sum *sum = &sums[b->exact->procedure];

		sum->samples += b->samples;
		sum->within += is_within(b->relative, 0.1) ? b->samples : 0;
		sum->claimed |= is_claimed(&s->comparison, b);
	}
	qsort(sums, n, sizeof *sums, by_sum);
	for (size_t i = 0; i < n && i < MOST && sums[i].samples; i++)
		printf("procedure 0x%" PRIx64 ": samples=%" PRIu64
		       " relative10=%.3f scale=%.4f %s\n",
			s->exact.procedures.p[sums[i].number].start, sums[i].samples,
			(double)sums[i].within / (double)sums[i].samples,
			1 / s->comparison.factor[sums[i].number],
			sums[i].claimed ? "claimed" : "relative");
	free(sums);
}

static void print_measures(const struct score *s)
{
	struct accuracy a;

	comparison_measure(&s->comparison, &a);
	printf("samples=%.0f compared=%.4f estimated=%.4f "
	       "relative5=%.4f relative10=%.4f relative15=%.4f relative_overlap=%.4f "
	       "relative_edges=%.4f claimed=%.4f absolute5=%.4f absolute10=%.4f absolute15=%.4f "
	       "absolute_overlap=%.4f absolute_edges=%.4f high=%.4f high10=%.4f\n",
		a.samples, part(a.samples, (double)s->all), a.estimated, a.relative[0],
		a.relative[1], a.relative[2], a.relative_overlap, a.relative_edges, a.claimed,
		a.absolute[0], a.absolute[1], a.absolute[2], a.absolute_overlap, a.absolute_edges,
		a.high, a.high_within);
}

int main(int argc, char **argv)
{
	struct score s = {0};
	double repeats = 1;
	bool verbose = false;

	for (int c; (c = getopt(argc, argv, "n:v")) != -1;) {
		if (c == 'n')
			repeats = atof(optarg);
		verbose |= c == 'v';
		if (c == '?')
			argc = 0;
	}
	if (argc - optind != 3 || repeats <= 0)
		errx(2, "usage: score [-n REPEATS] [-v] EXACT ESTIMATED|- DATABASE");
	read_counts(&s, argv[optind], &s.exact);
	sort_blocks(&s);
	s.samples = xcalloc(s.exact.blocks.n + 1, sizeof *s.samples);
	read_samples(&s, argv[optind + 2]);
	if (strcmp(argv[optind + 1], "-"))
		read_counts(&s, argv[optind + 1], &s.estimate);
	else
		estimate_simply(&s);
	comparison_init(&s.comparison, &s.exact, &s.estimate, repeats);
	for (size_t i = 0; i < s.exact.blocks.n; i++)
		s.comparison.blocks[i].samples = s.samples[i];
	if (verbose) {
		print_procedures(&s);
		print_blocks(&s);
	}
	print_measures(&s);
	comparison_deinit(&s.comparison);
	counts_deinit(&s.exact);
	counts_deinit(&s.estimate);
	strtab_deinit(&s.images);
	free(s.by_address);
	free(s.samples);
	return 0;
}
