#include "image/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	TEXT_STEP = 1 << 16,
	LINE_MAX_SIZE = 4096, /* the kernel's names have at most 512 bytes */
};

static const char *parse_address(const char *s, uint64_t *address)
{
	uint64_t value = 0;
	int digits = 0;
	for (;; s++, digits++) {
		int digit = *s >= '0' && *s <= '9'   ? *s - '0'
			    : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
						     : -1;
		if (digit < 0)
			break;
		value = value << 4 | (unsigned)digit;
	}
	*address = value;
	return digits > 0 && digits <= 16 ? s : NULL;
}

/* Cuts the line into its fields. */
static bool parse_line(char *line, struct kallsym *s)
{
	const char *at = parse_address(line, &s->address);
	if (!at || at[0] != ' ' || !at[1] || at[2] != ' ')
		return false;
	s->type = at[1];
	char *name = line + (at + 3 - line), *tab = strchr(name, '\t');
	if (tab)
		*tab = 0;
	s->name = name;
	s->module = tab ? tab + 1 : "";
	return *name;
}

int kallsyms_read(int fd, kallsym_fn *fn, void *arg)
{
	_cleanup_free_ char *text = xmalloc(TEXT_STEP + LINE_MAX_SIZE + 1);
	size_t n = 0;
	bool skipping = false; /* the rest of a line that is too long */
	while (true) {
		ssize_t got = read(fd, text + n, TEXT_STEP);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return 0; /* what has no newline is not complete */
		n += (size_t)got;

		char *line = text, *end;
		while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
			struct kallsym s;
			*end = 0;
			if (!skipping && parse_line(line, &s))
				fn(arg, &s);
			skipping = false;
			line = end + 1;
		}
		n -= (size_t)(line - text);
		memmove(text, line, n);
		if (n > LINE_MAX_SIZE) {
			skipping = true;
			n = 0;
		}
	}
}
