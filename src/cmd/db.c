/*
 * culprit db: looks after databases.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "import/import.h"
#include "values/values_pack.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

DEFINE_CLEANUP(struct store, store_close)
#define _cleanup_store_ _cleanup_(store_closep)

/* All that the verbs below can be told; each takes its own part of the options. */
struct db_options {
	const char *input, *output, *label;
	bool json, has_before, has_size;
	int64_t before;
	uint64_t size;
	char **names; /* what is no option */
	int nnames;
};

static const char *human_size(uint64_t bytes, char text[static 16])
{
	static const char units[] = " KMGT";
	double v = (double)bytes;
	int unit = 0;

	while (v >= 1024 && units[unit + 1]) {
		v /= 1024;
		unit++;
	}
	if (unit)
		snprintf(text, 16, "%.1f%c", v, units[unit]);
	else
		snprintf(text, 16, "%" PRIu64, bytes);
	return text;
}

static const char *human_time(int64_t t, char text[static 32])
{
	time_t seconds = t / 1000000;
	struct tm tm;

	if (!t)
		return "-";
	localtime_r(&seconds, &tm);
	strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm);
	return text;
}

/* The one database that -i or a name gives. */
static int one_database(struct db_options *o)
{
	if (o->nnames > 1 || (o->nnames && o->input))
		return cmd_usage("db", "one database, not also '%s'", o->names[o->nnames - 1]);
	if (o->nnames)
		o->input = o->names[0];
	if (!o->input)
		o->input = report_default_input();
	return 0;
}

/* ---- ls ---- */

static void put_time(struct json *j, const char *key, int64_t t)
{
	if (t)
		json_kdouble(j, key, (double)t / 1e6);
	else
		json_kstr(j, key, NULL);
}

static void put_events(struct json *j, const char *events)
{
	json_key(j, "events");
	json_open(j, '[');
	while (*events) {
		size_t n = strcspn(events, ",");
		_cleanup_free_ char *name = xstrndup(events, n);

		json_str(j, name);
		events += n + (events[n] == ',');
	}
	json_close(j);
}

static int put_epoch(void *arg, const struct store_epoch *ep)
{
	struct json *j = arg;

	json_open(j, '{');
	json_kint(j, "id", ep->id);
	json_kstr(j, "host", ep->host_name);
	json_kstr(j, "label", ep->label);
	put_time(j, "started", ep->started);
	put_time(j, "ended", ep->ended);
	put_events(j, ep->events);
	json_kuint(j, "samples", ep->samples);
	json_kuint(j, "bytes", ep->bytes);
	json_close(j);
	return 0;
}

static void put_sizes(struct json *j, const struct store_size *size)
{
	json_key(j, "size");
	json_open(j, '{');
	json_kuint(j, "file", size->file);
	json_kuint(j, "profiles", size->profiles);
	json_kuint(j, "totals", size->totals);
	json_kuint(j, "procedures", size->procedures);
	json_kuint(j, "code", size->code);
	json_kuint(j, "images", size->images);
	json_kuint(j, "other", size->other);
	json_close(j);
}

static int ls_json(struct store *s, const struct store_size *size, struct err *e)
{
	struct json j;
	int rc;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "epochs");
	json_open(&j, '[');
	rc = store_epochs(s, put_epoch, &j, e);
	json_close(&j);
	put_sizes(&j, size);
	json_close(&j);
	return rc;
}

static int add_epoch(void *arg, const struct store_epoch *ep)
{
	struct table *t = arg;
	char started[32], ended[32], bytes[16];

	table_cell(t, "%" PRId64, ep->id);
	table_cell(t, "%s", ep->host_name);
	table_cell(t, "%s", human_time(ep->started, started));
	table_cell(t, "%s", human_time(ep->ended, ended));
	table_cell(t, "%" PRIu64, ep->samples);
	table_cell(t, "%s", human_size(ep->bytes, bytes));
	table_cell(t, "%s", ep->events);
	table_cell(t, "%s", ep->label);
	table_row(t);
	return 0;
}

static int ls_text(struct store *s, const struct store_size *size, struct err *e)
{
	static const char *const heading[] = {
		"epoch", "host", "started", "ended", "samples", "bytes", "events", "label"};
	struct table *t = table_create("><<<>><<");
	char file[16], data[16], cache[16];
	int rc;

	for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
		table_cell(t, "%s", heading[i]);
	table_row(t);
	table_header(t);
	rc = store_epochs(s, add_epoch, t, e);
	if (!rc) {
		table_print(t, stdout, term_width());
		printf("\n%s in the file: %s profiles and totals, %s procedures, code and images\n",
			human_size(size->file, file),
			human_size(size->profiles + size->totals + size->other, data),
			human_size(size->procedures + size->code + size->images, cache));
	}
	table_destroy(t);
	return rc;
}

static int db_ls(struct db_options *o)
{
	_cleanup_store_ struct store *s = NULL;
	struct store_size size;
	struct err e = {0};
	int code = one_database(o);

	if (code)
		return code;
	if (value_store_open(o->input, STORE_READ, &s, &e) || store_begin(s, &e) ||
		store_size(s, &size, &e) ||
		(o->json ? ls_json(s, &size, &e) : ls_text(s, &size, &e)))
		return cmd_fail(&e);
	return EXIT_DONE;
}

/* ---- check ---- */

struct faults {
	const char *path;
	size_t n;
};

static void print_fault(void *arg, const char *text)
{
	struct faults *f = arg;

	printf("%s: %s\n", f->path, text);
	f->n++;
}

static int check_one(const char *path)
{
	_cleanup_store_ struct store *s = NULL;
	struct faults faults = {.path = path};
	struct err e = {0};
	int rc = value_store_open(path, STORE_READ, &s, &e);

	if (!rc)
		rc = store_check(s, print_fault, &faults, &e);
	/* Damage that stops the check is an answer too. */
	if (rc == -EBADMSG) {
		printf("%s\n", e.text);
		faults.n++;
	} else if (rc) {
		return cmd_fail(&e);
	}
	if (faults.n)
		printf("%s: %zu fault%s\n", path, faults.n, faults.n == 1 ? "" : "s");
	else
		printf("%s: no faults\n", path);
	return faults.n ? EXIT_NO : EXIT_DONE;
}

static int db_check(struct db_options *o)
{
	int code = EXIT_DONE;

	if (o->input || !o->nnames)
		return one_database(o) ? EXIT_USAGE : check_one(o->input);
	for (int i = 0; i < o->nnames; i++) {
		int one = check_one(o->names[i]);
		if (one > code)
			code = one;
	}
	return code;
}

/* ---- merge ---- */

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int merge_one(struct store *out, const char *path, struct err *e)
{
	_cleanup_store_ struct store *from = NULL;
	int rc = value_store_open(path, STORE_READ, &from, e);

	if (!rc)
		rc = store_begin(from, e);
	return rc ? rc : store_merge(out, from, e);
}

static int merge_all(const struct db_options *o, struct err *e)
{
	_cleanup_store_ struct store *out = NULL;
	int rc = value_store_open(o->output, STORE_WRITE, &out, e);

	/* All or nothing: a failure in the third input leaves OUT as it was. */
	if (!rc)
		rc = store_begin(out, e);
	for (int i = 0; i < o->nnames && !rc; i++) {
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\rmerging %d of %d\033[K", i + 1, o->nnames);
		rc = merge_one(out, o->names[i], e);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return rc ? rc : store_commit(out, e);
}

static int db_merge(struct db_options *o)
{
	struct err e = {0};
	bool is_new;

	if (!o->output)
		return cmd_usage("db", "merge needs -o OUT");
	if (!o->nnames)
		return cmd_usage("db", "merge needs the databases to merge");
	for (int i = 0; i < o->nnames; i++)
		if (is_same_file(o->output, o->names[i]))
			return cmd_usage("db", "'%s' cannot be merged into itself", o->output);
	is_new = access(o->output, F_OK) != 0;
	if (merge_all(o, &e)) {
		if (is_new)
			unlink(o->output);
		return cmd_fail(&e);
	}
	return EXIT_DONE;
}

/* ---- import ---- */

#define ABSENT_SHOWN 4

static void show_imported(uint64_t samples)
{
	cmd_progress("%" PRIu64 " samples", samples);
}

static void note_count(uint64_t n, const char *what)
{
	if (n)
		cmd_note("%" PRIu64 " %s", n, what);
}

/* What was left out or is not known, each in a line. */
static void note_result(const char *path, const struct import_result *r)
{
	if (r->interrupted)
		cmd_note("%s: perf did not end as it should; what it wrote before was imported",
			path);
	note_count(r->guest, "samples of virtual machines were left out");
	note_count(r->foreign, "samples of events that the file does not name were left out");
	note_count(r->bad, "records that are not what their event says were left out");
	note_count(r->aux, "bytes of processor traces were left out");
	for (size_t i = 0; i < r->absent.n && i < ABSENT_SHOWN; i++)
		cmd_note("%s is not here as it was recorded%s%s: its samples have no names",
			r->absent.p[i].path, *r->absent.p[i].id ? ", build-id " : "",
			r->absent.p[i].id);
	if (r->absent.n > ABSENT_SHOWN)
		cmd_note("nor are %zu more files (perf archive, on the machine that recorded, puts "
			 "them together)",
			r->absent.n - ABSENT_SHOWN);
}

static int import_one(const char *path, const struct db_options *o, struct err *e)
{
	const struct import_options options = {
		.path = path, .label = o->label, .progress = show_imported};
	_cleanup_store_ struct store *s = NULL;
	struct import_result result = {0};
	int rc = value_store_open(o->output, STORE_WRITE, &s, e);

	if (!rc)
		rc = import_perf(s, &options, &result, e);
	cmd_progress_end();
	if (rc)
		return rc;
	printf("%s: %" PRIu64 " samples of %zu event%s, %" PRIu64 " unknown, %" PRIu64 " lost\n",
		o->output, result.samples, result.events, result.events == 1 ? "" : "s",
		result.unknown, result.lost);
	note_result(path, &result);
	import_result_deinit(&result);
	return 0;
}

static int db_import(struct db_options *o)
{
	struct err e = {0};
	bool is_new;

	if (o->nnames != 1)
		return cmd_usage("db",
			o->nnames ? "import takes one file, not also '%s'"
				  : "import needs the file that perf recorded",
			o->names[o->nnames - 1]);
	if (!o->output)
		o->output = "culprit.db";
	is_new = access(o->output, F_OK) != 0;
	if (import_one(o->names[0], o, &e)) {
		if (is_new)
			unlink(o->output);
		return cmd_fail(&e);
	}
	return EXIT_DONE;
}

/* ---- expire ---- */

static int db_expire(struct db_options *o)
{
	_cleanup_store_ struct store *s = NULL;
	struct store_size before, after;
	struct err e = {0};
	char was[16], is[16];
	int code = one_database(o);

	if (code)
		return code;
	if (!o->has_before && !o->has_size)
		return cmd_usage("db", "expire needs --age DAYS, --before DATE or --size BYTES");
	if (value_store_open(o->input, STORE_UPDATE, &s, &e) || store_size(s, &before, &e) ||
		store_expire(s, o->before, o->size, &e) || store_size(s, &after, &e))
		return cmd_fail(&e);
	printf("%s: %s, was %s\n", o->input, human_size(after.file, is),
		human_size(before.file, was));
	return EXIT_DONE;
}

/* ---- options ---- */

static const struct subverb {
	const char *name, *options; /* the letters that it takes */
	int (*run)(struct db_options *o);
} subverbs[] = {
	{"ls", "ij", db_ls},
	{"check", "i", db_check},
	{"merge", "o", db_merge},
	{"import", "ol", db_import},
	{"expire", "iabs", db_expire},
};

static int set_age(struct db_options *o, int64_t now)
{
	double days;

	if (parse_real(optarg, 0, 36500, &days))
		return cmd_usage("db", "--age takes a number of days, not '%s'", optarg);
	o->before = now - (int64_t)(days * 86400e6);
	o->has_before = true;
	return 0;
}

static int set_before(struct db_options *o, int64_t now)
{
	if (parse_time(optarg, now, &o->before))
		return cmd_usage(
			"db", "--before takes a date (\"2024-05-01 13:00\"), not '%s'", optarg);
	o->has_before = true;
	return 0;
}

static int db_option(struct db_options *o, int c)
{
	int64_t now = (int64_t)(io_clock_ns(CLOCK_REALTIME) / 1000);

	switch (c) {
	case 'i':
		o->input = optarg;
		return 0;
	case 'o':
		o->output = optarg;
		return 0;
	case 'l':
		o->label = optarg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'a':
		return set_age(o, now);
	case 'b':
		return set_before(o, now);
	}
	if (parse_size(optarg, &o->size) || !o->size)
		return cmd_usage("db", "--size takes bytes (\"500M\"), not '%s'", optarg);
	o->has_size = true;
	return 0;
}

static const struct option options[] = {
	{"input", required_argument, NULL, 'i'},
	{"output", required_argument, NULL, 'o'},
	{"label", required_argument, NULL, 'l'},
	{"json", no_argument, NULL, 'j'},
	{"age", required_argument, NULL, 'a'},
	{"before", required_argument, NULL, 'b'},
	{"size", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static const char *option_name(int c)
{
	for (const struct option *o = options; o->name; o++)
		if (o->val == c)
			return o->name;
	return "";
}

static int run(const struct subverb *v, int argc, char **argv)
{
	struct db_options o = {0};
	int c, code;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:o:l:h", options, NULL)) != -1) {
		if (c == 'h')
			return cmd_help_text("db");
		if (c == '?' || c == ':')
			return cmd_bad_option("db", c, argv);
		if (!strchr(v->options, c))
			return cmd_usage("db", "--%s does not go with %s", option_name(c), v->name);
		if ((code = db_option(&o, c)))
			return code;
	}
	o.names = argv + optind;
	o.nnames = argc - optind;
	return v->run(&o);
}

int cmd_db(int argc, char **argv)
{
	if (argc < 2)
		return cmd_usage("db", "say ls, check, merge, import or expire");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return cmd_help_text("db");
	for (size_t i = 0; i < sizeof subverbs / sizeof *subverbs; i++)
		if (!strcmp(subverbs[i].name, argv[1]))
			return run(&subverbs[i], argc - 1, argv + 1);
	return cmd_usage("db", "no '%s'; say ls, check, merge, import or expire", argv[1]);
}
