/* The line table of a unit for code that was moved (DWARF 5, section 6.2). */
#include "edit/debug_internal.h"

#include "base/mem.h"

enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC = 2,
	LNS_ADVANCE_LINE = 3,
	LNS_SET_FILE = 4,
	LNS_SET_COLUMN = 5,
	LNS_NEGATE_STMT = 6,
	LNS_PROLOGUE_END = 10,
	LNS_EPILOGUE_BEGIN = 11,
	LNE_END_SEQUENCE = 1,
	LNE_SET_ADDRESS = 2,
	LNE_SET_DISCRIMINATOR = 4,
};

struct row {
	uint64_t address, file;
	int line, column;
	unsigned discriminator;
	bool is_stmt, end, prologue_end, epilogue_begin;
};

struct line_header {
	size_t size; /* of all in front of the program */
	uint8_t opcode_base, line_range;
	int8_t line_base;
	bool is_stmt;
};

struct line_writer {
	struct buf *out;
	struct line_header header;
	struct row now; /* the registers of the machine that reads it */
	bool open;      /* a sequence was begun */
};

typedef VEC(struct row) row_list;

/* ---- what there was ---- */

/* Only what can be copied as it is and written to by the byte. */
static bool read_header(struct cursor c, struct line_header *h)
{
	uint32_t length = cursor_u32(&c);
	uint16_t version = cursor_u16(&c);
	uint32_t rest;

	if (length >= 0xfffffff0 || version < 2 || version > 5)
		return false;
	if (version == 5 && (cursor_u8(&c) != 8 || cursor_u8(&c)))
		return false;
	rest = cursor_u32(&c);
	h->size = cursor_offset(&c) + rest;
	if (cursor_u8(&c) != 1 || (version >= 4 && cursor_u8(&c) != 1))
		return false;
	h->is_stmt = cursor_u8(&c);
	h->line_base = (int8_t)cursor_u8(&c);
	h->line_range = cursor_u8(&c);
	h->opcode_base = cursor_u8(&c);
	return !c.failed && h->line_range && h->opcode_base > LNS_EPILOGUE_BEGIN && rest < length &&
	       h->size <= (size_t)(c.end - c.start);
}

static bool read_row(Dwarf_Line *line, struct row *out)
{
	Dwarf_Files *files;
	Dwarf_Addr address;
	size_t file;

	if (dwarf_lineaddr(line, &address) || dwarf_line_file(line, &files, &file) ||
		dwarf_lineno(line, &out->line) || dwarf_linecol(line, &out->column) ||
		dwarf_linediscriminator(line, &out->discriminator) ||
		dwarf_linebeginstatement(line, &out->is_stmt) ||
		dwarf_lineendsequence(line, &out->end) ||
		dwarf_lineprologueend(line, &out->prologue_end) ||
		dwarf_lineepiloguebegin(line, &out->epilogue_begin))
		return false;
	out->address = address;
	out->file = file;
	return true;
}

static bool read_rows(const struct debug_unit *u, row_list *out)
{
	Dwarf_Die die = u->die;
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(&die, &lines, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!read_row(dwarf_onesrcline(lines, i), vec_add(out)))
			return false;
	return true;
}

/* ---- the program ---- */

static void put_extended(struct line_writer *w, uint8_t op, const struct buf *operand)
{
	buf_u8(w->out, 0);
	buf_uleb(w->out, operand->n + 1);
	buf_u8(w->out, op);
	buf_put(w->out, operand->p, operand->n);
}

static void put_address(struct line_writer *w, uint64_t address)
{
	struct buf operand = {0};

	if (w->open) {
		buf_u8(w->out, LNS_ADVANCE_PC);
		buf_uleb(w->out, address - w->now.address);
	} else {
		buf_u64(&operand, address);
		put_extended(w, LNE_SET_ADDRESS, &operand);
		buf_deinit(&operand);
		/* Which file is the first readers do not agree on: it is always said. */
		w->now = (struct row){.file = UINT64_MAX, .line = 1, .is_stmt = w->header.is_stmt};
		w->open = true;
	}
	w->now.address = address;
}

static void put_registers(struct line_writer *w, const struct row *r)
{
	if (r->file != w->now.file) {
		buf_u8(w->out, LNS_SET_FILE);
		buf_uleb(w->out, r->file);
	}
	if (r->column != w->now.column) {
		buf_u8(w->out, LNS_SET_COLUMN);
		buf_uleb(w->out, (uint64_t)r->column);
	}
	if (r->is_stmt != w->now.is_stmt)
		buf_u8(w->out, LNS_NEGATE_STMT);
	if (r->discriminator) {
		struct buf operand = {0};

		buf_uleb(&operand, r->discriminator);
		put_extended(w, LNE_SET_DISCRIMINATOR, &operand);
		buf_deinit(&operand);
	}
	if (r->prologue_end)
		buf_u8(w->out, LNS_PROLOGUE_END);
	if (r->epilogue_begin)
		buf_u8(w->out, LNS_EPILOGUE_BEGIN);
}

/* A row at an address; one byte for most. */
static void put_row(struct line_writer *w, const struct row *r, uint64_t address)
{
	int lines = r->line - (w->open ? w->now.line : 1);
	uint64_t step = w->open ? address - w->now.address : UINT64_MAX;
	int64_t line = (int64_t)lines - w->header.line_base, special = UINT8_MAX + 1;

	if (line >= 0 && line < w->header.line_range && step < 256)
		special = line + (int64_t)step * w->header.line_range + w->header.opcode_base;
	if (special > UINT8_MAX)
		put_address(w, address);
	put_registers(w, r);
	if (special > UINT8_MAX && lines) {
		buf_u8(w->out, LNS_ADVANCE_LINE);
		buf_sleb(w->out, lines);
	}
	buf_u8(w->out, special > UINT8_MAX ? LNS_COPY : (uint8_t)special);
	w->now = *r;
	w->now.address = address;
}

static void put_end(struct line_writer *w, uint64_t address)
{
	if (!w->open)
		return;
	put_address(w, address);
	put_extended(w, LNE_END_SEQUENCE, &(struct buf){0});
	w->open = false;
}

/* ---- from old rows to new ---- */

/* Rows of one sequence, without its end. */
struct sequence {
	const struct row *rows;
	size_t n;
	uint64_t start, end;
};

/* The first of the rows from an address on. */
static size_t find_row(const struct sequence *s, uint64_t address)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->rows[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What holds at an address where no row begins: nobody shall stop there. */
static void put_between(struct line_writer *w, const struct sequence *s, size_t next, uint64_t at)
{
	struct row r;

	if (!next)
		return;
	r = s->rows[next - 1];
	r.is_stmt = r.prologue_end = r.epilogue_begin = false;
	if (!w->open || r.file != w->now.file || r.line != w->now.line || r.column != w->now.column)
		put_row(w, &r, at);
}

static void put_span(struct line_writer *w, const struct debug_map *m, const struct sequence *s,
	const struct debug_piece *p, const struct edit_span *span)
{
	size_t i = find_row(s, span->old);
	bool begins = i < s->n && s->rows[i].address == span->old;
	uint64_t end = span->old + (span->copied ? span->size : 1);

	/* Code that was added before an instruction has its rows already. */
	if (!begins || debug_piece_at(m, p, span->old) != span->at) {
		while (i < s->n && s->rows[i].address == span->old)
			i++;
		put_between(w, s, i, span->at);
	}
	for (; i < s->n && s->rows[i].address < end; i++)
		put_row(w, &s->rows[i], span->at + (s->rows[i].address - span->old));
}

static void put_piece(struct line_writer *w, const struct debug_map *m, const struct sequence *s,
	const struct debug_piece *p)
{
	const struct edit_fragment *f = p->fragment;

	for (size_t i = 0; i < f->nspans; i++)
		put_span(w, m, s, p, &f->spans[i]);
	put_end(w, f->start + f->size);
}

/* What was not moved stays as it was. */
static void put_old(struct line_writer *w, const struct sequence *s, uint64_t start, uint64_t end)
{
	for (size_t i = find_row(s, start); i < s->n && s->rows[i].address < end; i++)
		put_row(w, &s->rows[i], s->rows[i].address);
	put_end(w, end);
}

static void put_sequence(struct line_writer *w, const struct debug_map *m, const struct sequence *s)
{
	uint64_t at = s->start;

	for (size_t i = debug_map_from(m, s->start); i < m->pieces.n; i++) {
		const struct debug_piece *p = &m->pieces.p[i];

		if (p->old >= s->end)
			break;
		if (p->old > at)
			put_old(w, s, at, p->old);
		put_piece(w, m, s, p);
		at = p->old_end > at ? p->old_end : at;
	}
	if (at < s->end)
		put_old(w, s, at, s->end);
}

static void put_program(struct line_writer *w, const struct debug_map *m, const row_list *rows)
{
	size_t first = 0;

	for (size_t i = 0; i < rows->n; i++) {
		struct sequence s = {.rows = rows->p + first,
			.n = i - first,
			.start = rows->p[first].address,
			.end = rows->p[i].address};

		if (!rows->p[i].end)
			continue;
		if (s.n && s.start < s.end)
			put_sequence(w, m, &s);
		first = i + 1;
	}
}

uint64_t debug_lines_write(struct debug *d, const struct debug_unit *u, uint64_t old_offset)
{
	struct cursor c = d->sections[DEBUG_LINE].old;
	struct line_writer w = {.out = debug_buf(d, DEBUG_LINE)};
	row_list rows = {0};
	uint64_t at = w.out->n;
	bool fresh;
	struct debug_list *known = debug_known(d, DEBUG_LINE, old_offset, &fresh);

	if (!fresh)
		return known->offset;
	known->offset = at;
	cursor_seek(&c, old_offset);
	c = cursor_slice(&c, cursor_left(&c));
	if (!read_header(c, &w.header) || !read_rows(u, &rows)) {
		vec_deinit(&rows);
		return UINT64_MAX;
	}
	buf_put(w.out, c.start, w.header.size);
	put_program(&w, d->map, &rows);
	debug_put_u32(d, DEBUG_LINE, at, w.out->n - at - 4);
	vec_deinit(&rows);
	return at;
}
