/* What the files behind perf_file.h share. */
#ifndef CULPRIT_IMPORT_PERF_INTERNAL_H
#define CULPRIT_IMPORT_PERF_INTERNAL_H

#include "base/buf.h"
#include "base/cursor.h"
#include "import/perf_file.h"

#include <zstd.h>

struct perf_id_entry {
	char *path;
	struct image_id id;
	bool kernel;
};

struct perf_file {
	char *name;
	int fd;
	uint64_t size; /* of a file */
	bool own;      /* fd is to be closed */
	bool pipe;     /* the stream of `perf record -o -` */
	VEC(struct perf_event) events;
	VEC(struct perf_id_entry) build_ids;
	struct perf_facts facts;
	uint64_t left; /* bytes of records that follow; UINT64_MAX: until the end */
	uint64_t at;   /* where the next of them is read */
	uint64_t aux;
	/* Bytes that were read and not given out, from `used` on. */
	struct buf in;
	size_t used;
	bool ended;
	/* The same of what was compressed, and the piece that is not unpacked yet. */
	struct buf unpacked, packed;
	size_t unpacked_used, packed_used;
	bool withheld; /* there is more to come of what was put into zstd */
	ZSTD_DStream *zstd;
};

/* As the header numbers them (tools/perf/Documentation/perf.data-file-format.txt). */
enum perf_feature {
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_CPUDESC = 8,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_SAMPLE_TIME = 21,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_FEATURES = 256,
};

/* What a feature tells; one that is damaged tells nothing. */
void perf_take_feature(struct perf_file *f, uint32_t feature, struct cursor c);

/* An attr that takes n bytes (its own size may be less), and its ids; false: it is damaged. */
bool perf_take_attr(const void *p, size_t n, struct perf_event_attr *out);
bool perf_add_event(struct perf_file *f, const struct perf_event_attr *attr, struct cursor *ids);

/* The body of a build-id record. */
void perf_take_build_id(struct perf_file *f, uint16_t misc, struct cursor *c);
/* The body of an event update: names. */
void perf_take_event_update(struct perf_file *f, struct cursor *c);

#endif
