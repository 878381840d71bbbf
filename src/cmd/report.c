#include "analyze/find.h"
#include "analyze/tally.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "values/values_pack.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int add_events(struct report *r, const char *arg, struct err *e)
{
	char *save, *name;

	if (r->event_text)
		return err_set(e, -EINVAL, "-e may be given once, with a comma-separated list");
	r->event_text = xstrdup(arg);
	for (name = strtok_r(r->event_text, ",", &save); name; name = strtok_r(NULL, ",", &save))
		*vec_add(&r->events) = name;
	return r->events.n ? 0 : err_set(e, -EINVAL, "-e names no event");
}

static int set_pid(struct report *r, const char *arg, struct err *e)
{
	uint64_t pid;

	if (parse_uint(arg, 1, INT32_MAX, &pid))
		return err_set(e, -EINVAL, "--pid takes a process id, not '%s'", arg);
	r->filter.pid = (int32_t)pid;
	return 0;
}

static int set_time(struct report *r, const char *arg, struct err *e)
{
	int64_t now = (int64_t)(io_clock_ns(CLOCK_REALTIME) / 1000);

	if (parse_time_range(arg, now, &r->filter.t0, &r->filter.t1))
		return err_set(e, -EINVAL,
			"--time takes FROM,TO (\"-10m,\", \"13:00,13:05\", seconds), not '%s'",
			arg);
	return 0;
}

static int set_syntax(struct report *r, const char *arg, struct err *e)
{
	if (strcmp(arg, "att") && strcmp(arg, "intel"))
		return err_set(e, -EINVAL, "--syntax takes att or intel, not '%s'", arg);
	r->syntax = strcmp(arg, "att") ? ISA_INTEL : ISA_ATT;
	return 0;
}

int report_option(struct report *r, int c, const char *arg, struct err *e)
{
	switch (c) {
	case 'i':
		r->input = arg;
		return 0;
	case 'e':
		return add_events(r, arg, e);
	case 'p':
		return set_pid(r, arg, e);
	case 'n':
		if (parse_uint(arg, 1, UINT64_MAX, &r->rows))
			return err_set(e, -EINVAL, "-n takes a number of rows, not '%s'", arg);
		return 0;
	case REPORT_MIN_SHARE:
		if (parse_share(arg, &r->min_share))
			return err_set(e, -EINVAL,
				"--min-share takes \"0.5%%\" or \"0.005\", not '%s'", arg);
		r->has_min_share = true;
		return 0;
	case REPORT_SYNTAX:
		return set_syntax(r, arg, e);
	case REPORT_JSON:
		r->json = true;
		return 0;
	case REPORT_EPOCH:
		if (parse_epochs(arg, &r->epochs))
			return err_set(e, -EINVAL,
				"--epoch takes ids (\"3\", \"2-4\", \"last\"), not '%s'", arg);
		return 0;
	case REPORT_TIME:
		return set_time(r, arg, e);
	case REPORT_COMM:
		r->filter.comm = arg;
		return 0;
	case REPORT_IMAGE:
		r->filter.image = arg;
		return 0;
	case REPORT_PROC:
		r->procedure = arg;
		return 0;
	case REPORT_NO_PAGER:
		r->no_pager = true;
		return 0;
	}
	return 1;
}

static int take(struct report *r, const struct report_verb *v, void *arg, int c, char **argv)
{
	struct err e = {0};
	int rc = v->option ? v->option(arg, c, optarg) : 1;

	if (rc != 1)
		return rc;
	rc = report_option(r, c, optarg, &e);
	if (rc == 1)
		return cmd_bad_option(v->name, c, argv);
	return rc ? cmd_usage(v->name, "%s", e.text) : 0;
}

int report_parse(struct report *r, const struct report_verb *v, void *arg, int argc, char **argv)
{
	int c, rc = 0;

	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, v->letters, v->options, NULL)) != -1)
		rc = c == 'h' ? -1 : take(r, v, arg, c, argv);
	return rc;
}

int report_operand(const char *verb, int argc, char **argv, const char **out)
{
	if (optind + 1 < argc)
		return cmd_usage(verb, "one procedure at a time, not also '%s'", argv[optind + 1]);
	*out = optind < argc ? argv[optind] : NULL;
	return 0;
}

int report_no_operand(const char *verb, int argc, char **argv)
{
	if (optind == argc)
		return 0;
	return cmd_usage(verb, "'%s' is no option; filters are --comm, --image, --proc, --pid",
		argv[optind]);
}

const char *report_default_input(void)
{
	return access(CULPRIT_LOCAL_DB, F_OK) && !access(CULPRIT_SYSTEM_DB, F_OK)
		       ? CULPRIT_SYSTEM_DB
		       : CULPRIT_LOCAL_DB;
}

static int add_known(void *arg, const struct store_epoch *epoch)
{
	epoch_list *known = arg;

	*vec_add(known) = epoch->id;
	return 0;
}

/* An id that is not there would silently select nothing. */
static int check_epochs(struct report *r, epoch_list *known, struct err *e)
{
	vec_each (id, &r->epochs) {
		bool found = false;

		if (*id == EPOCH_LAST && known->n)
			*id = known->p[known->n - 1];
		vec_each (k, known)
			found |= *k == *id;
		if (!found)
			return err_set(e, -ENOENT,
				"epoch %" PRId64 " is not in %s; 'culprit db ls' lists them", *id,
				r->input);
	}
	return 0;
}

static int finish_epochs(struct report *r, struct store *s, struct err *e)
{
	epoch_list known = {0};
	int rc;

	rc = store_epochs(s, add_known, &known, e);
	if (!rc)
		rc = check_epochs(r, &known, e);
	r->together = r->epochs.n ? r->epochs.n : known.n;
	vec_deinit(&known);
	r->filter.epochs = r->epochs.p;
	r->filter.nepochs = r->epochs.n;
	return rc;
}

int report_open(struct report *r, struct store **out, struct err *e)
{
	struct store *s;
	int rc;

	if (!r->input)
		r->input = report_default_input();
	if ((rc = value_store_open(r->input, STORE_READ, &s, e)))
		return rc;
	/* One transaction, so that a daemon that goes on writing does not show in between. */
	rc = store_begin(s, e);
	if (!rc)
		rc = finish_epochs(r, s, e);
	if (rc) {
		store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

int report_select(struct report *r, const char *first, struct err *e)
{
	struct selection_options o = {
		.first = first,
		.events = r->events.p,
		.nevents = r->events.n,
	};
	int rc = report_open(r, &r->store, e);

	o.filter = r->filter;
	if (!rc)
		rc = selection_create(r->store, &o, &r->sel, e);
	if (!rc)
		r->nevents = selection_events(r->sel, &r->event);
	return rc;
}

void report_close(struct report *r)
{
	selection_destroy(r->sel);
	store_close(r->store);
	r->sel = NULL;
	r->store = NULL;
	r->nevents = 0;
}

void report_deinit(struct report *r)
{
	report_close(r);
	vec_deinit(&r->epochs);
	vec_deinit(&r->events);
	free(r->event_text);
}

static void print_candidates(const struct tally_row **rows, size_t n)
{
	enum { MOST = 20 };

	for (size_t i = 0; i < n && i < MOST; i++) {
		fprintf(stderr, "%10" PRIu64 "  ", rows[i]->samples[0]);
		cmd_put(stderr, selected_image_name(rows[i]->image));
		fprintf(stderr, "!0x%" PRIx64 "  ", rows[i]->start);
		cmd_put(stderr, rows[i]->name);
		fputc('\n', stderr);
	}
	if (n > MOST)
		fprintf(stderr, "            and %zu more\n", n - MOST);
}

int report_choose(const struct report *r, const struct tally *t, const char *what,
	const struct tally_row **out, struct err *e)
{
	const struct tally_row **rows;
	size_t n;
	enum find_kind kind = find_procedure(t, what, &rows, &n);
	int rc = 0;

	if (!n)
		rc = err_set(e, -ENOENT,
			"no procedure '%s' has samples in %s; 'culprit top' lists those that have",
			what, r->input);
	else if (n > 1 && kind != FIND_EXACT) {
		print_candidates(rows, n);
		rc = err_set(e, -EINVAL,
			"'%s' fits %zu procedures: name one of those above by IMAGE!0xSTART", what,
			n);
	} else if (n > 1) {
		cmd_note("%zu procedures are called %s; this is the hottest, %s!0x%" PRIx64, n,
			what, selected_image_name(rows[0]->image), rows[0]->start);
	}
	if (!rc)
		*out = rows[0];
	free(rows);
	return rc;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int report_output(const struct report *r, const char *path, FILE **out, struct err *e)
{
	if (!path)
		return 0;
	if (is_same_file(path, r->input))
		return err_set(
			e, -EINVAL, "%s: is the database itself: name another file with -o", path);
	return cmd_output_open(path, out, e);
}

void report_epochs_note(const struct report *r)
{
	if (r->together > 1)
		printf("%zu epochs together (--epoch last: the newest alone)\n", r->together);
}

void report_pager(const struct report *r)
{
	if (!r->no_pager && !r->json)
		term_pager_start();
}
