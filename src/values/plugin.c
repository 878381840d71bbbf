#include "values/plugin.h"

#include "base/err.h"
#include "values/plugin_host.h"
#include "values/step.h"
#include "values/values.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

/* NAME.so beside the program (as it is built) or in its library folder (as it is installed). */
static int find_shipped(const char *name, int n, char path[PATH_MAX], struct err *e)
{
	static const char *const places[] = {"plugins", "../plugins", "../lib/culprit/plugins"};
	char exe[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;

	exe[length > 0 ? length : 0] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		int k = snprintf(path, PATH_MAX, "%s/%s/%.*s.so", exe, places[i], n, name);

		if (k < PATH_MAX && access(path, R_OK) == 0)
			return 0;
	}
	return err_set(e, -ENOENT,
		"%.*s: no such plug-in came with culprit; name a file with its path "
		"(./%.*s.so)",
		n, name, n, name);
}

int plugin_find(const char *spec, char path[PATH_MAX], const char **arguments, struct err *e)
{
	size_t n = strcspn(spec, ",");

	*arguments = spec[n] ? spec + n + 1 : spec + n;
	if (!n)
		return err_set(e, -EINVAL, "a plug-in needs the name of a file");
	if (n >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "%.40s...: the name is too long", spec);
	if (!memchr(spec, '/', n))
		return find_shipped(spec, (int)n, path, e);
	memcpy(path, spec, n);
	path[n] = 0;
	if (access(path, R_OK) < 0)
		return err_errno(e, -errno, "%s", path);
	return 0;
}

/* ---- loading ---- */

static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return n && n < 32 && !name[n];
}

static int check(const struct culprit_plugin *is, const char *path, struct err *e)
{
	if (is->version != CULPRIT_PLUGIN_VERSION)
		return err_set(e, -EPROTO,
			"%s: is made for plug-in interface %u, this culprit has %u; build it "
			"with this culprit's plugin.h",
			path, is->version, CULPRIT_PLUGIN_VERSION);
	if (is->size < sizeof *is)
		return err_set(e, -EPROTO,
			"%s: describes itself in %u bytes instead of %zu; build it with this "
			"culprit's plugin.h",
			path, is->size, sizeof *is);
	if (!is->name || !is_name(is->name))
		return err_set(e, -EINVAL,
			"%s: has no proper name (lower-case letters, digits, - and _, 31 at most)",
			path);
	if (!is->burst)
		return err_set(e, -EINVAL, "%s: has no function for bursts", path);
	if (is->state_size > PLUGIN_STATE_MAX)
		return err_set(e, -EINVAL, "%s: wants %zu bytes a thread, %d are allowed", path,
			is->state_size, PLUGIN_STATE_MAX);
	if (is->ncaptures && !is->captures)
		return err_set(
			e, -EINVAL, "%s: has %zu captures, and none is there", path, is->ncaptures);
	return 0;
}

/* The shared-object loader names the file itself, but not always. */
static int loader_error(const char *path, struct err *e)
{
	const char *why = dlerror();
	size_t n = strlen(path);

	if (access(path, F_OK) < 0)
		return err_errno(e, -errno, "%s", path);
	if (why && !strncmp(why, path, n) && why[n] == ':')
		why += n + 2;
	return err_set(e, -ENOEXEC, "%s: cannot be loaded as a plug-in: %s", path,
		why ? why : "unknown error");
}

int plugin_open(struct plugin *p, const char *path, struct err *e)
{
	const struct culprit_plugin *is;
	void *handle;
	int rc;

	if (strlen(path) >= sizeof p->path)
		return err_set(e, -ENAMETOOLONG, "%.40s...: the name is too long", path);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return loader_error(path, e);
	is = dlsym(handle, "culprit_plugin");
	rc = is ? check(is, path, e)
		: err_set(e, -ENOEXEC,
			  "%s: is no plug-in of culprit: it does not define culprit_plugin", path);
	if (rc < 0) {
		dlclose(handle);
		return rc;
	}
	memset(p, 0, sizeof *p);
	p->handle = handle;
	p->is = is;
	p->kind = plugin_kind(is->name);
	strcpy(p->path, path);
	return 0;
}

void plugin_close(struct plugin *p)
{
	if (p->handle)
		dlclose(p->handle);
	p->handle = NULL;
	p->is = NULL;
}

int plugin_prepare(struct plugin *p, const char *arguments, struct err *e)
{
	const char *why = p->is->prepare ? p->is->prepare(arguments, p->config)
			  : *arguments   ? "takes no arguments"
					 : NULL;

	return why ? err_set(e, -EINVAL, "plug-in %s: %s", p->is->name, why) : 0;
}

int plugin_load(
	struct plugin *p, const char *spec, const struct plugin *others, size_t n, struct err *e)
{
	const char *arguments;
	char path[PATH_MAX], full[PATH_MAX];
	int rc = plugin_find(spec, path, &arguments, e);

	/* Whole, because it is opened again by processes in other folders. */
	if (rc == 0 && !realpath(path, full))
		rc = err_errno(e, -errno, "%s", path);
	if (rc == 0)
		rc = plugin_open(p, full, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (others[i].kind == p->kind)
			rc = err_set(e, -EEXIST,
				"plug-in %s: its values could not be told from those of %s; name "
				"one of them differently, or load only one",
				p->is->name, others[i].is->name);
	}
	if (rc == 0)
		rc = plugin_prepare(p, arguments, e);
	if (rc < 0)
		plugin_close(p);
	return rc;
}

/* ---- running ---- */

unsigned plugin_kind(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	if (!strcmp(name, "latency"))
		return VALUE_LATENCY;
	if (!strcmp(name, "conflicts"))
		return VALUE_CONFLICT;
	if (!strcmp(name, "floats"))
		return VALUE_FLOAT;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return VALUE_PLUGIN0 + hash % (UINT16_MAX + 1 - VALUE_PLUGIN0);
}

static bool fits(const struct culprit_capture *c, const struct culprit_step *s)
{
	return (s->has & c->has) == c->has && (!c->any || s->has & c->any) &&
	       (s->opcode & c->opcode_mask) == c->opcode &&
	       (!c->high || (s->pc >= c->low && s->pc < c->high));
}

bool plugin_wants(const struct plugin *p, const struct culprit_step *s)
{
	for (size_t i = 0; i < p->is->ncaptures; i++) {
		if (fits(&p->is->captures[i], s))
			return true;
	}
	return !p->is->ncaptures;
}

void plugin_run(const struct plugin *p, void *state, const struct steps *steps,
	const struct culprit_burst *b, culprit_emit *emit, void *arg)
{
	const struct culprit_step *wanted[STEPS_MAX];
	struct culprit_burst own = *b;

	own.size = sizeof own;
	own.n = 0;
	own.steps = wanted;
	for (size_t i = 0; i < steps->n; i++) {
		if (plugin_wants(p, &steps->step[i]))
			wanted[own.n++] = &steps->step[i];
	}
	if (own.n)
		p->is->burst(state, p->config, &own, emit, arg);
}

void plugin_format(const struct plugin *p, uint64_t value, char *text, size_t n)
{
	int k = p->is->format ? p->is->format(value, text, n)
			      : snprintf(text, n, "0x%llx", (unsigned long long)value);

	if (n && k < 0)
		*text = 0;
}
