/* Typed blobs by stretch, event, image and process; and the conditions under which they are read.
 */
#include "store/store_internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- conditions ---- */

/*
 * A build-id may be given by its first digits; fewer than four could be a name ("cc", "bc").
 */
#define PREFIX_LEAST 4

static bool identity_has_prefix(const char *prefix, const uint8_t *identity, size_t n)
{
	char text[2 * sizeof((struct image_id){0}.bytes) + 1];
	size_t digits = strlen(prefix);

	if (!n || 2 * n >= sizeof text || digits < PREFIX_LEAST)
		return false;
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", identity[i]);
	return !strncasecmp(text, prefix, digits);
}

static bool image_fits(const char *pattern, const char *path, const uint8_t *identity, size_t n)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (!fnmatch(pattern, path, 0) || !fnmatch(pattern, base, 0))
		return true;
	return identity_has_prefix(
		strncmp(pattern, "hash:", 5) ? pattern : pattern + 5, identity, n);
}

bool store_image_fits(const char *pattern, const char *path, const struct image_id *id)
{
	return image_fits(pattern, path, id->bytes, id->size);
}

/* image_matches(pattern, path, identity): identities are stored with their kind in front. */
static void sql_image_matches(sqlite3_context *context, int n, sqlite3_value **v)
{
	const char *pattern = (const char *)sqlite3_value_text(v[0]);
	const char *path = (const char *)sqlite3_value_text(v[1]);
	const uint8_t *identity = sqlite3_value_blob(v[2]);
	size_t size = (size_t)sqlite3_value_bytes(v[2]);

	(void)n;
	sqlite3_result_int(context,
		pattern && image_fits(pattern, path ? path : "",
				   identity && size ? identity + 1 : NULL, size ? size - 1 : 0));
}

/* text_matches(pattern, text) */
static void sql_text_matches(sqlite3_context *context, int n, sqlite3_value **v)
{
	const char *pattern = (const char *)sqlite3_value_text(v[0]);
	const char *text = (const char *)sqlite3_value_text(v[1]);

	(void)n;
	sqlite3_result_int(context, pattern && text && !fnmatch(pattern, text, 0));
}

int filter_functions(struct store *s)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
	int rc = sqlite3_create_function(
		s->db, "image_matches", 3, flags, NULL, sql_image_matches, NULL, NULL);

	if (!rc)
		rc = sqlite3_create_function(
			s->db, "text_matches", 2, flags, NULL, sql_text_matches, NULL, NULL);
	return rc;
}

void filter_times(const struct store_filter *f, struct buf *sql)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nepochs; i++)
		buf_printf(sql, "%s%lld", i ? ", " : "AND st.epoch IN (", (long long)f->epochs[i]);
	if (f->nepochs)
		buf_printf(sql, ") ");
	if (f->t0)
		buf_printf(sql, "AND st.t1 > :t0 ");
	if (f->t1)
		buf_printf(sql, "AND st.t0 < :t1 ");
}

static void bind_int(sqlite3_stmt *st, const char *name, int64_t v)
{
	int at = sqlite3_bind_parameter_index(st, name);

	if (at)
		sqlite3_bind_int64(st, at, v);
}

static void bind_text(sqlite3_stmt *st, const char *name, const char *text)
{
	int at = sqlite3_bind_parameter_index(st, name);

	if (at && text)
		sqlite3_bind_text(st, at, text, -1, SQLITE_TRANSIENT);
}

void filter_bind(sqlite3_stmt *st, const struct store_filter *f)
{
	if (!f)
		return;
	bind_int(st, ":t0", f->t0);
	bind_int(st, ":t1", f->t1);
	bind_int(st, ":pid", f->pid);
	bind_text(st, ":event", f->event);
	bind_text(st, ":comm", f->comm);
	bind_text(st, ":image", f->image);
	bind_text(st, ":type", f->type ? f->type->name : NULL);
}

/* Every condition is a set of ids that SQLite makes once, so a row costs a few look-ups. */
static void filter_profiles(const struct store_filter *f, struct buf *sql)
{
	if (!f)
		return;
	filter_times(f, sql);
	if (f->event)
		buf_printf(sql, "AND p.event IN (SELECT id FROM events WHERE name = :event) ");
	if (f->comm)
		buf_printf(sql, "AND p.process IN (SELECT pr.id FROM processes pr JOIN names n "
				"ON n.id = pr.comm WHERE text_matches(:comm, n.text)) ");
	if (f->pid)
		buf_printf(sql, "AND p.process IN (SELECT id FROM processes WHERE pid = :pid) ");
	if (f->image)
		buf_printf(sql, "AND p.image IN (SELECT id FROM images "
				"WHERE image_matches(:image, path, identity)) ");
	if (f->type)
		buf_printf(sql, "AND p.type IN (SELECT id FROM names WHERE text = :type) ");
}

/* ---- types ---- */

void store_register(struct store *s, const struct blob_type *type)
{
	if (!type_find(s, type->name))
		*vec_add(&s->types) = type;
}

const struct blob_type *type_find(struct store *s, const char *name)
{
	vec_each (t, &s->types)
		if (!strcmp((*t)->name, name))
			return *t;
	return NULL;
}

const struct blob_type *type_strange(struct store *s, const char *name)
{
	struct blob_type *fresh;

	vec_each (t, &s->strange)
		if (!strcmp((*t)->name, name))
			return *t;
	fresh = xcalloc(1, sizeof *fresh);
	fresh->name = xstrdup(name);
	*vec_add(&s->strange) = fresh;
	return fresh;
}

/* ---- profiles ---- */

/* The row is only made when all it refers to is there. */
#define ADD_SQL                                                                         \
	"INSERT INTO profiles(stretch, event, image, process, type, samples, data) "    \
	"SELECT ?1, e.id, i.id, p.id, ?5, ?6, ?7 FROM events e, images i, processes p " \
	"WHERE e.id = ?2 AND i.id = ?3 AND p.id = ?4"

static int weigh(struct store *s, const struct store_profile *p, int64_t *samples, struct err *e)
{
	uint64_t weight = 0;

	if (p->type->weight && p->type->weight(p->data, p->size, &weight))
		return err_set(e, -EBADMSG, "%s: a %s profile that cannot be read back", s->path,
			p->type->name);
	*samples = weight > INT64_MAX ? INT64_MAX : (int64_t)weight;
	return 0;
}

int store_profile_add(struct store *s, const struct store_profile *p, struct err *e)
{
	struct buf raw = {.p = (uint8_t *)p->data, .n = p->size};
	int64_t samples = 0, type = 0, stretch = 0;
	sqlite3_stmt *st;
	int r = weigh(s, p, &samples, e);

	if (!r)
		r = name_id(s, p->type->name, &type, e);
	if (!r)
		r = stretch_id(s, p->epoch, p->t0, p->t1, &stretch, e);
	if (!r)
		r = db_kept(s, ADD_SQL, &st, e);
	if (!r)
		r = db_bind_packed(s, st, 7, &raw, e);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, stretch);
	sqlite3_bind_int64(st, 2, p->event);
	sqlite3_bind_int64(st, 3, p->image);
	sqlite3_bind_int64(st, 4, p->process);
	sqlite3_bind_int64(st, 5, type);
	sqlite3_bind_int64(st, 6, samples);
	r = db_run(s, st, e);
	if (!r && !sqlite3_changes(s->db))
		return err_set(e, -EINVAL,
			"%s: a profile of an event, image or process that is not there", s->path);
	return r;
}

/* The type of a row; names are few and rows many, so the last one is remembered. */
static const struct blob_type *row_type(
	struct store *s, const char *name, const struct blob_type *last)
{
	const struct blob_type *type;

	if (last && !strcmp(last->name, name))
		return last;
	type = type_find(s, name);
	return type ? type : type_strange(s, name);
}

static int give_profile(struct store *s, sqlite3_stmt *st, struct store_profile *p,
	struct buf *data, store_profile_fn *fn, void *arg, struct err *e)
{
	if (db_expand(s, st, 7, data))
		return db_damaged(s, "a profile", e);
	p->epoch = sqlite3_column_int64(st, 0);
	p->event = sqlite3_column_int64(st, 1);
	p->image = sqlite3_column_int64(st, 2);
	p->process = sqlite3_column_int64(st, 3);
	p->t0 = sqlite3_column_int64(st, 4);
	p->t1 = sqlite3_column_int64(st, 5);
	p->type = row_type(s, db_text(st, 6), p->type);
	p->data = data->p;
	p->size = data->n;
	return fn(arg, p);
}

int store_profiles(struct store *s, const struct store_filter *f, store_profile_fn *fn, void *arg,
	struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct store_profile p = {0};
	struct buf sql = {0}, data = {0};
	int r;

	/* Times usually choose few of the stretches, which SQLite cannot know. */
	buf_printf(&sql,
		"SELECT st.epoch, p.event, p.image, p.process, st.t0, st.t1, n.text, p.data "
		"FROM stretches st %s profiles p ON p.stretch = st.id "
		"JOIN names n ON n.id = p.type WHERE 1 ",
		f && (f->t0 || f->t1) ? "CROSS JOIN" : "JOIN");
	filter_profiles(f, &sql);
	r = db_prepare(s, buf_cstr(&sql), &st, e);
	if (!r) {
		filter_bind(st, f);
		while ((r = db_step(s, st, e)) > 0) {
			r = give_profile(s, st, &p, &data, fn, arg, e);
			if (r)
				break;
		}
	}
	buf_deinit(&sql);
	buf_deinit(&data);
	return callback_result(r);
}
