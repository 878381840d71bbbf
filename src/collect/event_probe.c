#include "collect/event_probe.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/event.h"
#include "image/image.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY  "uprobe:"
#define RETURN "uretprobe:"

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

bool event_is_probe(const char *spec)
{
	return begins(spec, ENTRY) || begins(spec, RETURN);
}

struct wanted {
	const char *symbol;
	uint64_t vaddr;
	bool found;
};

static bool likes(void *arg, const char *name)
{
	return !strcmp(name, ((struct wanted *)arg)->symbol);
}

static void take(void *arg, const struct procedure *p)
{
	struct wanted *w = arg;

	w->vaddr = p->start;
	w->found = true;
}

static bool offset_of(const struct image *im, uint64_t vaddr, uint64_t *offset)
{
	const struct segment *list;
	size_t n = image_segments(im, &list);

	for (size_t i = 0; i < n; i++)
		if (vaddr - list[i].vaddr < list[i].size) {
			*offset = vaddr - list[i].vaddr + list[i].offset;
			return true;
		}
	return false;
}

static int find_place(const char *path, const char *symbol, uint64_t *offset, struct err *e)
{
	struct wanted w = {.symbol = symbol};
	struct image *im;
	int r = image_open_path(path, &im, e);

	if (r < 0)
		return r;
	if (label_address(symbol, &w.vaddr))
		w.found = true;
	else
		image_search(im, likes, take, &w);
	if (!w.found)
		r = err_set(e, -EINVAL, "event: %s has no procedure '%s'", path, symbol);
	else if (!offset_of(im, w.vaddr, offset))
		r = err_set(e, -EINVAL, "event: %s has no code at '%s'", path, symbol);
	image_destroy(im);
	return r;
}

int event_probe_parse(const char *spec, struct event *ev, struct err *e)
{
	bool at_return = begins(spec, RETURN);
	_cleanup_free_ char *file = xstrdup(strchr(spec, ':') + 1);
	char *symbol = strchr(file, ':');
	char path[PATH_MAX];
	const char *base;
	uint64_t offset = 0;
	long type;
	int r;

	if (!symbol || symbol == file || !symbol[1])
		return err_set(e, -EINVAL, "event %s: write uprobe:FILE:SYMBOL", spec);
	*symbol++ = 0;
	if (!realpath(file, path))
		return err_errno(e, -errno, "event: %s", file);
	if (strlen(path) >= sizeof ev->probed)
		return err_set(e, -ENAMETOOLONG, "event: the path %s is too long", path);
	if (io_read_long("/sys/bus/event_source/devices/uprobe/type", &type) < 0)
		return err_set(e, -EOPNOTSUPP,
			"event %s: this kernel has no probes in programs (CONFIG_UPROBE_EVENTS)",
			spec);
	r = find_place(path, symbol, &offset, e);
	if (r < 0)
		return r;
	base = strrchr(path, '/') + 1;
	snprintf(ev->name, sizeof ev->name, "%s%s:%s", at_return ? RETURN : ENTRY, base, symbol);
	strcpy(ev->probed, path);
	ev->attr.type = (uint32_t)type;
	ev->attr.config = at_return;
	ev->attr.config2 = offset;
	return 0;
}
