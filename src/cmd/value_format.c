#include "cmd/value_format.h"

#include "base/err.h"
#include "base/mem.h"
#include "values/plugin_host.h"
#include "values/values.h"

#include <errno.h>
#include <stdlib.h>

static const char *const shipped[] = {"latency", "conflicts", "floats"};
enum { SHIPPED = sizeof shipped / sizeof *shipped };

struct value_formats {
	struct plugin plugins[PLUGINS_MAX];
	size_t n;
	bool tried[SHIPPED];
};

struct value_formats *value_formats_create(void)
{
	return xcalloc(1, sizeof(struct value_formats));
}

void value_formats_destroy(struct value_formats *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		plugin_close(&f->plugins[i]);
	free(f);
}

int value_formats_add(struct value_formats *f, const char *spec, struct err *e)
{
	char path[PATH_MAX];
	const char *arguments;
	int rc;

	if (f->n == PLUGINS_MAX)
		return err_set(e, -EINVAL, "%s: %d plug-ins are the most", spec, PLUGINS_MAX);
	rc = plugin_find(spec, path, &arguments, e);
	if (!rc)
		rc = plugin_open(&f->plugins[f->n], path, e);
	if (rc)
		return rc;
	f->n++;
	return 0;
}

static const struct plugin *find(const struct value_formats *f, unsigned kind)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->plugins[i].kind == kind)
			return &f->plugins[i];
	return NULL;
}

/* A report is not to fail because a plug-in is not installed: numbers will do. */
static const struct plugin *plugin_of(struct value_formats *f, unsigned kind)
{
	const struct plugin *p = find(f, kind);

	for (size_t i = 0; i < SHIPPED && !p; i++) {
		if (f->tried[i] || plugin_kind(shipped[i]) != kind)
			continue;
		f->tried[i] = true;
		if (!value_formats_add(f, shipped[i], NULL))
			p = find(f, kind);
	}
	return p;
}

const char *value_formats_name(struct value_formats *f, unsigned kind)
{
	const struct plugin *p = plugin_of(f, kind);

	return p ? p->is->name : NULL;
}

bool value_formats_put(
	struct value_formats *f, unsigned kind, uint64_t value, char *text, size_t size)
{
	const struct plugin *p = plugin_of(f, kind);

	if (p)
		plugin_format(p, value, text, size);
	return p != NULL;
}
