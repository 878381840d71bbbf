/*
 * Paths from any bytes: what decodes is sorted, survives packing again, and merging adds.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/paths.h"

/* Rows with blocks of their own. */
struct profile {
	struct metric_names names;
	VEC(struct path_row) rows;
};

static void keep_blocks(struct path_row *row)
{
	if (row->is_path)
		row->shape.blocks =
			xmemdup(row->shape.blocks, row->shape.n * sizeof *row->shape.blocks);
}

static bool read_rows(const uint8_t *p, size_t n, struct profile *out)
{
	struct path_reader r;
	struct path_row row;
	int got = path_reader_init(&r, p, n);

	out->names = r.names;
	while (!got && (got = path_reader_next(&r, &row)) > 0) {
		require(!out->rows.n || path_row_compare(&out->rows.p[out->rows.n - 1], &row) < 0);
		keep_blocks(&row);
		*vec_add(&out->rows) = row;
		got = 0;
	}
	path_reader_deinit(&r);
	require(!got == !blob_path.check(p, n));
	return !got;
}

static void profile_deinit(struct profile *p)
{
	vec_each (row, &p->rows)
		free((void *)row->shape.blocks);
	vec_deinit(&p->rows);
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	struct profile list = {0}, back = {0};
	bool good = read_rows(p, n, &list);

	if (good) {
		paths_pack(&list.names, list.rows.p, list.rows.n, again);
		require(read_rows(again->p, again->n, &back) && back.rows.n == list.rows.n);
		for (size_t i = 0; i < list.rows.n; i++)
			require(!path_row_compare(&list.rows.p[i], &back.rows.p[i]) &&
				list.rows.p[i].count == back.rows.p[i].count);
	}
	profile_deinit(&list);
	profile_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_path, repack, data, size);
}
