/* Where the bytes of the file are. */
#include "store/store_internal.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name) offsetof(struct store_size, name)

/* Tables and indexes by purpose; what is not here is `other`. */
static const struct {
	const char *name;
	size_t field;
} purposes[] = {
	{"profiles", FIELD(profiles)},
	{"profiles_by_stretch", FIELD(profiles)},
	{"profiles_by_image", FIELD(profiles)},
	{"totals", FIELD(totals)},
	{"totals_by_stretch", FIELD(totals)},
	{"processes", FIELD(totals)},
	{"processes_by_pid", FIELD(totals)},
	{"names", FIELD(totals)},
	{"sqlite_autoindex_names_1", FIELD(totals)},
	{"accounts", FIELD(totals)},
	{"accounts_by_stretch", FIELD(totals)},
	{"stretches", FIELD(totals)},
	{"stretches_by_time", FIELD(totals)},
	{"procedures", FIELD(procedures)},
	{"procedures_by_image", FIELD(procedures)},
	{"code", FIELD(code)},
	{"images", FIELD(images)},
	{"images_by_identity", FIELD(images)},
	{"images_by_path", FIELD(images)},
};

static uint64_t *field_of(struct store_size *size, const char *name)
{
	for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
		if (!strcmp(purposes[i].name, name))
			return (uint64_t *)((char *)size + purposes[i].field);
	return &size->other;
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = xasprintf("%s%s", path, suffix);
	struct stat st;

	return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

/* dbstat knows the pages of each table; without it, the bytes of the blobs say most. */
#define PAGES_SQL "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"
#define BLOBS_SQL                                                                      \
	"SELECT 'profiles', ifnull(sum(length(data)), 0) FROM profiles "               \
	"UNION ALL SELECT 'totals', ifnull(sum(length(data)), 0) FROM totals "         \
	"UNION ALL SELECT 'procedures', ifnull(sum(length(data)), 0) FROM procedures " \
	"UNION ALL SELECT 'code', ifnull(sum(length(data)), 0) FROM code"

int store_size(struct store *s, struct store_size *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct store_size size = {0};
	int r;

	if (sqlite3_prepare_v2(s->db, PAGES_SQL, -1, &st, NULL)) {
		r = db_prepare(s, BLOBS_SQL, &st, e);
		if (r)
			return r;
	}
	while ((r = db_step(s, st, e)) > 0)
		*field_of(&size, db_text(st, 0)) += (uint64_t)sqlite3_column_int64(st, 1);
	if (r)
		return r;
	size.file = file_bytes(s->path, "") + file_bytes(s->path, "-wal");
	*out = size;
	return 0;
}
