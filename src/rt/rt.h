/*
 * The run time that the editor places into programs and libraries: what both sides know of it.
 *
 * The blob begins with a struct rt_header; the code to run first is at RT_START behind its
 * beginning. It has no relocations and no data of its own that it writes, so it works wherever it
 * is copied to, before the dynamic linker as behind it, and adds nothing to the needed libraries.
 * All addresses in the header are those of the file; `address` is that of the header itself.
 *
 * It maps the file that `path` names over the counters, shared, so that what is counted survives
 * exit, abort and SIGKILL and children count too; what was counted before is added. When that
 * fails it says so in one line on standard error, and the program counts into its own memory, for
 * nobody. Registers, flags and stack are as they were when it goes on to `next`.
 */
#ifndef CULPRIT_RT_RT_H
#define CULPRIT_RT_RT_H

#define RT_MAGIC   0x31747269707c7563 /* the bytes "cu|pirt1" */
#define RT_PATH    4096
#define RT_HEADER  4160
#define RT_START   RT_HEADER
#define RT_COUNTER 8 /* bytes of one */

/* Offsets for the assembler. */
#define RT_ADDRESS 8
#define RT_NEXT    16

#ifndef __ASSEMBLER__
#include <stdint.h>

struct rt_header {
	uint64_t magic;
	uint64_t address;  /* of this header: filled by the editor */
	uint64_t next;     /* what ran first before us; 0: nothing did, return. By the editor */
	uint64_t counters; /* page aligned; filled by the tool, as the rest */
	uint64_t size;     /* bytes of all counters, whole pages; 0: there are none */
	uint64_t spare[3];
	char path[RT_PATH]; /* of the file */
};

_Static_assert(sizeof(struct rt_header) == RT_HEADER, "the assembler knows its size");
#endif

#endif
