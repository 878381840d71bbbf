/*
 * The profile database: one SQLite file (WAL), readable while it is written.
 *
 * What is in it: hosts, epochs (non-overlapping stretches of collection), events of an epoch,
 * images, processes, profiles (typed blobs by epoch, event, image, process and time), totals by
 * time, process, thread, CPU, cgroup and image, the procedures that got samples with their code,
 * and the accounting of every sample. Big things are packed blobs (pack.h), so a row is a merged
 * profile and not a sample.
 *
 * Writing happens in transactions; a killed writer loses only the open one. The file is made with
 * mode 0600; a reader never changes it, and needs no right to write. While a writer has it open the
 * newest data is in a log beside it (-wal, -shm); closed, it is one file that can be copied.
 *
 * Ids are those of the open database and mean nothing in another. Those of epochs and images stay
 * good until the store is closed, those of processes with a pid until store_expire; what a rolled
 * back transaction gave out is void. Times are microseconds since 1970. Functions that call back
 * stop when the callback returns nonzero, and return it if it is negative. Not thread-safe: one
 * struct store per thread.
 */
#ifndef CULPRIT_STORE_STORE_H
#define CULPRIT_STORE_STORE_H

#include "base/vec.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct store;

#define STORE_VERSION 2 /* 1 had no skid; it can be read, and becomes 2 when it is written */

enum store_mode {
	STORE_READ,   /* must exist; never changes it */
	STORE_WRITE,  /* made when absent */
	STORE_UPDATE, /* must exist; may change it (merge, expire) */
};

/*
 * -ENOENT absent, -EBADMSG no culprit database or a damaged one, -EPROTO written by a newer
 * version, -EACCES, -ENOSPC. The message names the file and the remedy.
 */
int store_open(const char *path, enum store_mode mode, struct store **out, struct err *e);
void store_close(struct store *s); /* takes NULL; rolls back what is open */

/*
 * All writing calls stand between these two. After an error only store_rollback is left to do. On a
 * STORE_READ store they give the reading calls between them one state of the database.
 */
int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);

/* ---- hosts, epochs, events ---- */

struct store_host {
	const char *name, *machine_id, *cpu, *kernel;
	uint32_t cpus;
};
int store_host(struct store *s, const struct store_host *h, int64_t *id, struct err *e);

struct store_epoch {
	int64_t id, host;
	int64_t started, ended; /* ended 0: still open, or its writer was killed */
	const char *host_name, *label;
	uint64_t samples, bytes; /* of its profiles; filled on reading */
	const char *events;      /* "cpu-clock,page-faults"; filled on reading */
};
int store_epoch_start(
	struct store *s, int64_t host, int64_t time, const char *label, int64_t *id, struct err *e);
int store_epoch_end(struct store *s, int64_t epoch, int64_t time, struct err *e);

typedef int store_epoch_fn(void *arg, const struct store_epoch *epoch); /* nonzero stops */
int store_epochs(struct store *s, store_epoch_fn *fn, void *arg, struct err *e);

#define STORE_SKID_MOST 64
#define STORE_COUNTED   "counts" /* the unit of what edited programs count (exact.h) */

/* How an event was sampled. period is the mean number of events (ns for clocks) a sample stands
 * for. */
struct store_event {
	int64_t id, epoch;
	const char *name; /* as asked for: "cycles", "cpu-clock:u" */
	const char *unit; /* "ns" or "events"; STORE_COUNTED when it was not sampled at all */
	double period;
	double rate;   /* samples a second and CPU that were asked for */
	double cost;   /* measured seconds a sample, 0 unknown */
	double budget; /* share of each CPU, 0 when the rate was given */
	/*
	 * Of the host, by calibration; 0 unknown. Instructions that samples fall behind the one
	 * that took the time, STORE_SKID_MOST at most; the share of them that do.
	 */
	int32_t skid;
	double skid_share;
	double cycles_per_ns; /* of a busy core */
};
/* Finds by epoch and name, and replaces the figures, or adds; sets id. */
int store_event(struct store *s, struct store_event *ev, struct err *e);
typedef int store_event_fn(void *arg, const struct store_event *event);
int store_events(struct store *s, store_event_fn *fn, void *arg, struct err *e);

/*
 * Every sample is in exactly one of attributed, unknown, lost, throttled and missed; `expected` is
 * the event's own count / period. `scale` is time enabled / time running (1 unless multiplexed).
 * Added per flush: profiles, totals and accounting of one flush are added with the same t0 and t1,
 * so that they are compacted and expire together.
 */
struct store_account {
	uint64_t attributed, unknown, lost, throttled, missed;
	double expected, scale;
};
int store_account_add(struct store *s, int64_t event, int64_t t0, int64_t t1,
	const struct store_account *a, struct err *e);

/* ---- images and their procedures ---- */

struct store_image {
	int64_t id;
	enum image_kind kind;
	struct image_id identity;
	const char *path;
	const struct segment *segments; /* none: offsets are shown as they are */
	size_t nsegments;
};
/* Finds by kind, identity and (without identity) path, or adds. */
int store_image(struct store *s, const struct store_image *im, int64_t *id, struct err *e);
typedef int store_image_fn(void *arg, const struct store_image *im);
int store_images(struct store *s, store_image_fn *fn, void *arg, struct err *e);
int store_image_get(struct store *s, int64_t id, store_image_fn *fn, void *arg, struct err *e);

/*
 * Adds procedures that are not there yet, or were without the code that they have now. Code may be
 * NULL (ranges concatenated otherwise). One that comes again for its code may leave out its name.
 */
struct store_procedure {
	struct procedure p;
	const void *code;
	size_t code_size;
};
int store_procedures_add(struct store *s, int64_t image, const struct store_procedure *list,
	size_t n, struct err *e);

/* All procedures of an image, sorted by start, without code. Free with store_procedures_free. */
struct store_procedures {
	struct procedure *p;
	size_t n;
	void *memory;
};
int store_procedures(struct store *s, int64_t image, struct store_procedures *out, struct err *e);
void store_procedures_free(struct store_procedures *list);
/* Which of them covers a virtual address (fragments included); NULL: none. O(log n). */
const struct procedure *store_procedure_at(const struct store_procedures *list, uint64_t vaddr);
/* Code bytes kept for the procedure that starts at `start`; -ENOENT when none were kept. */
int store_code(struct store *s, int64_t image, uint64_t start, struct buf *out, struct err *e);
/* The code of all procedures of an image that have some: faster than one by one. */
typedef int store_code_fn(void *arg, const struct store_procedure *p);
int store_codes(struct store *s, int64_t image, store_code_fn *fn, void *arg, struct err *e);

/* ---- processes ---- */

/*
 * pid 0 with a comm stands for all processes of that name: profiles are kept by comm always, and
 * by pid on request (instead: a sample is in one "pc" profile only). cgroup may be "".
 */
struct store_process {
	int64_t id, epoch;
	int32_t pid;
	int64_t started; /* 0 unknown */
	const char *comm, *cgroup;
};
int store_process(struct store *s, const struct store_process *p, int64_t *id, struct err *e);
typedef int store_process_fn(void *arg, const struct store_process *p);
int store_processes(struct store *s, store_process_fn *fn, void *arg, struct err *e);

/* ---- profiles: typed blobs ---- */

/*
 * What a type of blob can do. `pc` (pack.h), `edge` (edges.h), `anchor` (anchors.h), `walk`
 * (walks.h), `pace` and `turns` (paces.h), `excursion` (excursions.h), `stay` (stays.h), `exact`
 * (exact.h), `path` (paths.h), `context`, `pathmap` (contexts.h), `trace` (traces.h), `objects`
 * (objects.h) and `command` (commands.h) are registered by the store; other profilers bring theirs.
 * merge appends a + b to out; check returns 0 or -EBADMSG; weight is the number of samples.
 * Profiles of a type that is not registered are kept as they are; they are read with a type that
 * has only a name.
 */
struct blob_type {
	const char *name;
	int (*merge)(const void *a, size_t na, const void *b, size_t nb, struct buf *out);
	int (*check)(const void *p, size_t n);
	int (*weight)(const void *p, size_t n, uint64_t *samples);
};
extern const struct blob_type blob_pc;
void store_register(struct store *s, const struct blob_type *type);

struct store_profile {
	int64_t epoch, event, image, process;
	int64_t t0, t1;
	const struct blob_type *type;
	const void *data; /* unpacked by the store: the type's own bytes */
	size_t size;
};
int store_profile_add(struct store *s, const struct store_profile *p, struct err *e);

/*
 * Which profiles and totals to read; zero fields do not filter. Patterns are shell globs. A pid
 * matches only what was kept by pid.
 */
struct store_filter {
	const int64_t *epochs; /* ids */
	size_t nepochs;
	int64_t t0, t1;           /* those that overlap [t0, t1) */
	const char *event;        /* name */
	const char *comm, *image; /* image: path, base name, 4 or more digits of its id */
	int32_t pid;
	const struct blob_type *type;
};
/* Whether a filter's image names this one. */
bool store_image_fits(const char *pattern, const char *path, const struct image_id *id);
typedef int store_profile_fn(void *arg, const struct store_profile *p);
int store_profiles(struct store *s, const struct store_filter *f, store_profile_fn *fn, void *arg,
	struct err *e);

/* Accounting summed over what the filter's epochs, times and event select, one call per event. */
typedef int store_account_fn(
	void *arg, const struct store_event *event, const struct store_account *sum);
int store_accounts(struct store *s, const struct store_filter *f, store_account_fn *fn, void *arg,
	struct err *e);

/* ---- totals: samples without PCs ---- */

struct store_total {
	int32_t pid, tid;
	int64_t started; /* of the process */
	const char *comm, *thread, *cgroup;
	int32_t cpu;
	int64_t image, event;
	uint64_t samples;
};
int store_totals_add(struct store *s, int64_t epoch, int64_t t0, int64_t t1,
	const struct store_total *rows, size_t n, struct err *e);
typedef int store_total_fn(void *arg, const struct store_total *row, int64_t t0, int64_t t1);
int store_totals(struct store *s, const struct store_filter *f, store_total_fn *fn, void *arg,
	struct err *e);

/* ---- care ---- */

/* Each of these three is a transaction of its own, or part of the one that is open. */

/*
 * Merges the small profiles and totals of a long run: all that ended before `before` is put
 * together by stretches of `span` microseconds. In totals, processes with less than a thousandth of
 * a flush's samples then lose their pid (pid, tid and started become 0) and nothing else.
 */
int store_compact(struct store *s, int64_t before, int64_t span, struct err *e);

/*
 * Removes epochs and stretches that ended before `before`, then the oldest until the file is at
 * most `bytes` (0: no limit); what nothing refers to goes too, and the file shrinks.
 */
int store_expire(struct store *s, int64_t before, uint64_t bytes, struct err *e);

/* Adds everything of `from` to s; the same images become one; epochs stay apart. */
int store_merge(struct store *s, struct store *from, struct err *e);

/*
 * Checks structure, references, every blob and the accounting (for each event, the samples of its
 * "pc" profiles are attributed + unknown); calls fn for each fault found. 0 when all could be
 * checked, whatever was found.
 */
typedef void store_fault_fn(void *arg, const char *text);
int store_check(struct store *s, store_fault_fn *fn, void *arg, struct err *e);

/*
 * Bytes by purpose: profile data (profiles; totals with processes and accounting) and cache
 * (procedures, code, images). `file` is what the disk holds, the log included.
 */
struct store_size {
	uint64_t file, profiles, totals, procedures, code, images, other;
};
int store_size(struct store *s, struct store_size *out, struct err *e);

#endif
