#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { USEC = 1000000 };

int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long v;

	/* strtoull would take a sign and blanks. */
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end || errno || v < min || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

/* A plain decimal number; strtod alone would take hex, inf and nan too. */
static int real_prefix(const char *text, double *out, const char **rest)
{
	size_t n = strspn(text, "+-.0123456789eE");
	char *end;
	double v;

	if (!isdigit((unsigned char)text[strspn(text, "+-.")]))
		return -EINVAL;
	errno = 0;
	v = strtod(text, &end);
	if (end != text + n || errno || !isfinite(v))
		return -EINVAL;
	*out = v;
	*rest = end;
	return 0;
}

int parse_real(const char *text, double min, double max, double *out)
{
	const char *rest;
	double v;

	if (real_prefix(text, &v, &rest) || *rest || v < min || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

int parse_share(const char *text, double *out)
{
	const char *rest;
	double v;

	if (real_prefix(text, &v, &rest))
		return -EINVAL;
	if (*rest == '%') {
		v /= 100;
		rest++;
	}
	if (*rest || v < 0 || v > 1)
		return -EINVAL;
	*out = v;
	return 0;
}

int parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *rest, *unit;
	double v;

	if (real_prefix(text, &v, &rest) || v < 0)
		return -EINVAL;
	if (*rest && (unit = strchr(units, toupper((unsigned char)*rest)))) {
		v = ldexp(v, 10 * (int)(unit - units + 1));
		rest++;
	}
	if (*rest || v >= 0x1p63)
		return -EINVAL;
	*out = (uint64_t)v;
	return 0;
}

/* "-90s" and the like: how long before now. */
static int parse_ago(const char *text, int64_t now, int64_t *out)
{
	static const struct {
		const char *unit;
		int seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	const char *rest;
	double v;

	if (real_prefix(text, &v, &rest) || v > 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		double ago = -v * units[i].seconds * USEC;
		if (strcmp(rest, units[i].unit) || ago > (double)now)
			continue;
		*out = now - (int64_t)ago;
		return 0;
	}
	return -EINVAL;
}

/* Local time in one of the calendar formats. */
static int parse_calendar(const char *text, int64_t now, int64_t *out)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
		"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%H:%M", "%H:%M:%S"};
	time_t today = now / USEC;

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct tm tm;
		const char *end;
		time_t t;

		localtime_r(&today, &tm);
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		tm.tm_isdst = -1;
		end = strptime(text, formats[i], &tm);
		if (!end || *end)
			continue;
		t = mktime(&tm);
		if (t < 0)
			return -EINVAL;
		*out = (int64_t)t * USEC;
		return 0;
	}
	return -EINVAL;
}

int parse_time(const char *text, int64_t now, int64_t *out)
{
	double seconds;

	if (text[0] == '-')
		return parse_ago(text, now, out);
	if (!parse_calendar(text, now, out))
		return 0;
	if (parse_real(text, 0, 1e12, &seconds))
		return -EINVAL;
	*out = llround(seconds * USEC);
	return 0;
}

int parse_time_range(const char *text, int64_t now, int64_t *t0, int64_t *t1)
{
	const char *comma = strchr(text, ',');
	int64_t from = 0, to = INT64_MAX;
	char first[64];

	if (!comma || (size_t)(comma - text) >= sizeof first || !(comma != text || comma[1]))
		return -EINVAL;
	memcpy(first, text, comma - text);
	first[comma - text] = 0;
	if (first[0] && parse_time(first, now, &from))
		return -EINVAL;
	if (comma[1] && parse_time(comma + 1, now, &to))
		return -EINVAL;
	if (from >= to)
		return -EINVAL;
	*t0 = from;
	*t1 = to;
	return 0;
}

/* "7" or "2-4", without anything around it. */
static int parse_epoch_range(const char *text, epoch_list *out)
{
	enum { MAX_EPOCHS = 100000 };
	const char *dash = strchr(text, '-');
	uint64_t first, last;
	char left[24];

	if (!dash) {
		if (parse_uint(text, 1, INT64_MAX, &first))
			return -EINVAL;
		*vec_add(out) = (int64_t)first;
		return 0;
	}
	if ((size_t)(dash - text) >= sizeof left)
		return -EINVAL;
	memcpy(left, text, dash - text);
	left[dash - text] = 0;
	if (parse_uint(left, 1, INT64_MAX, &first) ||
		parse_uint(dash + 1, first, INT64_MAX, &last) || last - first >= MAX_EPOCHS)
		return -EINVAL;
	for (uint64_t id = first; id <= last; id++)
		*vec_add(out) = (int64_t)id;
	return 0;
}

int parse_epochs(const char *text, epoch_list *out)
{
	while (true) {
		size_t n = strcspn(text, ",");
		char part[48];

		if (!n || n >= sizeof part)
			return -EINVAL;
		memcpy(part, text, n);
		part[n] = 0;
		if (!strcmp(part, "last"))
			*vec_add(out) = EPOCH_LAST;
		else if (parse_epoch_range(part, out))
			return -EINVAL;
		if (!text[n])
			return 0;
		text += n + 1;
	}
}
