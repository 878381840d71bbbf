#include "image/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "image/elf_file.h"
#include "image/image_internal.h"

enum {
	MAP_MAX = 64 << 20,    /* bytes of a map */
	ENTRIES_MAX = 1 << 20, /* lines of a map that count */
	NAME_SHOWN = 1024,
	STATUS_MAX = 1 << 14,
	VDSO_MAX = 1 << 20,
};

/* ---- parsing ---- */

struct entry {
	uint64_t start, end;
	const char *name;
	uint32_t name_size;
	uint32_t line; /* later lines win */
};

struct entries {
	VEC(struct entry) list;
};

static const char *parse_hex(const char *s, const char *end, uint64_t *value)
{
	if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	uint64_t v = 0;
	const char *first = s;
	for (; s < end && s - first < 17; s++) {
		int digit = *s >= '0' && *s <= '9'   ? *s - '0'
			    : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
			    : *s >= 'A' && *s <= 'F' ? *s - 'A' + 10
						     : -1;
		if (digit < 0)
			break;
		v = v << 4 | (unsigned)digit;
	}
	*value = v;
	return s > first && s - first <= 16 && s < end && *s == ' ' ? s + 1 : NULL;
}

static bool parse_entry(const char *s, const char *end, struct entry *out)
{
	uint64_t size;
	s = parse_hex(s, end, &out->start);
	s = s ? parse_hex(s, end, &size) : NULL;
	if (!s || s == end || !size || size > UINT64_MAX - out->start)
		return false;
	out->end = out->start + size;
	out->name = s;
	out->name_size = (uint32_t)(end - s < NAME_SHOWN ? end - s : NAME_SHOWN);
	return !memchr(s, 0, out->name_size);
}

static size_t parse_entries(const char *text, size_t n, struct entries *out)
{
	size_t bad = 0;
	for (const char *line = text, *stop = text + n; line < stop;) {
		const char *end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		struct entry entry = {.line = (uint32_t)out->list.n};
		if (out->list.n < ENTRIES_MAX && parse_entry(line, end, &entry))
			*vec_add(&out->list) = entry;
		else if (end > line)
			bad++;
		line = end + 1;
	}
	return bad;
}

/* ---- overlaps ---- */

/* Sweeps over the entries by address; the heap holds those that cover the place, last line first.
 */
struct sweep {
	const struct entry *entries; /* by start */
	VEC(uint32_t) heap;
	struct procedures *out;
	uint32_t *rows;            /* by line: the row of the entry plus one, 0 while it has none */
	const struct entry *entry; /* whose piece is growing, NULL at first */
	struct range piece;
};

static int compare_entries(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static bool heap_above(const struct sweep *s, size_t a, size_t b)
{
	return s->entries[s->heap.p[a]].line > s->entries[s->heap.p[b]].line;
}

static void heap_swap(struct sweep *s, size_t a, size_t b)
{
	uint32_t t = s->heap.p[a];
	s->heap.p[a] = s->heap.p[b];
	s->heap.p[b] = t;
}

static void heap_push(struct sweep *s, uint32_t entry)
{
	*vec_add(&s->heap) = entry;
	for (size_t i = s->heap.n - 1; i > 0 && heap_above(s, i, (i - 1) / 2); i = (i - 1) / 2)
		heap_swap(s, i, (i - 1) / 2);
}

static void heap_pop(struct sweep *s)
{
	s->heap.p[0] = s->heap.p[--s->heap.n];
	for (size_t i = 0, child; (child = 2 * i + 1) < s->heap.n; i = child) {
		if (child + 1 < s->heap.n && heap_above(s, child + 1, child))
			child++;
		if (!heap_above(s, child, i))
			return;
		heap_swap(s, i, child);
	}
}

/* The first piece of an entry is its row; pieces that later lines cut off are fragments. */
static void finish_piece(struct sweep *s)
{
	const struct entry *e = s->entry;
	if (!e)
		return;
	if (s->rows[e->line]) {
		procedures_add_fragment(
			s->out, s->rows[e->line] - 1, s->piece.start, s->piece.size);
		return;
	}
	procedures_add(s->out, s->piece.start, s->piece.size, PROCEDURE_JIT, e->name, e->name_size);
	s->rows[e->line] = (uint32_t)s->out->rows.n;
}

static void add_piece(struct sweep *s, const struct entry *e, uint64_t start, uint64_t end)
{
	if (s->entry == e && s->piece.start + s->piece.size == start) {
		s->piece.size += end - start;
		return;
	}
	finish_piece(s);
	s->entry = e;
	s->piece = (struct range){.start = start, .size = end - start};
}

static void resolve_overlaps(struct entries *entries, struct procedures *out)
{
	size_t n = entries->list.n, next = 0;
	vec_sort(&entries->list, compare_entries);
	_cleanup_free_ uint32_t *rows = xcalloc(n, sizeof *rows);
	struct sweep s = {.entries = entries->list.p, .out = out, .rows = rows};
	uint64_t at = 0;
	while (next < n || s.heap.n) {
		if (!s.heap.n)
			at = s.entries[next].start;
		for (; next < n && s.entries[next].start <= at; next++)
			heap_push(&s, (uint32_t)next);
		const struct entry *top = &s.entries[s.heap.p[0]];
		if (top->end <= at) {
			heap_pop(&s);
			continue;
		}
		uint64_t stop = next < n && s.entries[next].start < top->end ? s.entries[next].start
									     : top->end;
		add_piece(&s, top, at, stop);
		at = stop;
	}
	finish_piece(&s);
	vec_deinit(&s.heap);
	procedures_finish(out);
}

int jit_map_parse(const char *path, const char *text, size_t n, struct image **out,
	size_t *bad_lines, struct err *e)
{
	if (n > MAP_MAX)
		return err_set(e, -EFBIG, "%s: larger than %d MB, ignored", path, MAP_MAX >> 20);
	struct entries entries = {0};
	*bad_lines = parse_entries(text, n, &entries);
	struct image *im = image_create(IMAGE_JIT, path);
	im->has_functions = true;
	*vec_add(&im->segments) = (struct segment){.size = UINT64_MAX};
	resolve_overlaps(&entries, &im->procedures);
	vec_deinit(&entries.list);
	*out = im;
	return 0;
}

/* ---- the map of a process ---- */

static const char *status_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	return at && (at == status || at[-1] == '\n') ? at + strlen(name) : NULL;
}

/* Within the root of the process, even when a directory on the way is a link made to lead out. */
static int open_inside(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

/* A map that somebody else wrote could give any name to the code of the process. */
static int check_owner(int fd, const struct jit_source *p, const char *path, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EPERM, "%s: not a plain file, ignored", path);
	if (st.st_uid != p->user && st.st_uid != p->effective && st.st_uid != 0)
		return err_set(e, -EPERM,
			"%s: belongs to user %u, not to the process's user %u: ignored", path,
			(unsigned)st.st_uid, p->user);
	return 0;
}

static int read_map(int fd, const char *path, struct image **out, struct err *e)
{
	char self[32];
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	struct buf text = {0};
	size_t bad;
	int r = io_read_file(AT_FDCWD, self, MAP_MAX, &text);
	if (r < 0)
		err_errno(e, r, "%s", path);
	else
		r = jit_map_parse(path, (const char *)text.p, text.n, out, &bad, e);
	buf_deinit(&text);
	return r;
}

/* Everything goes through one descriptor of /proc/PID: a pid that is reused cannot mix two. */
int jit_source_open(pid_t pid, struct jit_source *out)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	struct jit_source p = {.root = -1};
	struct buf status = {0};
	int r = io_read_file(dir, "status", STATUS_MAX, &status);
	if (!r) {
		const char *text = buf_cstr(&status);
		const char *users = status_field(text, "Uid:"),
			   *pids = status_field(text, "NSpid:");
		size_t line = pids ? strcspn(pids, "\n") : 0;
		while (line && pids[line - 1] >= '0' && pids[line - 1] <= '9')
			line--; /* the last is that of the innermost namespace */
		p.pid = pids ? atoi(pids + line) : (int)pid;
		if (!users || sscanf(users, "%u %u", &p.user, &p.effective) != 2)
			r = -EBADMSG;
	}
	buf_deinit(&status);
	if (r < 0)
		return r;
	p.root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p.root < 0)
		return -errno;
	*out = p;
	return 0;
}

void jit_source_close(struct jit_source *s)
{
	closep(&s->root);
	s->root = -1;
}

int jit_source_read(const struct jit_source *s, struct image **out, struct err *e)
{
	char path[48];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", s->pid);
	_cleanup_close_ int fd = open_inside(s->root, path);
	if (fd < 0)
		return err_errno(e, fd == -ELOOP ? -EPERM : fd, "%s", path);
	int r = check_owner(fd, s, path, e);
	return r < 0 ? r : read_map(fd, path, out, e);
}

int jit_map_open(pid_t pid, struct image **out, struct err *e)
{
	struct jit_source s;
	int r = jit_source_open(pid, &s);
	if (r < 0)
		return err_errno(e, r, "process %d", (int)pid);
	r = jit_source_read(&s, out, e);
	jit_source_close(&s);
	return r;
}

/* ---- the vDSO ---- */

/* The kernel maps it as a whole file; its end is that of its segments and section headers. */
static size_t vdso_size(const uint8_t *start)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)start;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(start + h->e_phoff);
	uint64_t size = h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize;
	for (size_t i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_filesz > size)
			size = p[i].p_offset + p[i].p_filesz;
	}
	return size;
}

int vdso_open(struct image **out, struct err *e)
{
	const uint8_t *start = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	size_t size = start ? vdso_size(start) : 0;
	if (!size || size > VDSO_MAX)
		return err_set(e, -ENOENT, "[vdso]: this process has none");
	_cleanup_close_ int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "[vdso]: cannot copy it");
	ssize_t put = write(fd, start, size);
	if (put < 0 || (size_t)put != size)
		return err_errno(e, put < 0 ? -errno : -EIO, "[vdso]: cannot copy it");
	struct image *im;
	int r = image_open("[vdso]", fd, &im, e);
	if (r < 0)
		return r;
	image_release(im);
	im->kind = IMAGE_VDSO;
	buf_put(&im->bytes, start, size);
	*out = im;
	return 0;
}
