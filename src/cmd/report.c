#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "values/values_pack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
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

void report_deinit(struct report *r)
{
	vec_deinit(&r->epochs);
	vec_deinit(&r->events);
	free(r->event_text);
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
