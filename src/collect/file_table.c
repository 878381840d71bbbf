#include "collect/file_table.h"

#include "base/mem.h"

#include <string.h>

enum { FILES_MOST = 32768 };

/* Paths are compared where hashes agree; `twist` sets those apart that only look alike. */
struct file_key {
	uint64_t path_hash, inode, generation;
	uint32_t major, minor;
	uint32_t twist;
	struct image_id build_id;
	uint8_t pad[2];
};

struct file_entry {
	struct file_key key;
	uint32_t number;
};

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/*
 * The kernel names memory "//anon", "[heap]", "[anon:NAME]" or after the object behind it. A memfd
 * with a build-id holds an executable file and is treated as one.
 */
enum mapped_kind mapped_kind_of(const char *path, const struct image_id *build_id)
{
	static const char *const memory[] = {
		"//",
		"/dev/zero",
		"/memfd:",
		"/SYSV",
		"/anon_hugepage",
	};

	if (path[0] != '/')
		return strcmp(path, "[vdso]") ? MAPPED_ANON : MAPPED_VDSO;
	/* Each record passes here: nearly all are decided by their second letter. */
	if (!strchr("/dmSa", path[1]))
		return MAPPED_FILE;
	for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
		if (starts_with(path, memory[i]))
			return build_id->size ? MAPPED_FILE : MAPPED_ANON;
	}
	return MAPPED_FILE;
}

static struct file_key key_of(const struct mapped_file *f)
{
	struct file_key k;

	memset(&k, 0, sizeof k);
	k.path_hash = hash_bytes(f->path, strlen(f->path));
	k.inode = f->inode;
	k.generation = f->generation;
	k.major = f->major;
	k.minor = f->minor;
	if (f->build_id.size <= sizeof f->build_id.bytes) {
		k.build_id.size = f->build_id.size;
		memcpy(k.build_id.bytes, f->build_id.bytes, f->build_id.size);
	}
	return k;
}

/* A few files make up nearly all records: where to look for this one first. */
static uint32_t *recent_place(struct file_table *t, const struct mapped_file *f)
{
	uint64_t spread = f->inode * 0x9e3779b97f4a7c15;

	return &t->recent[f->build_id.size ? f->build_id.bytes[0] : spread >> 56];
}

static bool same_file(const struct mapped_file *a, const struct mapped_file *b)
{
	return a->inode == b->inode && a->build_id.size == b->build_id.size &&
	       !memcmp(a->build_id.bytes, b->build_id.bytes, a->build_id.size) &&
	       a->generation == b->generation && a->major == b->major && a->minor == b->minor &&
	       !strcmp(a->path, b->path);
}

static void note_opener(struct mapped_file *f, pid_t pid)
{
	size_t i = 0;

	if (f->openers[0] == pid)
		return;
	while (i < MAPPED_OPENERS - 1 && f->openers[i] != pid)
		i++;
	memmove(f->openers + 1, f->openers, i * sizeof *f->openers);
	f->openers[0] = pid;
}

static uint32_t new_number(struct file_table *t)
{
	if (t->free.n)
		return t->free.p[--t->free.n];
	vec_add(&t->files);
	return (uint32_t)t->files.n - 1;
}

static void add_file(struct file_table *t, struct file_entry *entry, const struct mapped_file *key)
{
	uint32_t n = new_number(t);

	entry->number = n;
	t->files.p[n] = (struct mapped_file){.path = xstrdup(key->path),
		.build_id = entry->key.build_id,
		.inode = key->inode,
		.generation = key->generation,
		.major = key->major,
		.minor = key->minor,
		.seen = key->seen,
		.kind = mapped_kind_of(key->path, &key->build_id),
		.serial = ++t->serial};
	t->bytes += strlen(key->path) + 1;
}

void file_table_init(struct file_table *t)
{
	*t = (struct file_table){0};
	hmap_init(&t->index, sizeof(struct file_entry), sizeof(struct file_key));
	file_table_add(t, &(struct mapped_file){.path = (char[]){"[anon]"}}, 0, NULL);
}

void file_table_deinit(struct file_table *t)
{
	vec_each (f, &t->files)
		free(f->path);
	vec_deinit(&t->files);
	vec_deinit(&t->free);
	hmap_deinit(&t->index);
}

/* Finds the entry or makes one; NULL when there are too many. */
static struct file_entry *find_entry(
	struct file_table *t, const struct mapped_file *key, bool *fresh)
{
	struct file_entry *entry;
	struct file_key k = key_of(key);

	for (;; k.twist++) {
		*fresh = false;
		if (file_table_count(t) < FILES_MOST)
			entry = hmap_put(&t->index, &k, fresh);
		else
			entry = hmap_get(&t->index, &k);
		if (!entry || *fresh || !strcmp(t->files.p[entry->number].path, key->path))
			return entry;
	}
}

uint32_t file_table_add(struct file_table *t, const struct mapped_file *key, pid_t pid, bool *fresh)
{
	uint32_t *recent = recent_place(t, key);
	struct file_entry *entry;
	bool added = false;

	if (!t->files.n || *recent == FILE_ANON || !same_file(&t->files.p[*recent], key)) {
		/* All memory is one file: its mappings then grow together. */
		bool memory =
			t->files.n && mapped_kind_of(key->path, &key->build_id) == MAPPED_ANON;

		entry = memory ? NULL : find_entry(t, key, &added);
		if (entry && added)
			add_file(t, entry, key);
		*recent = entry ? entry->number : FILE_ANON;
	}
	if (fresh)
		*fresh = added;
	if (*recent != FILE_ANON)
		note_opener(&t->files.p[*recent], pid);
	return *recent;
}

void file_table_mark(struct file_table *t, uint32_t n)
{
	t->files.p[n].marked = true;
}

void file_table_sweep(struct file_table *t)
{
	VEC(struct file_key) dead = {0};

	memset(t->recent, 0, sizeof t->recent);
	t->files.p[FILE_ANON].marked = true;
	for (struct file_entry *e = NULL; (e = hmap_next(&t->index, e));) {
		struct mapped_file *f = &t->files.p[e->number];

		if (!f->marked) {
			*vec_add(&dead) = e->key;
			*vec_add(&t->free) = e->number;
			t->bytes -= strlen(f->path) + 1;
			free(f->path);
			*f = (struct mapped_file){0};
		}
		f->marked = false;
	}
	vec_each (k, &dead)
		hmap_delete(&t->index, k);
	vec_deinit(&dead);
}

size_t file_table_count(const struct file_table *t)
{
	return t->files.n - t->free.n;
}

size_t file_table_memory(const struct file_table *t)
{
	return t->files.space * sizeof *t->files.p + t->free.space * sizeof *t->free.p +
	       t->index.slots * (sizeof(struct file_entry) + sizeof(uint32_t)) + t->bytes;
}
