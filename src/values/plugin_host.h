/*
 * Plug-ins (values/plugin.h), from the side that loads and feeds them.
 *
 * Nothing here allocates but dlopen; plugin_run is async-signal-safe. A struct plugin is the
 * caller's memory and must stay where it is while the plug-in is open.
 */
#ifndef CULPRIT_VALUES_PLUGIN_HOST_H
#define CULPRIT_VALUES_PLUGIN_HOST_H

#include "values/plugin.h"

#include <limits.h>
#include <stdbool.h>

struct err;
struct steps;

#define PLUGIN_STATE_MAX 65536
#define PLUGINS_MAX      16

struct plugin {
	void *handle;
	const struct culprit_plugin *is;
	unsigned kind; /* enum value_kind: the shipped ones have their own, all else is hashed */
	unsigned char config[CULPRIT_CONFIG_SIZE];
	char path[PATH_MAX];
};

/*
 * The file of "WORD[,ARGUMENTS]": a path, or a name without a slash that stands for NAME.so among
 * the plug-ins that came with culprit. arguments points into spec. -ENOENT, -ENAMETOOLONG.
 */
int plugin_find(const char *spec, char path[PATH_MAX], const char **arguments, struct err *e);

/* Opens a file and checks what it says of itself. -ENOENT, -ENOEXEC (no plug-in), -EPROTO (of
 * another version), -EINVAL (says nonsense). */
int plugin_open(struct plugin *p, const char *path, struct err *e);
void plugin_close(struct plugin *p); /* also one of zeros */

/* Lets it find out what it needs to know; -EINVAL. */
int plugin_prepare(struct plugin *p, const char *arguments, struct err *e);

/* plugin_find, plugin_open, plugin_prepare, and that no other of n has its kind. */
int plugin_load(
	struct plugin *p, const char *spec, const struct plugin *others, size_t n, struct err *e);

/* The kind of values that a plug-in of this name makes. */
unsigned plugin_kind(const char *name);

bool plugin_wants(const struct plugin *p, const struct culprit_step *s);

/*
 * Shows a burst to a plug-in. `b` says where it comes from, its steps are replaced; state is
 * p->is->state_size bytes. Not called at all when it has no step that the plug-in wants.
 */
void plugin_run(const struct plugin *p, void *state, const struct steps *steps,
	const struct culprit_burst *b, culprit_emit *emit, void *arg);

/* Writes a value as the plug-in prints it, or in hexadecimal; always terminated. */
void plugin_format(const struct plugin *p, uint64_t value, char *text, size_t n);

#endif
