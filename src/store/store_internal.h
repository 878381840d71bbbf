/*
 * What the files of the store share: the open database, SQL in few words, and the packed forms that
 * more than one of them reads. Nothing outside src/store, its tests and its fuzz targets includes
 * this.
 */
#ifndef CULPRIT_STORE_STORE_INTERNAL_H
#define CULPRIT_STORE_STORE_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/pack.h"
#include "store/store.h"

#include <sqlite3.h>
#include <zstd.h>

#define STORE_APPLICATION 0x63756c70 /* "culp" */

/* A prepared statement that is kept; sql is compared as a pointer. */
struct kept_statement {
	const char *sql;
	sqlite3_stmt *st;
};

struct store {
	sqlite3 *db;
	char *path;
	enum store_mode mode;
	int version;     /* of the file's format */
	bool log;        /* SQLite's log mode is on */
	bool began;      /* between store_begin and its end */
	bool shrink;     /* give free pages back to the file system at the next commit */
	uint64_t bytes;  /* of blobs in the open transaction */
	int64_t stretch; /* the one that was written last, its epoch and times; 0 none */
	int64_t stretch_epoch, stretch_t0, stretch_t1;
	VEC(const struct blob_type *) types;
	VEC(struct blob_type *) strange; /* types in the file that nobody registered */
	VEC(struct kept_statement) kept;
	struct hmap given;   /* ids of epochs and images that callers hold (struct given) */
	ZSTD_CCtx *compress; /* only while a transaction is open: it is large */
	ZSTD_DCtx *expand;
};

/* The key of struct store's `given`. */
struct given {
	int64_t id;
	uint64_t what; /* 'e' or 'i' */
};

/* ---- SQL (store.c) ---- */

/* Turns a result code of SQLite into a negative errno and one line with a remedy. */
int db_error(struct store *s, int rc, struct err *e);
int db_exec(struct store *s, const char *sql, struct err *e);
int db_prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e);
/* The same for a string literal, prepared once and kept by the store. Ready to bind. */
int db_kept(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e);
int db_step(struct store *s, sqlite3_stmt *st, struct err *e); /* 1 a row, 0 done */
int db_run(struct store *s, sqlite3_stmt *st, struct err *e);  /* to the end; resets it */
int db_value(struct store *s, const char *sql, int64_t *out, struct err *e);
/* Runs a kept statement with integers in its places. */
int db_run_ints(struct store *s, const char *sql, const int64_t *v, int n, struct err *e);
void db_finish(sqlite3_stmt **st); /* for _cleanup_ */
#define _cleanup_statement_ _cleanup_(db_finish)

/* Begins a transaction unless one is open; *own says whether db_end has to end it. */
int db_begin(struct store *s, bool *own, struct err *e);
/* Commits or, when r is not 0, rolls back; only if own. Returns r or the commit's failure. */
int db_end(struct store *s, bool own, int r, struct err *e);

/* Damage found while reading: -EBADMSG with the file, what, and the remedy. */
int db_damaged(struct store *s, const char *what, struct err *e);
const char *db_text(sqlite3_stmt *st, int column);             /* never NULL */
void db_bind_double(sqlite3_stmt *st, int at, double v);       /* NaN is 0 */
void db_bind_text(sqlite3_stmt *st, int at, const char *text); /* NULL is "" */

/* Packs bytes with the store's zstd and binds them; the statement owns a copy. */
int db_bind_packed(struct store *s, sqlite3_stmt *st, int at, const struct buf *raw, struct err *e);
/* Replaces out by the unpacked bytes of a column. -EBADMSG. */
int db_expand(struct store *s, sqlite3_stmt *st, int column, struct buf *out);

void given_add(struct store *s, char what, int64_t id);
void given_drop(struct store *s, char what, int64_t id);
bool given_has(const struct store *s, char what, int64_t id);

/* A negative result of a caller's function is an error, a positive one only stops. */
static inline int callback_result(int r)
{
	return r < 0 ? r : 0;
}

/* ---- schema.c ---- */

int schema_create(struct store *s, struct err *e);
/* That it is ours, of a version we know, and made of the tables we know; sets the version. */
int schema_verify(struct store *s, struct err *e);
/* Brings a file that was verified to the present version. */
int schema_upgrade(struct store *s, struct err *e);
int schema_is_empty(struct store *s, bool *empty, struct err *e);

/* ---- the pieces ---- */

/* Text and where it is used: comms, cgroups, blob types. */
int name_id(struct store *s, const char *text, int64_t *id, struct err *e);
/* The stretch of time of an epoch that a flush writes to; found or added. */
int stretch_id(struct store *s, int64_t epoch, int64_t t0, int64_t t1, int64_t *id, struct err *e);
/* Sums b into a; the scale is weighted by what was expected. */
void account_sum(struct store_account *a, const struct store_account *b);
void account_read(sqlite3_stmt *st, int column, struct store_account *out);
int account_insert(struct store *s, int64_t stretch, int64_t event, const struct store_account *a,
	struct err *e);
#define ACCOUNT_COLUMNS "attributed, unknown, lost, throttled, missed, expected, scale"

/* images.c: the packed columns of an image; -EBADMSG. Segments must be freed. */
int image_decode(sqlite3_stmt *st, int column, struct store_image *im, struct segment **segments);
#define IMAGE_COLUMNS "id, kind, identity, path, segments"

/* profiles.c */
const struct blob_type *type_find(struct store *s, const char *name); /* NULL: not registered */
const struct blob_type *type_strange(struct store *s, const char *name);
/* Writes "AND ..." conditions over the columns epoch, t0 and t1 of table `st`. */
void filter_times(const struct store_filter *f, struct buf *sql);
void filter_bind(sqlite3_stmt *st, const struct store_filter *f);
int filter_functions(struct store *s);

/* procedures_pack.c */
struct procedure_row {
	struct procedure p;
	uint64_t code_offset, code_size; /* in the code of its batch */
	bool has_code;
};
typedef VEC(struct procedure_row) procedure_rows;
/* Unpacked bytes of a batch, names and ranges into the arena; appends to rows. */
int procedures_decode(const void *p, size_t n, struct arena *a, procedure_rows *rows);
void procedures_encode(const struct store_procedure *list, size_t n, struct buf *out);

/* procedures.c: puts small batches of an image together where there are many. */
int procedures_join(struct store *s, struct err *e);
/* Every procedure of an image of `from` with its code, given to `to`. */
int procedures_copy(
	struct store *from, int64_t from_image, struct store *to, int64_t image, struct err *e);

/* totals.c */
typedef int totals_fn(void *arg, const struct store_total *row);
int totals_decode(const void *p, size_t n, totals_fn *fn, void *arg);
void totals_encode(const struct store_total *rows, size_t n, struct buf *out);
int totals_insert(
	struct store *s, int64_t stretch, const struct store_total *rows, size_t n, struct err *e);
/* Calls fn for every row of all totals. */
int totals_each(struct store *s, totals_fn *fn, void *arg, struct err *e);

/* totals_sum.c: rows of several flushes summed, small processes put together. */
struct totals_sum;
struct totals_sum *totals_sum_create(void);
void totals_sum_destroy(struct totals_sum *t);
int totals_sum_add(struct totals_sum *t, const void *p, size_t n); /* an unpacked blob */
/* The sum as rows; they belong to t. */
size_t totals_sum_rows(struct totals_sum *t, const struct store_total **rows);

#endif
