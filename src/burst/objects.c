#include "burst/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/image.h"
#include "rt/objects.h"
#include "store/object_index.h"
#include "store/traces.h"

/* Return addresses of a path, as the process saw them. */
struct raw_path {
	uint32_t process, number;
	uint32_t first, n;
};

struct raw_key {
	uint32_t process, number;
};

struct path_number {
	struct raw_key key;
	uint32_t path; /* + 1 */
};

/* A file that was not edited, opened for its names. */
struct other {
	char *path;
	struct image *image;
};

struct reading {
	const struct burst_image *images;
	size_t nimages;
	struct object_set all; /* objects with raw numbers of paths, images and stacks */
	VEC(struct raw_path) paths;
	VEC(uint64_t) addresses;
	VEC(struct other) others;
	struct hmap numbers; /* of paths */
	struct object_set *out;
};

/* ---- chunks ---- */

static void take_image(struct reading *r, uint32_t process, const uint64_t *words, uint32_t n)
{
	char path[OBJECTS_PAGE], *real;
	size_t size = (n - 3) * sizeof *words;
	struct object_image *m;

	if (n < 4 || size >= sizeof path)
		return;
	memcpy(path, words + 3, size);
	path[size] = 0;
	if (words[2] <= words[1])
		return;
	real = realpath(path, NULL);
	m = vec_add(&r->all.images);
	*m = (struct object_image){.process = process,
		.bias = words[0],
		.start = words[1],
		.end = words[2],
		.name = strtab_add(&r->all.names, real ? real : path)};
	for (size_t i = 0; i < r->nimages; i++)
		if (!strcmp(r->all.names.strings[m->name], r->images[i].path))
			m->image = r->images[i].key;
	free(real);
}

static void take_path(struct reading *r, uint32_t process, const uint64_t *words, uint32_t n)
{
	if (n < 2 || n > OBJECTS_DEPTH + 1)
		return;
	*vec_add(&r->paths) =
		(struct raw_path){process, (uint32_t)words[0], (uint32_t)r->addresses.n, n - 1};
	for (uint32_t i = 1; i < n; i++)
		*vec_add(&r->addresses) = words[i];
}

static void take_notes(struct reading *r, uint32_t process, const uint8_t *p, uint64_t left)
{
	while (left >= sizeof(struct objects_note)) {
		struct objects_note note;
		uint64_t words[OBJECTS_PAGE / 8];

		memcpy(&note, p, sizeof note);
		p += sizeof note;
		left -= sizeof note;
		if (note.words > left / 8 || note.words > OBJECTS_PAGE / 8)
			return;
		memcpy(words, p, note.words * sizeof *words);
		if (note.kind == OBJECTS_IMAGE)
			take_image(r, process, words, note.words);
		else if (note.kind == OBJECTS_PATH)
			take_path(r, process, words, note.words);
		p += note.words * sizeof *words;
		left -= note.words * sizeof *words;
	}
}

static void take_objects(struct reading *r, uint32_t process, const uint8_t *p, uint64_t bytes)
{
	for (; bytes >= sizeof(struct objects_record); bytes -= sizeof(struct objects_record)) {
		struct objects_record o;

		memcpy(&o, p, sizeof o);
		p += sizeof o;
		if (o.address && o.size)
			*vec_add(&r->all.objects) = (struct object){
				process, o.path, o.ordinal, o.address, o.size, o.time};
	}
}

static void take_chunk(struct reading *r, const uint8_t *p, uint64_t size)
{
	struct objects_chunk head;
	uint64_t bytes;

	if (size < sizeof head)
		return;
	memcpy(&head, p, sizeof head);
	bytes = head.used < size - sizeof head ? head.used : size - sizeof head;
	if (head.kind == OBJECTS_NOTES)
		take_notes(r, head.process, p + sizeof head, bytes);
	if (head.kind != OBJECTS_OBJECTS)
		return;
	take_objects(r, head.process, p + sizeof head, bytes);
	*vec_add(&r->all.stacks) = (struct object_stack){head.process, head.thread, head.stack};
}

/* ---- paths ---- */

static const struct object_image *image_at(const struct reading *r, uint32_t process, uint64_t pc)
{
	for (size_t i = r->all.images.n; i--;) {
		const struct object_image *m = &r->all.images.p[i];

		if (m->process == process && pc - m->start < m->end - m->start)
			return m;
	}
	return NULL;
}

static struct image *open_other(struct reading *r, const char *path)
{
	struct other *o;

	vec_each (known, &r->others)
		if (!strcmp(known->path, path))
			return known->image;
	o = vec_add(&r->others);
	*o = (struct other){.path = xstrdup(path)};
	if (image_open_path(path, &o->image, NULL))
		o->image = NULL;
	return o->image;
}

static const struct burst_image *edited(const struct reading *r, uint64_t key)
{
	for (size_t i = 0; i < r->nimages && key; i++)
		if (r->images[i].key == key)
			return &r->images[i];
	return NULL;
}

/* In an edited file, the original's address; else the name that the file has for it. */
static void add_frame(struct reading *r, uint32_t process, uint64_t pc)
{
	const struct object_image *m = image_at(r, process, pc);
	const struct burst_image *b = m ? edited(r, m->image) : NULL;
	const char *path = m ? r->all.names.strings[m->name] : NULL;
	struct image *im = path ? open_other(r, path) : NULL;
	struct object_frame f = {.at = pc - (m ? m->bias : 0)};
	const struct procedure *p;
	char label[512] = "";
	uint64_t old = b ? returns_old(&b->returns, f.at) : 0;

	f.at = old ? old : f.at;
	p = im ? image_procedure_at(im, f.at - 1) : NULL;
	f.procedure = p ? p->start : f.at;
	f.image = b && p ? b->key : 0;
	if (!f.image && p)
		procedure_label(p, path, label, sizeof label);
	else if (!f.image)
		snprintf(label, sizeof label, "0x%llx", (unsigned long long)pc);
	f.name = strtab_add(&r->out->names, label);
	*vec_add(&r->out->frames) = f;
}

static int by_number(const void *a, const void *b)
{
	const struct raw_path *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static const struct raw_path *find_raw(const struct reading *r, uint32_t process, uint32_t number)
{
	struct raw_path key = {process, number, 0, 0};

	return r->paths.n ? bsearch(&key, r->paths.p, r->paths.n, sizeof key, by_number) : NULL;
}

static uint32_t path_of(struct reading *r, const struct object *o)
{
	struct raw_key key = {o->process, o->path};
	const struct raw_path *raw;
	struct path_number *n;
	bool fresh;

	if (!o->path)
		return OBJECT_NONE;
	n = hmap_put(&r->numbers, &key, &fresh);
	raw = fresh ? find_raw(r, o->process, o->path) : NULL;
	if (raw) {
		*vec_add(&r->out->paths) = (struct object_path){(uint32_t)r->out->frames.n, raw->n};
		n->path = (uint32_t)r->out->paths.n;
		for (uint32_t i = 0; i < raw->n; i++)
			add_frame(r, o->process, r->addresses.p[raw->first + i]);
	}
	return n->path ? n->path - 1 : OBJECT_NONE;
}

/* ---- what was touched ---- */

static int mark_touched(const struct reading *r, const struct buf *traces, bool *touched)
{
	struct object_index *x = object_index_create(&r->all);
	struct trace_reader t;
	struct trace_burst b;
	int rc = trace_reader_init(&t, traces->p, traces->n);

	while (!rc && (rc = trace_reader_part(&t)) > 0)
		while ((rc = trace_reader_next(&t, &b)) > 0)
			for (size_t i = 0; i < b.n; i++) {
				uint32_t o = object_index_find(
					x, b.process, b.time, b.references[i].address);

				if (o != OBJECT_NONE)
					touched[o] = true;
			}
	trace_reader_deinit(&t);
	object_index_destroy(x);
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->born < y->born ? -1 : x->born > y->born;
}

static void keep_images(struct reading *r)
{
	vec_each (m, &r->all.images) {
		struct object_image *to = vec_add(&r->out->images);

		*to = *m;
		to->name = strtab_add(&r->out->names, r->all.names.strings[m->name]);
	}
	vec_each (s, &r->all.stacks)
		*vec_add(&r->out->stacks) = *s;
}

static int keep_touched(struct reading *r, const struct buf *traces, struct burst_objects_sum *sum)
{
	bool *touched = xcalloc(r->all.objects.n + 1, sizeof *touched);
	int rc;

	vec_sort(&r->all.objects, by_place);
	vec_sort(&r->paths, by_number);
	rc = mark_touched(r, traces, touched);
	strtab_add(&r->out->names, "");
	for (size_t i = 0; i < r->all.objects.n && !rc; i++) {
		struct object o = r->all.objects.p[i];

		if (!touched[i])
			continue;
		o.path = path_of(r, &o);
		*vec_add(&r->out->objects) = o;
	}
	keep_images(r);
	sum->objects = r->all.objects.n;
	sum->touched = r->out->objects.n;
	free(touched);
	return rc;
}

static void reading_deinit(struct reading *r)
{
	vec_each (o, &r->others) {
		image_destroy(o->image);
		free(o->path);
	}
	vec_deinit(&r->others);
	vec_deinit(&r->paths);
	vec_deinit(&r->addresses);
	hmap_deinit(&r->numbers);
	object_set_deinit(&r->all);
}

/* ---- from outside ---- */

int burst_objects_parse(const void *p, size_t size, const struct burst_image *images, size_t n,
	const struct buf *traces, struct object_set *out, struct burst_objects_sum *sum)
{
	struct reading r = {.images = images, .nimages = n, .out = out};
	struct objects_file file;
	int rc;

	*sum = (struct burst_objects_sum){0};
	if (size < OBJECTS_PAGE)
		return -EBADMSG;
	memcpy(&file, p, sizeof file);
	if (file.magic != OBJECTS_MAGIC)
		return -EBADMSG;
	sum->lost = file.lost;
	hmap_init(&r.numbers, sizeof(struct path_number), sizeof(struct raw_key));
	for (size_t at = OBJECTS_PAGE; at < size; at += OBJECTS_CHUNK)
		take_chunk(&r, (const uint8_t *)p + at,
			size - at < OBJECTS_CHUNK ? size - at : OBJECTS_CHUNK);
	rc = keep_touched(&r, traces, sum);
	reading_deinit(&r);
	return rc;
}

int burst_objects_read(const char *path, const struct burst_image *images, size_t n,
	const struct buf *traces, struct object_set *out, struct burst_objects_sum *sum,
	struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;
	int rc = -EBADMSG;

	if (fd < 0 || fstat(fd, &st))
		return err_errno(e, -errno, "%s", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED) {
		rc = burst_objects_parse(p, (size_t)st.st_size, images, n, traces, out, sum);
		munmap(p, (size_t)st.st_size);
	}
	return rc ? err_set(e, rc, "%s: the log of allocations is damaged", path) : 0;
}

int burst_objects_create(const char *path, uint64_t bytes, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char page[OBJECTS_PAGE] = {0};
	struct objects_file file = {.magic = OBJECTS_MAGIC, .most = bytes / OBJECTS_CHUNK};
	int rc;

	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot be made", path);
	memcpy(page, &file, sizeof file);
	rc = io_pwrite_full(fd, page, sizeof page, 0);
	return rc ? err_errno(e, rc, "%s: cannot be written", path) : 0;
}
