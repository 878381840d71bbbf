#include "import/perf_file.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "import/perf_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC     "PERFILE2"
#define OLD_MAGIC "PERFFILE"
#define OTHER_END "2ELIFREP"

enum {
	CHUNK = 1 << 20,
	UNPACK = 1 << 18,
	FEATURE_MOST = 256 << 20,
	EVENTS_BYTES = 64 << 20,
	STREAM_HEADER = 16,
	SECTION = 16,      /* offset and size */
	FILE_HEADER = 104, /* with 256 bits of features */
	RECORD_HEADER = sizeof(struct perf_event_header),
};

static int damaged(const struct perf_file *f, struct err *e, const char *what)
{
	return err_set(e, -EBADMSG, "%s: damaged: %s; nothing was imported: record it again",
		f->name, what);
}

/* ---- bytes ---- */

/* Makes n bytes available from `used` on; false at the end of the records. */
static int fill(struct perf_file *f, size_t n, bool *there, struct err *e)
{
	while (f->in.n - f->used < n && !f->ended) {
		size_t want = f->left < CHUNK ? f->left : CHUNK;
		ssize_t got;

		if (f->used) {
			memmove(f->in.p, f->in.p + f->used, f->in.n - f->used);
			f->in.n -= f->used;
			f->used = 0;
		}
		buf_reserve(&f->in, CHUNK);
		do
			got = !want     ? 0
			      : f->pipe ? read(f->fd, f->in.p + f->in.n, want)
					: pread(f->fd, f->in.p + f->in.n, want, (off_t)f->at);
		while (got < 0 && errno == EINTR);
		if (got < 0)
			return err_errno(e, -errno, "%s: cannot read it", f->name);
		f->ended = got == 0;
		f->in.n += (size_t)got;
		f->at += (uint64_t)got;
		f->left -= f->left == UINT64_MAX ? 0 : (uint64_t)got;
	}
	*there = f->in.n - f->used >= n;
	return 0;
}

static int skip(struct perf_file *f, uint64_t n, struct err *e)
{
	while (n) {
		size_t step = n < CHUNK ? n : CHUNK;
		bool there;
		int r = fill(f, step, &there, e);

		if (r < 0)
			return r;
		if (!there)
			return damaged(f, e, "it ends within a record");
		f->used += step;
		n -= step;
	}
	return 0;
}

/* A section of a file, whole; -EBADMSG. */
static int read_section(struct perf_file *f, uint64_t offset, uint64_t size, uint64_t most,
	struct buf *out, struct err *e)
{
	int r;

	if (size > most)
		return damaged(f, e, "its header has nonsense sizes");
	if (offset > f->size || size > f->size - offset)
		return damaged(f, e, "it is shorter than its header says");
	out->n = 0;
	buf_reserve(out, size + 1);
	r = io_pread_full(f->fd, out->p, size, offset);
	if (r == -EBADMSG)
		return damaged(f, e, "it became shorter while it was read");
	if (r < 0)
		return err_errno(e, r, "%s: cannot read it", f->name);
	out->n = size;
	return 0;
}

/* ---- the header ---- */

static int read_events(
	struct perf_file *f, uint64_t each, uint64_t offset, uint64_t size, struct err *e)
{
	struct buf attrs = {0}, ids = {0};
	int r = read_section(f, offset, size, EVENTS_BYTES, &attrs, e);

	if (r == 0 && (each < PERF_ATTR_SIZE_VER0 + SECTION || size % each))
		r = damaged(f, e, "its header has nonsense sizes");
	for (size_t at = 0; r == 0 && at < attrs.n; at += each) {
		struct cursor c = cursor_over(attrs.p + at, each);
		struct perf_event_attr attr;
		uint64_t from, n;

		cursor_seek(&c, each - SECTION);
		from = cursor_u64(&c);
		n = cursor_u64(&c);
		if (!perf_take_attr(attrs.p + at, each - SECTION, &attr))
			r = damaged(f, e, "an event has a nonsense size");
		if (r == 0)
			r = read_section(f, from, n, EVENTS_BYTES, &ids, e);
		if (r == 0) {
			c = cursor_over(ids.p, ids.n);
			if (!perf_add_event(f, &attr, &c))
				r = damaged(f, e, "it has too many events");
		}
	}
	buf_deinit(&attrs);
	buf_deinit(&ids);
	return r;
}

/* Sections of features follow the records: one for each bit that is set, in their order. */
static int read_features(struct perf_file *f, const uint64_t bits[4], uint64_t at, struct err *e)
{
	struct buf table = {0}, body = {0};
	struct cursor c;
	size_t n = 0;
	int r;

	for (unsigned i = 0; i < 4; i++)
		n += (size_t)__builtin_popcountll(bits[i]);
	r = read_section(f, at, n * SECTION, PERF_FEATURES * SECTION, &table, e);
	c = cursor_over(table.p, table.n);
	for (uint32_t i = 0; r == 0 && i < PERF_FEATURES; i++) {
		uint64_t offset, size;

		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		offset = cursor_u64(&c);
		size = cursor_u64(&c);
		r = read_section(f, offset, size, FEATURE_MOST, &body, e);
		if (r == 0)
			perf_take_feature(f, i, cursor_over(body.p, body.n));
	}
	buf_deinit(&table);
	buf_deinit(&body);
	return r;
}

static int read_file_header(struct perf_file *f, struct err *e)
{
	struct buf header = {0};
	int r = read_section(f, 0, FILE_HEADER, FILE_HEADER, &header, e);
	struct cursor c = cursor_over(header.p, header.n);
	uint64_t each, attrs, attrs_size, bits[4];

	if (r < 0) {
		buf_deinit(&header);
		return r;
	}
	cursor_skip(&c, 16);
	each = cursor_u64(&c);
	attrs = cursor_u64(&c);
	attrs_size = cursor_u64(&c);
	f->at = cursor_u64(&c);
	f->left = cursor_u64(&c);
	cursor_skip(&c, 16); /* event types, of old */
	for (unsigned i = 0; i < 4; i++)
		bits[i] = cursor_u64(&c);
	buf_deinit(&header);
	r = read_events(f, each, attrs, attrs_size, e);
	if (r < 0)
		return r;
	f->facts.interrupted = !f->left;
	if (f->left)
		return f->at + f->left < f->at ? damaged(f, e, "its header has nonsense sizes")
					       : read_features(f, bits, f->at + f->left, e);
	f->left = UINT64_MAX; /* perf was killed: all that is there */
	return 0;
}

static int check_magic(struct perf_file *f, const uint8_t *p, struct err *e)
{
	if (!memcmp(p, MAGIC, 8))
		return 0;
	if (!memcmp(p, OTHER_END, 8))
		return err_set(e, -EBADMSG,
			"%s: recorded on a big-endian machine; culprit explains x86-64 only",
			f->name);
	if (!memcmp(p, OLD_MAGIC, 8))
		return err_set(e, -EPROTO,
			"%s: a format of before Linux 3.2; record it again with a newer perf",
			f->name);
	return err_set(e, -EBADMSG, "%s: no recording of perf; give a file that 'perf record' made",
		f->name);
}

/* A stream has a header of 16 bytes, which says so; a file's is longer. */
static int read_header(struct perf_file *f, struct err *e)
{
	struct stat st;
	struct cursor c;
	bool there;
	int r;

	f->pipe = true;
	f->left = STREAM_HEADER;
	r = fill(f, STREAM_HEADER, &there, e);
	if (r < 0)
		return r;
	if (!there)
		return err_set(e, -EBADMSG, "%s: %s; give a file that 'perf record' made", f->name,
			f->in.n ? "no recording of perf" : "it is empty");
	r = check_magic(f, f->in.p, e);
	if (r < 0)
		return r;
	c = cursor_over(f->in.p + 8, 8);
	f->in.n = f->used = 0;
	f->ended = false;
	f->left = UINT64_MAX;
	if (cursor_u64(&c) == STREAM_HEADER)
		return 0;
	f->pipe = false;
	if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL,
			"%s: a perf.data file cannot be read from a pipe; give its name, or record "
			"with 'perf record -o -'",
			f->name);
	f->size = (uint64_t)st.st_size;
	return read_file_header(f, e);
}

/* Recordings with --kcore or --threads are folders. */
static int open_path(struct perf_file *f, const char *path, struct err *e)
{
	_cleanup_free_ char *inside = xasprintf("%s/data", path);
	_cleanup_free_ char *more = xasprintf("%s/data.0", path);
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (access(more, F_OK) == 0)
			return err_set(e, -EINVAL,
				"%s: recorded with --threads, in several files; record it without",
				path);
		path = inside;
	}
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	return f->fd < 0 ? err_errno(e, -errno, "%s", path) : 0;
}

int perf_file_open(const char *path, struct perf_file **out, struct err *e)
{
	struct perf_file *f = xcalloc(1, sizeof *f);
	struct stat st;
	int r = 0;

	f->own = strcmp(path, "-") != 0;
	f->name = xstrdup(f->own ? path : "standard input");
	f->fd = STDIN_FILENO;
	if (f->own)
		r = open_path(f, path, e);
	if (r == 0 && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode))
		f->facts.written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (r == 0)
		r = read_header(f, e);
	if (r < 0) {
		perf_file_close(f);
		return r;
	}
	*out = f;
	return 0;
}

void perf_file_close(struct perf_file *f)
{
	if (!f)
		return;
	if (f->own && f->fd >= 0)
		close(f->fd);
	vec_each (ev, &f->events) {
		free(ev->name);
		vec_deinit(&ev->ids);
	}
	vec_deinit(&f->events);
	vec_each (b, &f->build_ids)
		free(b->path);
	vec_deinit(&f->build_ids);
	free(f->facts.host);
	free(f->facts.release);
	free(f->facts.machine);
	free(f->facts.cpu);
	free(f->facts.command);
	buf_deinit(&f->in);
	buf_deinit(&f->unpacked);
	buf_deinit(&f->packed);
	ZSTD_freeDStream(f->zstd);
	free(f->name);
	free(f);
}

/* ---- records ---- */

static uint16_t size_of(const uint8_t *record)
{
	return (uint16_t)(record[6] | record[7] << 8);
}

static uint32_t type_of(const uint8_t *record)
{
	return record[0] | (uint32_t)record[1] << 8 | (uint32_t)record[2] << 16 |
	       (uint32_t)record[3] << 24;
}

/* The next record of the file itself. */
static int next_raw(struct perf_file *f, const uint8_t **record, size_t *size, struct err *e)
{
	bool there;
	int r = fill(f, RECORD_HEADER, &there, e);

	if (r < 0)
		return r;
	if (!there && f->facts.interrupted)
		return 0;
	if (!there)
		return f->in.n > f->used || (f->left && f->left != UINT64_MAX)
			       ? damaged(f, e, "it ends before its records do")
			       : 0;
	*size = size_of(f->in.p + f->used);
	if (*size < RECORD_HEADER)
		return damaged(f, e, "a record has a nonsense size");
	r = fill(f, *size, &there, e);
	if (r < 0)
		return r;
	if (!there)
		return f->facts.interrupted ? 0 : damaged(f, e, "it ends within a record");
	*record = f->in.p + f->used;
	f->used += *size;
	return 1;
}

/* Pieces of one stream of zstd, in which records may begin in one piece and end in the next. */
static void begin_packed(struct perf_file *f, const uint8_t *p, size_t n)
{
	f->packed.n = f->packed_used = 0;
	buf_put(&f->packed, p, n);
	if (!f->zstd) {
		f->zstd = ZSTD_createDStream();
		ZSTD_initDStream(f->zstd);
	}
}

static bool has_packed(const struct perf_file *f)
{
	return f->packed_used < f->packed.n || f->withheld;
}

/* A little at a time: what is packed well could fill all memory. */
static int unpack(struct perf_file *f, struct err *e)
{
	ZSTD_inBuffer in = {f->packed.p, f->packed.n, f->packed_used};
	ZSTD_outBuffer out;
	size_t rc;

	if (f->unpacked_used) {
		f->unpacked.n -= f->unpacked_used;
		memmove(f->unpacked.p, f->unpacked.p + f->unpacked_used, f->unpacked.n);
		f->unpacked_used = 0;
	}
	buf_reserve(&f->unpacked, UNPACK);
	out = (ZSTD_outBuffer){f->unpacked.p + f->unpacked.n, UNPACK, 0};
	rc = ZSTD_decompressStream(f->zstd, &out, &in);
	if (ZSTD_isError(rc) || (in.pos == f->packed_used && !out.pos && !f->withheld))
		return damaged(f, e, "what is compressed in it cannot be unpacked");
	f->withheld = out.pos == UNPACK;
	f->unpacked.n += out.pos;
	f->packed_used = in.pos;
	return 0;
}

/* The next record of what was compressed, 0 when there is no whole one. */
static int next_unpacked(struct perf_file *f, const uint8_t **record, size_t *size, struct err *e)
{
	size_t left = f->unpacked.n - f->unpacked_used;
	const uint8_t *p = left ? f->unpacked.p + f->unpacked_used : NULL;

	if (left < RECORD_HEADER)
		return 0;
	*size = size_of(p);
	if (*size < RECORD_HEADER)
		return damaged(f, e, "a record has a nonsense size");
	if (left < *size)
		return 0;
	*record = p;
	f->unpacked_used += *size;
	return 1;
}

static int take_attr_record(struct perf_file *f, struct cursor *c, struct err *e)
{
	struct perf_event_attr attr;

	if (!perf_take_attr(c->at, cursor_left(c), &attr))
		return damaged(f, e, "an event has a nonsense size");
	cursor_skip(c, attr.size);
	return perf_add_event(f, &attr, c) ? 0 : damaged(f, e, "it has too many events");
}

/* What perf itself has put among the records: 1 when it is for the caller, too. */
static int take_own(struct perf_file *f, const uint8_t *record, size_t size, struct err *e)
{
	struct cursor c = cursor_over(record, size);
	uint16_t misc;
	uint64_t n;

	cursor_skip(&c, 4);
	misc = cursor_u16(&c);
	cursor_skip(&c, 2);
	switch (type_of(record)) {
	case PERF_USER_ATTR:
		return take_attr_record(f, &c, e);
	case PERF_USER_BUILD_ID:
		perf_take_build_id(f, misc, &c);
		return 0;
	case PERF_USER_EVENT_UPDATE:
		perf_take_event_update(f, &c);
		return 0;
	case PERF_USER_FEATURE:
		n = cursor_u64(&c);
		perf_take_feature(f, n < PERF_FEATURES ? (uint32_t)n : PERF_FEATURES, c);
		return 0;
	case PERF_USER_TRACING_DATA: /* these two have more behind them than their size says */
		return skip(f, (cursor_u32(&c) + 7ull) & ~7ull, e);
	case PERF_USER_AUXTRACE:
		n = cursor_u64(&c);
		f->aux += n;
		return skip(f, n, e);
	case PERF_USER_COMPRESSED:
		begin_packed(f, record + RECORD_HEADER, size - RECORD_HEADER);
		return 0;
	case PERF_USER_COMPRESSED2:
		n = cursor_u64(&c);
		if (c.failed || n > cursor_left(&c))
			return damaged(f, e, "a record has a nonsense size");
		begin_packed(f, c.at, n);
		return 0;
	case PERF_USER_FINISHED_ROUND:
		return 1;
	default:
		return 0;
	}
}

int perf_file_next(struct perf_file *f, const uint8_t **record, size_t *size, struct err *e)
{
	for (;;) {
		int r = next_unpacked(f, record, size, e);

		if (r == 0 && has_packed(f)) {
			r = unpack(f, e);
			if (r < 0)
				return r;
			continue;
		}
		if (r == 0)
			r = next_raw(f, record, size, e);
		if (r == 0 && f->unpacked.n > f->unpacked_used && !f->facts.interrupted)
			return damaged(f, e, "it ends within a record");
		if (r <= 0)
			return r;
		if (type_of(*record) < PERF_USER_FIRST)
			return 1;
		r = take_own(f, *record, *size, e);
		if (r)
			return r;
	}
}

size_t perf_file_events(const struct perf_file *f, const struct perf_event **out)
{
	*out = f->events.p;
	return f->events.n;
}

const struct perf_facts *perf_file_facts(const struct perf_file *f)
{
	return &f->facts;
}

uint64_t perf_file_aux_bytes(const struct perf_file *f)
{
	return f->aux;
}
