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
 * Reads /tmp/perf-NSPID.map of a process through its own root and pid namespace, only if it is a
 * plain file that belongs to the process's user or root. -ENOENT when it has none.
 */
int jit_map_open(pid_t pid, struct image **out, struct err *e);

/* The vDSO of this process (all processes of the machine share it), path "[vdso]". */
int vdso_open(struct image **out, struct err *e);

#endif
