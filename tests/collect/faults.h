/*
 * Page faults at known places: machine code made here touches fresh pages, each from an instruction
 * of its own, so that sampling page-faults with period 1 has an outcome known in advance.
 */
#ifndef CULPRIT_TESTS_FAULTS_H
#define CULPRIT_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/event.h"

enum { FAULT_STEP = 10 }; /* bytes of code for each fault */

struct faults {
	size_t n;
	uint8_t *code;
	uint8_t *pages;
};

static inline bool faults_init(struct faults *f, size_t n)
{
	/* movb $1, (%rdi); add $4096, %rdi */
	static const uint8_t step[FAULT_STEP] = {0xc6, 0x07, 1, 0x48, 0x81, 0xc7, 0, 0x10, 0, 0};

	f->n = n;
	f->code = mmap(NULL, n * FAULT_STEP + 1, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	f->pages = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->code == MAP_FAILED || f->pages == MAP_FAILED)
		return false;
	madvise(f->pages, n * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		memcpy(f->code + i * FAULT_STEP, step, FAULT_STEP);
	f->code[n * FAULT_STEP] = 0xc3; /* ret */
	return true;
}

static inline void faults_deinit(struct faults *f)
{
	munmap(f->code, f->n * FAULT_STEP + 1);
	munmap(f->pages, f->n * 4096);
}

/* Faults once at each place. */
static inline void faults_run(const struct faults *f)
{
	madvise(f->pages, f->n * 4096, MADV_DONTNEED);
	((void (*)(uint8_t *))(uintptr_t)f->code)(f->pages);
}

/* The number of the place that has this address, or -1. */
static inline long faults_place(const struct faults *f, uint64_t pc)
{
	uint64_t offset = pc - (uintptr_t)f->code;

	return offset < f->n * FAULT_STEP && offset % FAULT_STEP == 0 ? (long)(offset / FAULT_STEP)
								      : -1;
}

static inline struct event faults_event(void)
{
	return (struct event){.name = "page-faults:u",
		.attr = {.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_PAGE_FAULTS,
			.size = sizeof(struct perf_event_attr),
			.exclude_kernel = 1}};
}

#endif
