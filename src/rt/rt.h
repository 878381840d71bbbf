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
 *
 * If `ends` is asked for, the last two words of the counters say how many processes were started
 * and how many of these ended by a call of exit or _exit: at RT_FINISH is what the dynamic linker
 * shall run last (DT_FINI). Who is ended by a signal, or becomes another program, is not counted,
 * nor are children that never were programs of their own.
 *
 * Routines that snippets call are listed in routines.S; the build writes their offsets in the blob
 * to rt/routines.h as RT_CALL_NAME. They may be interrupted by a signal whose handler calls them
 * again, and run on whatever stack is there: they use little of it.
 */
#ifndef CULPRIT_RT_RT_H
#define CULPRIT_RT_RT_H

#define RT_MAGIC   0x31747269707c7563 /* the bytes "cu|pirt1" */
#define RT_PATH    4096
#define RT_HEADER  4240
#define RT_START   RT_HEADER
#define RT_COUNTER 8 /* bytes of one */

/* Offsets for the assembler. */
#define RT_ADDRESS 8
#define RT_NEXT    16

/*
 * Words of a thread's own, from the thread pointer: __glibc_unused2 in glibc's thread control
 * block, 512 bytes that are kept only so that others stay where they are. Zero in a new thread,
 * but what was there before where glibc takes a stack again; one thread at a time all the same.
 */
#define RT_WORDS       0x80
#define RT_WORD(n)     (RT_WORDS + 8 * (n))
#define RT_WORD_SLOT   0  /* contexts: the slot of the call under way */
#define RT_WORD_CLOCK  1  /* metrics: the last reading, and of the second metric in the next */
#define RT_WORD_METER  3  /* what the thread reads events with */
#define RT_WORD_IMAGES 4  /* from here on: of images that count by thread */
#define RT_WORD_NONE   63 /* always zero */

/*
 * Counting by thread. The file has the shared counters, a directory, and blocks, each with the same
 * counters once more, or the first of them; a thread's word says how far its block lies behind the
 * shared counters in memory.
 */
#define RT_DIRECTORY       8192
#define RT_DIRECTORY_MAGIC 0x31726964707c7563 /* the bytes "cu|pdir1" */
#define RT_BLOCKS          1000

/* A table of paths: these words, then entries: key + 1, count, sums of what is measured. */
#define RT_TABLE_READY   0
#define RT_TABLE_NO_ROOM 1
#define RT_TABLE_FIRST   2

#define RT_METRICS 2 /* at most */

/* The last words of the counters, from their end. */
#define RT_ENDS         2
#define RT_ENDS_STARTED 2
#define RT_ENDS_ENDED   1

#ifndef __ASSEMBLER__
#include <stdint.h>

/* An event of the kernel that is measured (perf_event_attr). */
struct rt_event {
	uint32_t type;
	uint32_t excluded; /* RT_EXCLUDE_* */
	uint64_t config, config1, config2;
};
enum { RT_EXCLUDE_USER = 1, RT_EXCLUDE_KERNEL = 2, RT_EXCLUDE_HYPERVISOR = 4 };

/* What is measured: RT_METRICS of them, behind the run time. */
struct rt_metrics {
	uint64_t key;    /* differs where events do */
	uint64_t events; /* which of them are events, a bit each; the clock needs no help */
	struct rt_event event[RT_METRICS];
};

struct rt_header {
	uint64_t magic;
	uint64_t address;  /* of this header: filled by the editor */
	uint64_t next;     /* what ran first before us; 0: nothing did, return. By the editor */
	uint64_t counters; /* page aligned; filled by the tool, as the rest */
	uint64_t size;     /* bytes of all counters, whole pages; 0: there are none */
	uint64_t threads;  /* a struct rt_threads in the program's data; 0: all count together */
	uint64_t blocks;   /* for threads, at most; up to RT_BLOCKS */
	uint64_t block;    /* bytes of one: the first of the counters, whole pages */
	struct {
		uint64_t first;  /* contexts: the number of the image's first procedure */
		uint64_t shapes; /* where the struct context_shape of all are, from the header */
	} context;
	uint64_t table;                       /* of paths, among the counters; 0: there is none */
	uint64_t table_entries, table_atomic; /* how many; whether to lock */
	uint64_t table_words;                 /* of an entry */
	uint64_t metrics;   /* a struct rt_metrics, from the header; 0: no events are measured */
	uint64_t buffer;    /* of bursts: memory of the image for them */
	uint64_t ends;      /* where a process keeps its number; 0: nobody asks how processes end */
	uint64_t last;      /* what ran last before us, or 0. By the editor */
	char path[RT_PATH]; /* of the file */
};

/* What an image that counts by thread knows; zero at first: all count together. */
struct rt_threads {
	uint64_t word;   /* the thread's word, in bytes from RT_WORD_NONE */
	uint64_t region; /* where the file is mapped, blocks as they are needed */
};

struct rt_directory {
	uint64_t magic;
	uint32_t used;     /* blocks that were given out, at most; those beyond were asked for */
	uint32_t short_of; /* threads that got none and counted together */
	uint64_t block;    /* bytes of one; 0: as many as are shared */
	uint64_t spare[5];
	uint64_t owner[RT_BLOCKS]; /* process and thread control block; 0: being made */
};

/* The one page of a process, the same for all its images. Where nobody else is: programs lie below
 * 0x57..., libraries at 0x7f..., sanitizers have theirs elsewhere. */
#define RT_PROCESS       0x6c7563700000
#define RT_PROCESS_MAGIC 0x31637270707c7563 /* the bytes "cu|pprc1" */

struct rt_word {
	uint64_t counters; /* address of the image's; 0: the word is free */
	uint64_t name;     /* a hash of its path */
	uint64_t region;
};

struct rt_process {
	uint64_t magic;
	uint64_t meters;     /* address of a struct rt_meters (meter.h); 0: nobody measured yet */
	uint64_t complained; /* that something cannot be measured */
	uint64_t burstless;  /* the same of bursts that find no file */
	uint64_t spare[4];
	struct rt_word words[RT_WORD_NONE]; /* those before RT_WORD_IMAGES are not used */
};

_Static_assert(sizeof(struct rt_header) == RT_HEADER, "the assembler knows its size");
_Static_assert(sizeof(struct rt_directory) <= RT_DIRECTORY, "it has room");
_Static_assert(sizeof(struct rt_process) <= 4096, "one page");
#endif

#endif
