#include "image/demangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

char *__cxa_demangle(const char *mangled, char *buf, size_t *n, int *status);

enum {
	MANGLED_MAX = 1024, /* the demangler itself refuses what has more components */
	REFERENCES_MAX = MANGLED_MAX / 2,
	DEMANGLED_MAX = 1 << 22,
};

/* ---- how long a name can become ---- */

/* A reference to an earlier component (S_, S0_, ...; T_ and its like have index -1). */
struct reference {
	int at, index;
};

/* Base 36; the length of the reference, 0 when there is none. */
static size_t parse_reference(const char *s, int *index)
{
	int value = 0;
	size_t n = 1;
	for (; isdigit(s[n]) || isupper(s[n]); n++)
		value = value > MANGLED_MAX ? value
					    : value * 36 + s[n] - (isdigit(s[n]) ? '0' : 'A' - 10);
	if (s[n] != '_')
		return 0;
	*index = s[0] == 'T' ? -1 : n == 1 ? 0 : value + 1;
	return n + 1;
}

/* The length of a name of the source ("3foo"), whose letters mean nothing. */
static size_t source_name(const char *s)
{
	size_t digits = strspn(s, "0123456789");
	unsigned long n = digits && digits < 5 ? strtoul(s, NULL, 10) : 0;
	return n && n <= strlen(s + digits) ? digits + n : 0;
}

static size_t find_references(const char *s, struct reference *out)
{
	size_t n = 0;
	for (size_t i = 2; s[i];) {
		int index;
		size_t step = source_name(s + i);
		if (!step && (s[i] == 'S' || s[i] == 'T') &&
			(step = parse_reference(s + i, &index)))
			out[n++] = (struct reference){.at = (int)i, .index = index};
		i += step ? step : 1;
	}
	return n;
}

/*
 * Each reference repeats what it refers to, so a name of 250 letters can stand for a gigabyte. A
 * component that is referred to was complete when it, or one of a higher index, was first referred
 * to: it cannot be longer than everything up to there. The sum of these bounds is the bound.
 */
static bool grows_too_long(const char *mangled)
{
	struct reference refs[REFERENCES_MAX];
	uint64_t length[REFERENCES_MAX + 1] = {0}; /* of all references before this one */
	size_t n = find_references(mangled, refs);

	for (size_t i = 0; i < n; i++) {
		size_t first = 0;
		while (first < i && (refs[i].index < 0 ? refs[first].index >= 0
						       : refs[first].index < refs[i].index))
			first++;
		length[i + 1] = length[i] + length[first] + 4 * (uint64_t)refs[first].at + 16;
		if (length[i + 1] > DEMANGLED_MAX)
			return true;
	}
	return false;
}

/* ---- Rust ---- */

/* The old Rust scheme ends in a component of a hash, 17h0123456789abcdefE: where that ends. */
static char *rust_end(char *mangled)
{
	for (char *s = mangled; (s = strstr(s, "17h")); s++) {
		if (strspn(s + 3, "0123456789abcdef") == 16 && s[19] == 'E' &&
			(!s[20] || s[20] == '.'))
			return s + 20;
	}
	return NULL;
}

static size_t rust_escape(const char *s, struct buf *out)
{
	static const struct {
		const char *code, *text;
	} escapes[] = {{"$LT$", "<"}, {"$GT$", ">"}, {"$LP$", "("}, {"$RP$", ")"}, {"$RF$", "&"},
		{"$BP$", "*"}, {"$SP$", "@"}, {"$C$", ","}, {"..", "::"}};
	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
		size_t n = strlen(escapes[i].code);
		if (!strncmp(s, escapes[i].code, n)) {
			buf_put(out, escapes[i].text, strlen(escapes[i].text));
			return n;
		}
	}
	if (s[0] == '$' && s[1] == 'u') {
		char *end;
		unsigned long code = strtoul(s + 2, &end, 16);
		if (*end == '$' && end > s + 2 && code >= ' ' && code < 0x7f) {
			buf_u8(out, (uint8_t)code);
			return (size_t)(end + 1 - s);
		}
	}
	return 0;
}

/* Drops the hash and undoes the escapes of what C++ names cannot hold. */
static char *rust_name(char *demangled)
{
	char *hash = NULL;
	for (char *s = demangled; (s = strstr(s, "::h")); s += 3)
		hash = s;
	if (hash)
		*hash = 0;

	struct buf out = {0};
	for (const char *s = demangled; *s;) {
		bool first = s == demangled || (s[-1] == ':' && s - demangled > 1);
		size_t n = first && s[0] == '_' && s[1] == '$' ? 1 : rust_escape(s, &out);
		if (!n)
			buf_u8(&out, (uint8_t)*s);
		s += n ? n : 1;
	}
	buf_u8(&out, 0);
	free(demangled);
	return (char *)out.p;
}

char *demangle(const char *name)
{
	const char *at = strchr(name, '@');
	const char *suffix = at && !strcmp(at, "@plt") ? at : "";
	_cleanup_free_ char *mangled = at ? xstrndup(name, (size_t)(at - name)) : xstrdup(name);

	char *rust = rust_end(mangled);
	if (rust)
		*rust = 0; /* what the optimizer put behind the name */
	_cleanup_free_ char *readable = NULL;
	if (!strncmp(mangled, "_Z", 2) && strlen(mangled) <= MANGLED_MAX &&
		!grows_too_long(mangled)) {
		int status;
		readable = __cxa_demangle(mangled, NULL, NULL, &status);
	}
	if (readable && rust)
		readable = rust_name(readable);
	if (!readable && (!at || *suffix))
		return NULL;
	return xasprintf("%s%s", readable ? readable : mangled, suffix);
}
