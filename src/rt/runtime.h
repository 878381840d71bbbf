/*
 * Between the files of the run time. Nothing here has data that is written; what it knows is in the
 * header, in the process's page and in the program's own data.
 */
#ifndef CULPRIT_RT_RUNTIME_H
#define CULPRIT_RT_RUNTIME_H

#include "rt/rt.h"

#define RT_HIDDEN __attribute__((visibility("hidden")))

extern const struct rt_header rt_header RT_HIDDEN;

/* An address of the file, where it is in this process. */
static inline void *rt_here(uint64_t address)
{
	return (void *)(address + (uint64_t)&rt_header - rt_header.address);
}

static inline uint64_t rt_thread_pointer(void)
{
	uint64_t self;

	__asm__("mov %%fs:0x10, %0" : "=r"(self));
	return self;
}

/* A file has at least so many bytes, none of them a hole. */
long rt_make_room(long fd, uint64_t from, uint64_t to) RT_HIDDEN;

/* Says in one line that the process does not count into a file; the error is -errno. */
void rt_complain(const char *path, long error) RT_HIDDEN;
/* The same of bursts, once in a process. */
void rt_complain_of_bursts(const char *path, long error) RT_HIDDEN;
/* Says once in a process that a thread does not measure. */
void rt_complain_of_event(long error) RT_HIDDEN;

/* The process's page, made when there is none; NULL: it cannot be had. */
struct rt_process *rt_process(void) RT_HIDDEN;

/* After the counters were mapped from the file: blocks of threads are had from there. */
void rt_threads_start(const struct rt_header *h, long fd) RT_HIDDEN;

/* After that, too: the table of paths is there. */
void rt_paths_start(const struct rt_header *h) RT_HIDDEN;

void rt_main(const struct rt_header *h) RT_HIDDEN;

/* As the dynamic linker calls it, at the end. */
void rt_finish(void) RT_HIDDEN;

/* ---- routines for snippets (routines.S): rt_call_NAME runs rt_NAME ---- */

/* The displacement of the thread's counters, once it has a block. */
uint64_t rt_thread_block(void) RT_HIDDEN;

/*
 * For the code at entries that does not find its record (context.h): the procedure's number in its
 * image. Returns the record or stand-in to count in; the thread's word points to its slot.
 */
uint64_t rt_context_enter(uint64_t number) RT_HIDDEN;
/* The counter of a path in a record that has a tree of them; sums of metrics follow. */
uint64_t rt_context_path(uint64_t record, uint64_t number) RT_HIDDEN;

/* One path more, by its key, and what was measured on it; the same of the second metric alone. */
uint64_t rt_path(uint64_t key, uint64_t amount) RT_HIDDEN;
uint64_t rt_path_second(uint64_t key, uint64_t amount) RT_HIDDEN;

/* The process is about to end by itself. */
uint64_t rt_ended(void) RT_HIDDEN;

/* What the thread's event, one of struct rt_metrics, has counted. */
uint64_t rt_metric(uint64_t which) RT_HIDDEN;

/* Bursts (burst.h): room for so many bytes of records; whether to leave the instrumented copy. */
uint64_t rt_burst_room(uint64_t bytes, uint64_t unused) RT_HIDDEN;
uint64_t rt_burst_turn(uint64_t first, uint64_t second) RT_HIDDEN;

#endif
