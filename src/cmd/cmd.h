/*
 * What the verbs of the program share: how they end, how they parse, and the options that every
 * report has.
 *
 * A verb is `int cmd_VERB(int argc, char **argv)` in VERB.c, with argv[0] the verb; it returns the
 * exit code (base/err.h). Only this room prints. Verbs with their texts stand in verbs.h.
 */
#ifndef CULPRIT_CMD_CMD_H
#define CULPRIT_CMD_CMD_H

#include "analyze/selection.h"
#include "base/vec.h"
#include "cmd/verbs.h"
#include "isa/decode.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;
struct option;
struct tally;
struct tally_row;

#define CMD_DECLARE(verb, ...) int cmd_##verb(int argc, char **argv);
CMD_VERBS(CMD_DECLARE)
#undef CMD_DECLARE

/* ---- how a verb ends (end.c) ---- */

/* Prints text that nobody vouches for (names, paths, source): control characters become '?'. */
void cmd_put(FILE *out, const char *s);

/* Prints "culprit: TEXT" on standard error; the exit code that fits. */
int cmd_fail(const struct err *e);

/* Prints one line that names what is wrong and `culprit help VERB`; EXIT_USAGE. */
int cmd_usage(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For getopt_long's '?' and ':' (opterr 0, option string starting with ':'); EXIT_USAGE. */
int cmd_bad_option(const char *verb, int c, char **argv);

/* One line on standard error that is no error. */
void cmd_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What long work is at, on a terminal only; replaced by the next, removed by the end. */
void cmd_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cmd_progress_end(void);

/* The file that -o names. A full disk must not look like success; main sees to standard output. */
int cmd_output_open(const char *path, FILE **out, struct err *e);
int cmd_output_close(const char *path, FILE *out, struct err *e);

/* Prints the verb's usage on standard output; EXIT_DONE. */
int cmd_help_text(const char *verb);

/* ---- values of options (parse.c): the whole argument must be understood ---- */

int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);
int parse_real(const char *text, double min, double max, double *out);
int parse_share(const char *text, double *out);  /* "0.005" or "0.5%" */
int parse_size(const char *text, uint64_t *out); /* bytes; K, M, G, T behind it */

/*
 * A point in time in microseconds since the epoch: seconds since the epoch, "2024-05-01",
 * "2024-05-01 13:00[:05]" (T for the blank too), "13:00[:05]" of today, or "-90s", "-10m", "-2h",
 * "-3d" before now.
 */
int parse_time(const char *text, int64_t now, int64_t *out);
int parse_time_range(const char *text, int64_t now, int64_t *t0, int64_t *t1); /* FROM,TO */

typedef VEC(int64_t) epoch_list;
/* "3", "2,5", "2-4", "last" (which adds EPOCH_LAST). */
#define EPOCH_LAST (-1)
int parse_epochs(const char *text, epoch_list *out);

/* ---- the options of every report (report.c) ---- */

typedef VEC(const char *) name_list;

struct report {
	const char *input; /* NULL: culprit.db here, else the daemon's */
	bool json, no_pager;
	epoch_list epochs;
	name_list events; /* -e, in order */
	char *event_text; /* what `events` points into */
	const char *procedure;
	struct store_filter filter;
	uint64_t rows; /* -n, 0: not given; only where the verb's options have it */
	double min_share;
	bool has_min_share; /* it was given */
	enum isa_syntax syntax;
	size_t together; /* how many epochs are read, once it is open */
	/* After report_select. */
	struct store *store;
	struct selection *sel;
	const struct selected_event *event; /* those selected, in order */
	size_t nevents;
};

enum report_option {
	REPORT_JSON = 1000,
	REPORT_EPOCH,
	REPORT_TIME,
	REPORT_COMM,
	REPORT_IMAGE,
	REPORT_PROC,
	REPORT_PID,
	REPORT_NO_PAGER,
	REPORT_SYNTAX,
	REPORT_MIN_SHARE,
	REPORT_LAST,
};

#define REPORT_SHORT "i:e:p:h"
/* What selects samples. */
#define REPORT_FILTERS                                                                    \
	{"input", required_argument, NULL, 'i'}, {"event", required_argument, NULL, 'e'}, \
		{"epoch", required_argument, NULL, REPORT_EPOCH},                         \
		{"time", required_argument, NULL, REPORT_TIME},                           \
		{"comm", required_argument, NULL, REPORT_COMM},                           \
		{"image", required_argument, NULL, REPORT_IMAGE},                         \
		{"proc", required_argument, NULL, REPORT_PROC},                           \
		{"pid", required_argument, NULL, 'p'},                                    \
	{                                                                                 \
		"help", no_argument, NULL, 'h'                                            \
	}
#define REPORT_LONG                                               \
	REPORT_FILTERS, {"json", no_argument, NULL, REPORT_JSON}, \
	{                                                         \
		"no-pager", no_argument, NULL, REPORT_NO_PAGER    \
	}
/* What not every report has. -n also needs its letter in `letters`. */
#define REPORT_ROWS_LONG                             \
	{                                            \
		"rows", required_argument, NULL, 'n' \
	}
#define REPORT_MIN_SHARE_LONG                                          \
	{                                                              \
		"min-share", required_argument, NULL, REPORT_MIN_SHARE \
	}
#define REPORT_SYNTAX_LONG                                       \
	{                                                        \
		"syntax", required_argument, NULL, REPORT_SYNTAX \
	}

/* Takes one option of getopt_long: 0 taken, 1 not a common one, -EINVAL with e filled. */
int report_option(struct report *r, int c, const char *arg, struct err *e);

/* The options of one verb. */
struct report_verb {
	const char *name;
	const char *letters; /* its own and REPORT_SHORT, with ':' in front, for getopt_long */
	const struct option *options; /* all of them */
	/* Takes one of its own: 0, 1 when it is none of them, or an exit code. May be NULL. */
	int (*option)(void *arg, int c, const char *value);
};

/*
 * Takes all options: 0 with optind at the operands, -1 when help is asked for, or the exit code
 * after a line that says what is wrong.
 */
int report_parse(struct report *r, const struct report_verb *v, void *arg, int argc, char **argv);
/* Behind that: one operand at most, NULL when there is none; or none at all. 0 or the exit code. */
int report_operand(const char *verb, int argc, char **argv, const char **out);
int report_no_operand(const char *verb, int argc, char **argv);

/* Opens the database for reading and finishes the filter, which points into r. */
int report_open(struct report *r, struct store **out, struct err *e);
/* Opens it and makes the selection; `first` is the event to put in front, or NULL. */
int report_select(struct report *r, const char *first, struct err *e);
/* What points into the selection goes before. Once closed it can be opened again. */
void report_close(struct report *r);
void report_deinit(struct report *r);

/*
 * The procedure that the user means (analyze/find.h), of a tally by procedure. Several of that
 * name: the hottest, and a note. Several that fit: they are listed, and it is an error.
 */
int report_choose(const struct report *r, const struct tally *t, const char *what,
	const struct tally_row **out, struct err *e);

/* The database that is read without -i: culprit.db here, or else the daemon's. */
const char *report_default_input(void);

/* A line at the end when several recordings are added up. */
void report_epochs_note(const struct report *r);

/* 0 when there is no whole. */
static inline double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* Opens what -o names (NULL: *out stays), unless it is the database. cmd_output_close closes it. */
int report_output(const struct report *r, const char *path, FILE **out, struct err *e);

/* Starts the pager unless told otherwise. */
void report_pager(const struct report *r);

#endif
