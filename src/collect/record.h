/*
 * The records of a perf ring buffer (man perf_event_open, "MMAP layout"), parsed and checked.
 *
 * All our events ask for the same sample_type and sample_id_all, so one layout serves them all:
 * IDENTIFIER, IP, TID, TIME, CPU for samples; TID, TIME, CPU, IDENTIFIER behind other records.
 * Times are CLOCK_MONOTONIC nanoseconds. Strings point into the record.
 */
#ifndef CULPRIT_COLLECT_RECORD_H
#define CULPRIT_COLLECT_RECORD_H

#include "image/image.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
		PERF_SAMPLE_CPU)

/*
 * Events may also ask for the program's registers: SP, BP and IP, or (with its stack) all that
 * frames are found by. Which of the two it is the size of the record tells.
 */
#define RECORD_FEW_REGISTERS \
	(1ull << PERF_REG_X86_SP | 1ull << PERF_REG_X86_BP | 1ull << PERF_REG_X86_IP)
#define RECORD_ALL_REGISTERS \
	(0x1ffull | 0xffull << PERF_REG_X86_R8) /* AX BX CX DX SI DI BP SP IP, R8 to R15 */
#define RECORD_REGISTERS 17

enum record_kind {
	RECORD_SAMPLE,
	RECORD_MMAP, /* MMAP and MMAP2, executable mappings only */
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_LOST,
	RECORD_THROTTLE,
	RECORD_UNTHROTTLE,
	RECORD_CGROUP,
	RECORD_KSYMBOL,
	RECORD_OTHER, /* nothing we use */
};

struct record {
	enum record_kind kind;
	uint64_t time, id; /* id of the event, from IDENTIFIER */
	uint32_t cpu;
	int32_t pid, tid;
	union {
		struct {
			uint64_t pc;
			uint16_t misc; /* PERF_RECORD_MISC_KERNEL, _USER, ... */
			/* With registers of the program, which may have none (a kernel thread): */
			bool has_user;
			uint64_t sp, bp, ip;
			/* With its stack as well; both are copies as the kernel made them: */
			const uint8_t
				*registers; /* RECORD_REGISTERS words, in the kernel's order */
			const uint8_t *stack;
			uint32_t stack_size;
		} sample;
		struct {
			uint64_t start, size, offset;
			struct image_id build_id; /* size 0 when the kernel had none */
			uint64_t inode, inode_generation;
			uint32_t major, minor;
			bool kernel;
			const char *path;
		} mmap;
		struct {
			bool exec;
			const char *name;
		} comm;
		struct {
			int32_t parent_pid, parent_tid;
			bool exec; /* a fork that perf made up: its address space is told anew */
		} task;            /* FORK and EXIT */
		struct {
			uint64_t lost;
		} lost;
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
		struct {
			uint64_t address, size;
			bool gone;
			const char *name;
		} ksymbol; /* code that the kernel has made: BPF programs */
	};
};

/*
 * Parses the record at p (n bytes are there). 0, or -EBADMSG; *size is its length then too if it is
 * plausible, else 0. build_ids: the event asked for them. If it did not, a record that says it has
 * one has none: the kernel forgets to take back what it said for another event (sampler_open.c).
 */
int record_parse(const void *p, size_t n, bool build_ids, struct record *out, size_t *size);

/*
 * A record that is no sample, all n bytes of it, of an event with another trailer than ours: that
 * many bytes at its end are left alone, so who was sampled, when and by which event is known only
 * where the record itself says so.
 */
int record_parse_foreign(
	const void *p, size_t n, size_t trailer, bool build_ids, struct record *out);

#endif
