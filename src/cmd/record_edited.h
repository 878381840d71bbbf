/*
 * record --exact, --paths, --context, --bursts: runs a command from edited copies of its files, and
 * keeps what they counted. The driver (record_edited.c) finds the files, has copies made, puts them
 * in place, runs the command and stores the results; a kind says how to edit, and reads what came
 * out.
 */
#ifndef CULPRIT_CMD_RECORD_EDITED_H
#define CULPRIT_CMD_RECORD_EDITED_H

#include "cmd/cmd.h"
#include "collect/forks.h"
#include "edit/cache.h"
#include "edit/counts.h"
#include "edit/guide.h"
#include "edit/measure.h"
#include "edit/results.h"

#include <sys/resource.h>

/* What the options say. */
struct edited_choice {
	bool exact, paths, context, bursts, atomic, per_thread, full;
	bool all_checks;     /* of bursts: at all entries and back-edges ... */
	const char *checks;  /* ... or at some entries, ... */
	const char *boring;  /* ... or not in loops with few references; NULL: not said */
	const char *rates;   /* NCHECK:NINSTR; NULL: not said */
	const char *payload; /* what they record; NULL: not said */
	bool no_objects;     /* allocations are not written down */
	const char *counted; /* run nothing: read what this edited copy counted */
	const char *refine;  /* a database with an earlier profile */
	name_list metrics;
	name_list libs; /* patterns of base names, or of paths; none: all libraries but libc's */
};

/* A file that is replaced, and what it counts into. */
struct edited_file {
	char *original, *counts;
	struct cached_edit edit;
};

struct edited_run {
	const struct edited_choice *choice;
	const struct edited_kind *kind;
	struct measures measures; /* what --metric names */
	char **command;
	bool quiet;
	char *folder;                  /* of the counts */
	char *log;                     /* a file of the kind's in it, or NULL */
	VEC(struct edited_file) files; /* the program first */
	struct rusage used;            /* by the command and what it waited for */
	int status;                    /* of the command */
	struct forks_seen forks;
	bool blind;    /* nobody could see forks */
	bool apart;    /* threads counted into counters of their own, ... */
	bool together; /* ... but for some that had none */
	struct results results;
	void *own; /* the kind's, to be freed */
};

struct edited_kind {
	const char *name;
	bool one_file; /* all files of the run count into the first one's counts */
	/* How to edit a file. */
	int (*tool)(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e);
	/* Makes the file `path` ready to be counted into; NULL: it is zeros. */
	int (*prepare)(struct edited_run *r, const char *path, struct err *e);
	/* In the child, before it becomes the command; NULL: nothing. */
	void (*enter)(struct edited_run *r);
	/* Sees now and then to what is counted, while the command runs; NULL: nobody need. */
	void (*attend)(struct edited_run *r);
	/* Adds to the results what was counted, of all files. */
	int (*read)(struct edited_run *r, struct err *e);
	/* Says in a line or two what there is. */
	void (*say)(struct edited_run *r, const char *database);
	/* Lets go of what r->own has, before that is freed; NULL: nothing. */
	void (*release)(struct edited_run *r);
};

extern const struct edited_kind edited_exact, edited_paths, edited_context, edited_bursts;

struct burst_rates;
/* As rt/burst_rates.h has them, or NULL for what the environment says, or what is usual. 0, or the
 * exit code after a line that says what is wrong. */
int bursts_rates(const char *verb, const char *text, struct burst_rates *out);
/* The same about what options say of checks and of what is recorded. */
int bursts_check(const struct edited_choice *c);

/* Allocations of a run with bursts (record_objects.c): nothing when none are wanted. */
int objects_prepare(struct edited_run *r, struct err *e);
void objects_enter(struct edited_run *r);
struct burst_map;
/* Adds a result, after that of the bursts: the maps are those of the files. */
int objects_read(struct edited_run *r, const struct burst_map *maps, struct err *e);

/* Whether options ask for an edited run. */
bool edited_wanted(const struct edited_choice *c);
/* 0, or the exit code after a line that says which options do not go together. */
int edited_check(const struct edited_choice *c, char **command);
/* The exit code. */
int record_edited(
	const struct edited_choice *choice, char **command, const char *database, bool quiet);

/* ---- for kinds ---- */

/* Counters of a file; to be unmapped with counts_unmap. */
int edited_map_counts(
	struct edited_run *r, const struct edited_file *f, struct counts *out, struct err *e);
/* Whether counts may have been lost because several counted at once. */
bool edited_is_shared(const struct edited_run *r);
/* What --refine's database has of the file at a path, in place of what *guide was; or NULL. */
int edited_find_guide(
	const struct edited_run *r, const char *path, struct guide **guide, struct err *e);
/* Says that, and whether anybody could know. */
void edited_say_shared(const struct edited_run *r);

#endif
