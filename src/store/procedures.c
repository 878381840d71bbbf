/* The procedures of an image that got samples, and their code. Packed form: procedures_pack.c. */
#include "store/store_internal.h"

#include <errno.h>
#include <string.h>

/* A batch has so many at most that the code of one is found by expanding little. */
#define BATCH_MOST  1024
#define BATCH_SMALL (BATCH_MOST / 2) /* fewer than this are put together with others */
#define BATCHES     8                /* small ones that are left alone */

/* What was read of an image. Names, ranges and code are in the arena. */
struct reading {
	struct arena arena;
	procedure_rows rows;
	VEC(struct store_procedure) list; /* the same with code, where it was asked for */
};

static void reading_deinit(struct reading *in)
{
	vec_deinit(&in->rows);
	vec_deinit(&in->list);
	arena_deinit(&in->arena);
}

/* A procedure may be there twice, the second time with code; that one comes first. */
static int compare_rows(const void *a, const void *b)
{
	const struct procedure_row *x = a, *y = b;

	if (x->p.start != y->p.start)
		return x->p.start < y->p.start ? -1 : 1;
	return y->has_code - x->has_code;
}

static int compare_procedures(const void *a, const void *b)
{
	const struct store_procedure *x = a, *y = b;

	if (x->p.start != y->p.start)
		return x->p.start < y->p.start ? -1 : 1;
	return !x->code - !y->code;
}

/* Sorts, and leaves each start once. */
static size_t unique(struct store_procedure *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, compare_procedures);
	for (size_t i = 0; i < n; i++)
		if (!kept || list[kept - 1].p.start != list[i].p.start)
			list[kept++] = list[i];
	return kept;
}

/* Unpacks one column of procedures. */
static int read_column(
	struct store *s, sqlite3_stmt *st, int column, struct reading *in, struct err *e)
{
	struct buf raw = {0};
	int r = db_expand(s, st, column, &raw);

	if (!r)
		r = procedures_decode(raw.p, raw.n, &in->arena, &in->rows);
	buf_deinit(&raw);
	return r ? db_damaged(s, "procedures", e) : 0;
}

/* All procedures of an image by start, without code. */
static int read_all(struct store *s, int64_t image, struct reading *in, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, "SELECT data FROM procedures WHERE image = ? ORDER BY id", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, image);
	while ((r = db_step(s, st, e)) > 0) {
		r = read_column(s, st, 0, in, e);
		if (r)
			return r;
	}
	vec_sort(&in->rows, compare_rows);
	return r;
}

/* Gives the rows from `first` on their code, which is a column of the same batch or NULL. */
static int attach_code(struct store *s, sqlite3_stmt *st, int column, struct reading *in,
	size_t first, struct err *e)
{
	bool any = sqlite3_column_type(st, column) != SQLITE_NULL;
	struct buf raw = {0};
	uint8_t *code;

	if (any && db_expand(s, st, column, &raw)) {
		buf_deinit(&raw);
		return db_damaged(s, "code", e);
	}
	code = arena_alloc(&in->arena, raw.n + 1);
	if (raw.n)
		memcpy(code, raw.p, raw.n);
	for (size_t i = first; i < in->rows.n; i++) {
		const struct procedure_row *row = &in->rows.p[i];
		bool there = any && row->has_code && row->code_offset + row->code_size <= raw.n;

		*vec_add(&in->list) = (struct store_procedure){
			.p = row->p,
			.code = there ? code + row->code_offset : NULL,
			.code_size = there ? row->code_size : 0,
		};
	}
	buf_deinit(&raw);
	return 0;
}

/* Reads batches with their code; st gives the columns procedures.data, code.data. */
static int read_with_code(struct store *s, sqlite3_stmt *st, struct reading *in, struct err *e)
{
	int r;

	while ((r = db_step(s, st, e)) > 0) {
		size_t first = in->rows.n;

		r = read_column(s, st, 0, in, e);
		if (!r)
			r = attach_code(s, st, 1, in, first, e);
		if (r)
			return r;
	}
	in->list.n = unique(in->list.p, in->list.n);
	return r;
}

/* ---- adding ---- */

static int write_code(
	struct store *s, int64_t id, const struct store_procedure *list, size_t n, struct err *e)
{
	struct buf code = {0};
	sqlite3_stmt *st;
	bool any = false;
	int r;

	for (size_t i = 0; i < n; i++) {
		any |= list[i].code != NULL;
		if (list[i].code)
			buf_put(&code, list[i].code, list[i].code_size);
	}
	if (!any)
		return 0;
	r = db_kept(s, "INSERT INTO code(id, data) VALUES(?, ?)", &st, e);
	if (!r)
		r = db_bind_packed(s, st, 2, &code, e);
	buf_deinit(&code);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	return db_run(s, st, e);
}

static int write_batch(
	struct store *s, int64_t image, const struct store_procedure *list, size_t n, struct err *e)
{
	struct buf raw = {0};
	sqlite3_stmt *st;
	int r = db_kept(s,
		"INSERT INTO procedures(image, n, data) SELECT id, ?2, ?3 FROM images WHERE id = "
		"?1",
		&st, e);

	if (r)
		return r;
	procedures_encode(list, n, &raw);
	r = db_bind_packed(s, st, 3, &raw, e);
	buf_deinit(&raw);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, image);
	sqlite3_bind_int64(st, 2, (int64_t)n);
	r = db_run(s, st, e);
	if (!r && !sqlite3_changes(s->db))
		return err_set(e, -EINVAL, "%s: procedures of an image that is not there", s->path);
	return r ? r : write_code(s, sqlite3_last_insert_rowid(s->db), list, n, e);
}

static int write_batches(
	struct store *s, int64_t image, const struct store_procedure *list, size_t n, struct err *e)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i += BATCH_MOST)
		r = write_batch(s, image, list + i, n - i < BATCH_MOST ? n - i : BATCH_MOST, e);
	return r;
}

/* Those of the list that are not in `in`, or not with code, sorted, each start once. */
static struct store_procedure *missing(
	const struct store_procedure *list, size_t n, const struct reading *in, size_t *count)
{
	struct store_procedure *fresh = xcalloc(n, sizeof *fresh);
	size_t kept = 0, at = 0;

	if (n)
		memcpy(fresh, list, n * sizeof *fresh);
	n = unique(fresh, n);
	for (size_t i = 0; i < n; i++) {
		const struct procedure_row *row = in->rows.p;

		while (at < in->rows.n && row[at].p.start < fresh[i].p.start)
			at++;
		if (at == in->rows.n || row[at].p.start != fresh[i].p.start) {
			fresh[kept++] = fresh[i];
		} else if (fresh[i].code && !row[at].has_code) {
			fresh[kept] = fresh[i];
			if (!fresh[kept].p.name)
				fresh[kept].p.name = row[at].p.name;
			kept++;
		}
	}
	*count = kept;
	return fresh;
}

int store_procedures_add(
	struct store *s, int64_t image, const struct store_procedure *list, size_t n, struct err *e)
{
	_cleanup_(reading_deinit) struct reading in = {0};
	_cleanup_free_ struct store_procedure *fresh = NULL;
	size_t count;
	int r = read_all(s, image, &in, e);

	if (r)
		return r;
	fresh = missing(list, n, &in, &count);
	return write_batches(s, image, fresh, count, e);
}

#define SMALL_SQL "image = ?1 AND n < ?2"

static int join_image(struct store *s, int64_t image, struct err *e)
{
	const int64_t small[] = {image, BATCH_SMALL};
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	_cleanup_(reading_deinit) struct reading in = {0};
	int r = db_prepare(s,
		"SELECT p.data, c.data FROM procedures p LEFT JOIN code c ON c.id = p.id "
		"WHERE p.image = ?1 AND p.n < ?2 ORDER BY p.id",
		&st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, image);
	sqlite3_bind_int64(st, 2, BATCH_SMALL);
	r = read_with_code(s, st, &in, e);
	if (!r)
		r = db_run_ints(s,
			"DELETE FROM code WHERE id IN (SELECT id FROM procedures WHERE " SMALL_SQL
			")",
			small, 2, e);
	if (!r)
		r = db_run_ints(s, "DELETE FROM procedures WHERE " SMALL_SQL, small, 2, e);
	return r ? r : write_batches(s, image, in.list.p, in.list.n, e);
}

int procedures_join(struct store *s, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	VEC(int64_t) images = {0};
	int r = db_prepare(s,
		"SELECT image FROM procedures WHERE n < ? GROUP BY image HAVING count(*) > ?", &st,
		e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, BATCH_SMALL);
	sqlite3_bind_int64(st, 2, BATCHES);
	while ((r = db_step(s, st, e)) > 0)
		*vec_add(&images) = sqlite3_column_int64(st, 0);
	vec_each (image, &images)
		if (!r)
			r = join_image(s, *image, e);
	vec_deinit(&images);
	return r;
}

static int read_codes(struct store *s, int64_t image, struct reading *in, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
		"SELECT p.data, c.data FROM procedures p LEFT JOIN code c ON c.id = p.id "
		"WHERE p.image = ? ORDER BY p.id",
		&st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, image);
	return read_with_code(s, st, in, e);
}

int procedures_copy(
	struct store *from, int64_t from_image, struct store *to, int64_t image, struct err *e)
{
	_cleanup_(reading_deinit) struct reading in = {0};
	int r = read_codes(from, from_image, &in, e);

	return r ? r : store_procedures_add(to, image, in.list.p, in.list.n, e);
}

int store_codes(struct store *s, int64_t image, store_code_fn *fn, void *arg, struct err *e)
{
	_cleanup_(reading_deinit) struct reading in = {0};
	int r = read_codes(s, image, &in, e);

	for (size_t i = 0; i < in.list.n && !r; i++)
		if (in.list.p[i].code_size)
			r = fn(arg, &in.list.p[i]);
	return callback_result(r);
}

/* ---- reading ---- */

/* Ranges by start; `reach` is the largest end up to and including this one. */
struct span {
	uint64_t start, size, reach;
	const struct procedure *p;
};

struct listing {
	struct arena arena;
	struct procedure *p;
	VEC(struct span) spans;
};

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->p > y->p) - (x->p < y->p);
}

static void index_spans(struct listing *l, size_t n)
{
	uint64_t reach = 0, end;

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < l->p[i].nranges; k++)
			*vec_add(&l->spans) = (struct span){
				.start = l->p[i].ranges[k].start,
				.size = l->p[i].ranges[k].size,
				.p = &l->p[i],
			};
	vec_sort(&l->spans, compare_spans);
	vec_each (span, &l->spans) {
		if (__builtin_add_overflow(span->start, span->size, &end))
			end = UINT64_MAX;
		reach = end > reach ? end : reach;
		span->reach = reach;
	}
}

int store_procedures(struct store *s, int64_t image, struct store_procedures *out, struct err *e)
{
	_cleanup_(reading_deinit) struct reading in = {0};
	struct listing *l;
	size_t n = 0;
	int r = read_all(s, image, &in, e);

	if (r)
		return r;
	l = xcalloc(1, sizeof *l);
	l->p = xcalloc(in.rows.n, sizeof *l->p);
	vec_each (row, &in.rows)
		if (!n || l->p[n - 1].start != row->p.start)
			l->p[n++] = row->p;
	l->arena = in.arena;
	in.arena = (struct arena){0};
	index_spans(l, n);
	*out = (struct store_procedures){.p = l->p, .n = n, .memory = l};
	return 0;
}

void store_procedures_free(struct store_procedures *list)
{
	struct listing *l = list->memory;

	if (!l)
		return;
	arena_deinit(&l->arena);
	vec_deinit(&l->spans);
	free(l->p);
	free(l);
	*list = (struct store_procedures){0};
}

const struct procedure *store_procedure_at(const struct store_procedures *list, uint64_t vaddr)
{
	const struct listing *l = list->memory;
	size_t low = 0, high = l ? l->spans.n : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->spans.p[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	/* Backwards only where ranges overlap. */
	while (low-- > 0 && l->spans.p[low].reach > vaddr) {
		const struct span *span = &l->spans.p[low];

		if (vaddr - span->start < span->size)
			return span->p;
	}
	return NULL;
}

/* The batch and place of a procedure's code; -ENOENT. */
static int find_code(struct store *s, int64_t image, uint64_t start, int64_t *batch,
	struct procedure_row *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(
		s, "SELECT data, id FROM procedures WHERE image = ? ORDER BY id", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, image);
	while ((r = db_step(s, st, e)) > 0) {
		_cleanup_(reading_deinit) struct reading in = {0};

		r = read_column(s, st, 0, &in, e);
		if (r)
			return r;
		vec_each (row, &in.rows) {
			if (row->p.start != start || !row->has_code)
				continue;
			*out = *row;
			*batch = sqlite3_column_int64(st, 1);
			return 0;
		}
	}
	return r < 0 ? r
		     : err_set(e, -ENOENT, "%s: no code was kept for 0x%llx", s->path,
			       (unsigned long long)start);
}

int store_code(struct store *s, int64_t image, uint64_t start, struct buf *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct procedure_row row = {0};
	struct buf raw = {0};
	int64_t batch = 0;
	int r = find_code(s, image, start, &batch, &row, e);

	if (!r)
		r = db_prepare(s, "SELECT data FROM code WHERE id = ?", &st, e);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, batch);
	r = db_step(s, st, e);
	if (r < 0)
		return r;
	if (!r || db_expand(s, st, 0, &raw) || row.code_offset + row.code_size > raw.n)
		r = db_damaged(s, "code", e);
	else
		r = 0;
	if (!r)
		buf_put(out, raw.p + row.code_offset, row.code_size);
	buf_deinit(&raw);
	return r;
}
