/* Batches of procedures from any bytes: what decodes is sorted and survives packing again. */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool same(const struct procedure_row *a, const struct procedure_row *b)
{
	return a->p.start == b->p.start && a->p.source == b->p.source &&
	       a->p.nranges == b->p.nranges && !a->p.name == !b->p.name &&
	       (!a->p.name || !strcmp(a->p.name, b->p.name)) && a->has_code == b->has_code &&
	       a->code_size == b->code_size && a->code_offset == b->code_offset &&
	       (!a->p.nranges ||
		       !memcmp(a->p.ranges, b->p.ranges, a->p.nranges * sizeof *a->p.ranges));
}

static void pack_again(const procedure_rows *rows, struct arena *arena)
{
	VEC(struct store_procedure) list = {0};
	procedure_rows again = {0};
	struct buf raw = {0};

	vec_each (row, rows)
		*vec_add(&list) = (struct store_procedure){.p = row->p,
			.code = row->has_code ? "" : NULL,
			.code_size = row->code_size};
	procedures_encode(list.p, list.n, &raw);
	require(!procedures_decode(raw.p, raw.n, arena, &again) && again.n == rows->n);
	for (size_t i = 0; i < again.n; i++) {
		require(!i || again.p[i].p.start > again.p[i - 1].p.start);
		require(same(&again.p[i], &rows->p[i]));
	}
	buf_deinit(&raw);
	vec_deinit(&list);
	vec_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	procedure_rows rows = {0};
	struct arena arena = {0};

	if (procedures_decode(data, size, &arena, &rows))
		require(!rows.n);
	else
		pack_again(&rows, &arena);
	vec_deinit(&rows);
	arena_deinit(&arena);
	return 0;
}
