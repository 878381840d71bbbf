/*
 * The cgroups of processes by path.
 *
 * Samples carry the low half of the cgroup v2 id, which is the inode number of the cgroup's
 * directory. On machines that run containers in v1 hierarchies beside an empty v2 tree, where all
 * processes are in its root, the path comes from the v1 hierarchies instead.
 */
#ifndef CULPRIT_COLLECT_CGROUP_H
#define CULPRIT_COLLECT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroups;

/* The number of what is not known, path "". */
#define CGROUP_NONE 0u

/* `mount` is where the v2 tree is; NULL finds it, "" is none (tests). */
struct cgroups *cgroups_create(const char *mount);
void cgroups_destroy(struct cgroups *c);

/* A cgroup's path by its number. */
const char *cgroups_path(const struct cgroups *c, uint32_t n);

/* The number of the cgroup that /proc says the process is in. */
uint32_t cgroups_of_process(struct cgroups *c, pid_t pid);
/* The path that the text of /proc/PID/cgroup gives: of v2 unless that is the root, else of v1. */
const char *cgroups_choose(char *text);

/*
 * The number of the cgroup with this id. One never met is looked for at `pid` and then, at most
 * once between two calls of cgroups_turn, in the whole tree. CGROUP_NONE when it is gone, and for
 * the root where v1 hierarchies say more.
 */
uint32_t cgroups_by_id(struct cgroups *c, uint32_t id, pid_t pid);
void cgroups_learn(struct cgroups *c, uint64_t id, const char *path); /* from a record */
void cgroups_turn(struct cgroups *c);

/* Whether there are so many that they should be forgotten; numbers given out are void then. */
bool cgroups_full(const struct cgroups *c);
void cgroups_clear(struct cgroups *c);

size_t cgroups_memory(const struct cgroups *c);

#endif
