#include "cmd/shorten.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

size_t text_columns(const char *s)
{
	size_t columns = 0, n;

	for (; *s; s += n, columns++)
		utf8_decode(s, &n);
	return columns;
}

/* The bytes that the first so many columns take. */
static size_t skip_columns(const char *s, size_t columns)
{
	const char *at = s;
	size_t n;

	for (; *at && columns; at += n, columns--)
		utf8_decode(at, &n);
	return (size_t)(at - s);
}

char *shorten_name(const char *name, size_t width)
{
	if (!width || text_columns(name) <= width)
		return xstrdup(name);
	return xasprintf("%.*s…", (int)skip_columns(name, width - 1), name);
}

char *shorten_path(const char *path, size_t width)
{
	size_t columns = text_columns(path);
	const char *tail, *slash;

	if (!width || columns <= width)
		return xstrdup(path);
	tail = path + skip_columns(path, columns - (width - 1));
	slash = strchr(tail, '/');
	return xasprintf("…%s", slash && slash[1] ? slash : tail);
}
