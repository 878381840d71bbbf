/*
 * Code made at run time: perf-PID.map (the perf convention: "START SIZE NAME", hex), and the vDSO.
 */
#ifndef CULPRIT_IMAGE_JIT_H
#define CULPRIT_IMAGE_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct image;

/* An IMAGE_JIT from the text of a map; lines that are not understood are skipped and counted. */
int jit_map_parse(const char *path, const char *text, size_t n, struct image **out,
	size_t *bad_lines, struct err *e);

/*
 * Where a process keeps its map: /tmp/perf-NSPID.map in its own root and pid namespace. The root is
 * held open, so the map can be read when the process has ended.
 */
struct jit_source {
	int root;                 /* its root directory */
	int pid;                  /* in its own pid namespace */
	unsigned user, effective; /* its users, as we see them */
};
int jit_source_open(pid_t pid, struct jit_source *out); /* -ENOENT when it is gone */
void jit_source_close(struct jit_source *s);

/* Only a plain file that belongs to the process's user or root; -ENOENT when it has none. */
int jit_source_read(const struct jit_source *s, struct image **out, struct err *e);

/* All of it at once. */
int jit_map_open(pid_t pid, struct image **out, struct err *e);

/* The vDSO of this process (all processes of the machine share it), path "[vdso]". */
int vdso_open(struct image **out, struct err *e);

#endif
