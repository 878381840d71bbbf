#include "collect/event_pmu.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest line that sysfs gives for a format or a named event. */
#define LINE 512

struct pmu {
	const char *devices, *name;
	struct perf_event_attr *attr;
	struct err *e;
};

/* Names become parts of paths, so they must be plain. */
static bool is_plain(const char *s)
{
	return *s && *s != '.' && !strpbrk(s, "/ \t\n");
}

static int read_pmu_line(const struct pmu *p, const char *dir, const char *file, char line[LINE])
{
	_cleanup_free_ char *path =
		xasprintf("%s/%s/%s%s%s", p->devices, p->name, dir, *dir ? "/" : "", file);

	return is_plain(file) ? io_read_line(AT_FDCWD, path, line, LINE) : -ENOENT;
}

static uint64_t *config_word(struct perf_event_attr *attr, const char *name, size_t n)
{
	static const char *const names[] = {"config", "config1", "config2"};
	__u64 *words[] = {&attr->config, &attr->config1, &attr->config2};

	for (size_t i = 0; i < 3; i++) {
		if (strlen(names[i]) == n && !strncmp(name, names[i], n))
			return (uint64_t *)words[i];
	}
	return NULL;
}

/* Spreads a value over the bits that a format names: "config:0-7,32-35". False: it does not fit. */
static bool set_bits(struct perf_event_attr *attr, const char *format, uint64_t value)
{
	size_t n = strcspn(format, ":");
	uint64_t *word = config_word(attr, format, n);
	const char *at = format + n;

	if (!word || !*at)
		return false;
	while (*at) {
		char *end;
		unsigned long first = strtoul(at + 1, &end, 10), last = first;
		uint64_t mask;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last > 63 || (*end && *end != ','))
			return false;
		mask = ~(uint64_t)0 >> (63 - (last - first));
		*word = (*word & ~(mask << first)) | (value & mask) << first;
		value = last - first == 63 ? 0 : value >> (last - first + 1);
		at = end;
	}
	return !value;
}

/* "name=value", or "name" alone for 1. */
static int set_term(const struct pmu *p, const char *name, const char *text)
{
	char format[LINE], *end;
	uint64_t value, *word = config_word(p->attr, name, strlen(name));

	errno = 0;
	value = text ? strtoull(text, &end, 0) : 1;
	if (text && (errno || end == text || *end))
		return err_set(p->e, -EINVAL, "event %s/%s=%s/: not a number", p->name, name, text);
	if (word) {
		*word = value;
		return 0;
	}
	if (read_pmu_line(p, "format", name, format) < 0)
		return err_set(p->e, -EINVAL,
			"event %s/%s/: unknown; see %s/%s/events and format there", p->name, name,
			p->devices, p->name);
	if (!set_bits(p->attr, format, value))
		return err_set(p->e, -EINVAL, "event %s/%s=%s/: the value does not fit %s", p->name,
			name, text ? text : "1", format);
	return 0;
}

static int set_terms(const struct pmu *p, char *terms, bool names_allowed)
{
	char *save = NULL;

	for (char *t = strtok_r(terms, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		char *value = strchr(t, '='), line[LINE];
		int r;

		if (value)
			*value++ = 0;
		if (!value && names_allowed && read_pmu_line(p, "events", t, line) == 0)
			r = set_terms(p, line, false);
		else
			r = set_term(p, t, value);
		if (r < 0)
			return r;
	}
	return 0;
}

int event_pmu_parse(const char *devices, const char *pmu, const char *terms,
	struct perf_event_attr *attr, struct err *e)
{
	struct perf_event_attr result = *attr;
	struct pmu p = {.devices = devices, .name = pmu, .attr = &result, .e = e};
	_cleanup_free_ char *copy = xstrdup(terms);
	char type[LINE];
	int r;

	if (!is_plain(pmu) || read_pmu_line(&p, "", "type", type) < 0)
		return err_set(e, -EOPNOTSUPP,
			"event %s/%s/: this machine has no such PMU; it has those in %s", pmu,
			terms, devices);
	result.type = strtoul(type, NULL, 10);
	r = set_terms(&p, copy, true);
	if (r == 0)
		*attr = result;
	return r;
}

/* ".scale" and ".unit" files stand beside the events. */
static void each_named(
	const char *devices, const char *pmu, void (*fn)(void *arg, const char *name), void *arg)
{
	_cleanup_free_ char *path = xasprintf("%s/%s/events", devices, pmu);
	DIR *dir = opendir(path);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		_cleanup_free_ char *name = xasprintf("%s/%s/", pmu, d->d_name);

		if (!strchr(d->d_name, '.'))
			fn(arg, name);
	}
	if (dir)
		closedir(dir);
}

void event_pmu_each(const char *devices, void (*fn)(void *arg, const char *name), void *arg)
{
	DIR *dir = opendir(devices);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] != '.')
			each_named(devices, d->d_name, fn, arg);
	}
	if (dir)
		closedir(dir);
}
