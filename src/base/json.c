#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What stands in an array is a row: it and all within it go on one line. */
static bool on_one_line(const struct json *j)
{
	return j->rows && j->depth >= j->rows;
}

static void indent(struct json *j)
{
	fprintf(j->out, "\n%*s", 2 * j->depth, "");
}

/* Whatever belongs in front of the next value or key. */
static void separate(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->depth)
		return;
	bool first = j->first[j->depth - 1];
	j->first[j->depth - 1] = false;
	if (!first)
		putc(',', j->out);
	if (!on_one_line(j))
		indent(j);
	else if (!first)
		putc(' ', j->out);
}

static void put_string(FILE *out, const char *s)
{
	putc('"', out);
	while (*s) {
		size_t n;
		uint32_t c = utf8_decode(s, &n);
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (char)c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", (unsigned)c);
		else if (c == UTF8_BAD)
			fputs("\xef\xbf\xbd", out);
		else
			fwrite(s, 1, n, out);
		s += n;
	}
	putc('"', out);
}

void json_init(struct json *j, FILE *out)
{
	*j = (struct json){.out = out};
}

void json_open(struct json *j, char kind)
{
	assert(j->depth < (int)sizeof j->kind);
	separate(j);
	putc(kind, j->out);
	if (!j->rows && j->depth && j->kind[j->depth - 1] == '[')
		j->rows = j->depth + 1;
	j->kind[j->depth] = kind;
	j->first[j->depth] = true;
	j->depth++;
}

void json_close(struct json *j)
{
	assert(j->depth > 0 && !j->after_key);
	bool empty = j->first[j->depth - 1], line = on_one_line(j);

	if (j->rows == j->depth)
		j->rows = 0;
	j->depth--;
	if (!empty && !line)
		indent(j);
	putc(j->kind[j->depth] == '{' ? '}' : ']', j->out);
	if (!j->depth)
		putc('\n', j->out);
}

void json_key(struct json *j, const char *key)
{
	separate(j);
	put_string(j->out, key);
	fputs(": ", j->out);
	j->after_key = true;
}

void json_str(struct json *j, const char *s)
{
	separate(j);
	if (s)
		put_string(j->out, s);
	else
		fputs("null", j->out);
}

void json_int(struct json *j, int64_t v)
{
	separate(j);
	fprintf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, uint64_t v)
{
	separate(j);
	fprintf(j->out, "%" PRIu64, v);
}

void json_double(struct json *j, double v)
{
	separate(j);
	if (!isfinite(v)) {
		fputs("null", j->out);
		return;
	}
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	/* A locale with a decimal comma may be set for the width of characters. */
	char *comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	fputs(text, j->out);
}

void json_bool(struct json *j, bool v)
{
	separate(j);
	fputs(v ? "true" : "false", j->out);
}

void json_addr(struct json *j, uint64_t v)
{
	separate(j);
	fprintf(j->out, "\"0x%" PRIx64 "\"", v);
}

void json_kstr(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_kint(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_kuint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

void json_kdouble(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

void json_kshare(struct json *j, const char *key, double v)
{
	json_kdouble(j, key, nearbyint(v * 1e9) / 1e9);
}

void json_kbool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

void json_kaddr(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_addr(j, v);
}
