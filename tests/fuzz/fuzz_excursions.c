/*
 * Profiles of excursions from any bytes: what decodes is in order and survives packing again, and
 * merging keeps the bound and no excursion that was in neither.
 */
#include "base/mem.h"
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/excursions.h"

struct part_list {
	VEC(struct excursion_part) list;
	struct arena edges;
};

static void check_edges(const struct excursion_part *x)
{
	for (size_t i = 0; i < x->nedges; i++)
		require(x->edges[i].count && !(x->edges[i].from >> 63) &&
			(!i || edge_compare(&x->edges[i - 1], &x->edges[i]) < 0));
}

static bool read_parts(const uint8_t *p, size_t n, struct part_list *out)
{
	struct excursion_reader r;
	struct excursion_part x;
	int got = excursion_reader_init(&r, p, n);

	while (!got && (got = excursion_reader_next(&r, &x)) > 0) {
		size_t bytes = x.nedges * sizeof *x.edges;
		void *edges = arena_alloc(&out->edges, bytes + 1);

		require(x.weight);
		check_edges(&x);
		if (bytes)
			memcpy(edges, x.edges, bytes);
		x.edges = edges;
		require(!out->list.n || excursion_compare(&out->list.p[out->list.n - 1], &x) < 0);
		*vec_add(&out->list) = x;
		got = 0;
	}
	excursion_reader_deinit(&r);
	require(!got == !blob_excursion.check(p, n));
	require(out->list.n <= EXCURSIONS_MOST);
	return !got;
}

static void part_list_deinit(struct part_list *l)
{
	vec_deinit(&l->list);
	arena_deinit(&l->edges);
}

static bool is_same(const struct excursion_part *a, const struct excursion_part *b)
{
	return a->number == b->number && a->weight == b->weight &&
	       a->instructions == b->instructions && a->nedges == b->nedges &&
	       (!a->nedges || !memcmp(a->edges, b->edges, a->nedges * sizeof *a->edges));
}

static void check_round_trip(const struct part_list *list)
{
	struct part_list back = {0};
	struct buf again = {0};

	excursions_pack(list->list.p, list->list.n, &again);
	require(read_parts(again.p, again.n, &back) && back.list.n == list->list.n);
	for (size_t i = 0; i < back.list.n; i++)
		require(is_same(&list->list.p[i], &back.list.p[i]));
	part_list_deinit(&back);
	buf_deinit(&again);
}

static bool has(const struct part_list *l, const struct excursion_part *x)
{
	return l->list.n && bsearch(x, l->list.p, l->list.n, sizeof *x, excursion_compare);
}

/* Of the same numbers whichever way; none is lost that a merged profile has room for. */
static void check_merge(const struct part_list *a, const struct part_list *b, struct buf bytes[2])
{
	struct part_list ab = {0}, ba = {0};
	struct buf out[2] = {{0}, {0}};

	for (int i = 0; i < 2; i++)
		require(!blob_excursion.merge(
			bytes[i].p, bytes[i].n, bytes[!i].p, bytes[!i].n, &out[i]));
	require(read_parts(out[0].p, out[0].n, &ab) && read_parts(out[1].p, out[1].n, &ba));
	require(ab.list.n == ba.list.n && ab.list.n <= EXCURSIONS_MERGED);
	for (size_t i = 0; i < ab.list.n; i++) {
		const struct excursion_part *x = &ab.list.p[i];

		require(x->number == ba.list.p[i].number && (has(a, x) || has(b, x)));
	}
	part_list_deinit(&ab);
	part_list_deinit(&ba);
	buf_deinit(&out[0]);
	buf_deinit(&out[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct part_list a = {0}, b = {0};
	struct buf bytes[2] = {{0}, {0}};
	size_t half;

	if (!size)
		return 0;
	half = 1 + (size - 1) * data[0] / 255;
	buf_put(&bytes[0], data + 1, half - 1);
	buf_put(&bytes[1], data + half, size - half);
	if (read_parts(bytes[0].p, bytes[0].n, &a)) {
		check_round_trip(&a);
		if (read_parts(bytes[1].p, bytes[1].n, &b))
			check_merge(&a, &b, bytes);
	}
	part_list_deinit(&a);
	part_list_deinit(&b);
	buf_deinit(&bytes[0]);
	buf_deinit(&bytes[1]);
	return 0;
}
