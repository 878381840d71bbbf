#include "base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/term.h"
#include "base/utf8.h"
#include "base/vec.h"

enum {
	GAP = 2,
	LAST_LEAST = 10, /* the last column keeps this much, however narrow the terminal */
};

struct table {
	char *columns;
	size_t ncolumns;
	VEC(char *) cells; /* row by row */
	size_t in_row;     /* cells of the row that is not ended yet */
	size_t heading;    /* rows */
};

/* Bytes of a colour sequence (ESC [ digits m) at s, or 0. */
static size_t colour_length(const char *s)
{
	if (s[0] != '\033' || s[1] != '[')
		return 0;
	size_t n = 2 + strspn(s + 2, "0123456789;");
	return s[n] == 'm' ? n + 1 : 0;
}

/*
 * Appends at most `most` columns of text and returns how many. Names come from files nobody vouches
 * for: of control characters only colours pass, everything else becomes '?'.
 */
static size_t put_text(struct buf *b, const char *s, size_t most)
{
	size_t width = 0;
	bool full = false;
	while (*s) {
		size_t n = colour_length(s);
		if (n) {
			buf_put(b, s, n);
			s += n;
			continue;
		}
		uint32_t c = utf8_decode(s, &n);
		int w = wcwidth((wchar_t)c);
		size_t wide = w < 0 ? 1 : (size_t)w;
		full = full || width + wide > most;
		if (full)
			wide = 0;
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			buf_u8(b, '?');
		else if (c == UTF8_BAD)
			buf_put(b, "\xef\xbf\xbd", 3);
		else
			buf_put(b, s, n);
		width += wide;
		s += n;
	}
	return width;
}

static size_t text_width(const char *s)
{
	struct buf b = {0};
	size_t width = put_text(&b, s, SIZE_MAX);
	buf_deinit(&b);
	return width;
}

static void pad(struct buf *b, size_t n)
{
	if (!n)
		return;
	buf_reserve(b, n);
	memset(b->p + b->n, ' ', n);
	b->n += n;
}

static size_t count_rows(const struct table *t)
{
	return t->cells.n / t->ncolumns;
}

static size_t *column_widths(const struct table *t)
{
	size_t *widths = xcalloc(t->ncolumns, sizeof *widths);
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t w = text_width(t->cells.p[i]);
		if (w > widths[i % t->ncolumns])
			widths[i % t->ncolumns] = w;
	}
	return widths;
}

static void cut_last_column(const struct table *t, size_t *widths, size_t width)
{
	size_t before = 0, last = t->ncolumns - 1;
	for (size_t i = 0; i < last; i++)
		before += widths[i] + GAP;
	size_t most = width > before + LAST_LEAST ? width - before : LAST_LEAST;
	if (widths[last] > most)
		widths[last] = most;
}

static void format_row(const struct table *t, size_t row, const size_t *widths, struct buf *line)
{
	line->n = 0;
	for (size_t i = 0; i < t->ncolumns; i++) {
		const char *cell = t->cells.p[row * t->ncolumns + i];
		size_t w = text_width(cell);
		size_t blank = w < widths[i] ? widths[i] - w : 0;
		if (i)
			pad(line, GAP);
		if (t->columns[i] == '>')
			pad(line, blank);
		put_text(line, cell, widths[i]);
		if (t->columns[i] == '<')
			pad(line, blank);
	}
	while (line->n && line->p[line->n - 1] == ' ')
		line->n--;
}

struct table *table_create(const char *columns)
{
	assert(columns[0] && strspn(columns, "<>") == strlen(columns));
	struct table *t = xcalloc(1, sizeof *t);
	t->columns = xstrdup(columns);
	t->ncolumns = strlen(columns);
	return t;
}

void table_destroy(struct table *t)
{
	if (!t)
		return;
	vec_each (cell, &t->cells)
		free(*cell);
	vec_deinit(&t->cells);
	free(t->columns);
	free(t);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	assert(t->in_row < t->ncolumns);
	va_list args;
	va_start(args, fmt);
	*vec_add(&t->cells) = xvasprintf(fmt, args);
	va_end(args);
	t->in_row++;
}

void table_row(struct table *t)
{
	while (t->in_row < t->ncolumns)
		table_cell(t, "%s", "");
	t->in_row = 0;
}

void table_header(struct table *t)
{
	t->heading = count_rows(t);
}

void table_print(const struct table *t, FILE *out, int width)
{
	assert(!t->in_row);
	_cleanup_free_ size_t *widths = column_widths(t);
	if (width > 0)
		cut_last_column(t, widths, (size_t)width);

	bool styled = out == stdout;
	struct buf line = {0};
	for (size_t row = 0; row < count_rows(t); row++) {
		bool bold = styled && row < t->heading;
		format_row(t, row, widths, &line);
		fprintf(out, "%s%s%s\n", bold ? term_bold() : "", buf_cstr(&line),
			bold ? term_reset() : "");
	}
	buf_deinit(&line);
}
