#include "analyze/counted_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "store/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A row of one run. */
struct run_row {
	struct exact_row row;
	uint32_t command; /* in commands */
};

struct epoch {
	int64_t id;
	uint64_t hash;
};

/* A command as far as this image goes. */
struct ran {
	uint64_t hash;
	double counted, sampled; /* runs */
};

struct counting {
	struct counted *c;
	const struct selected_image *im;
	VEC(struct epoch) epochs; /* that are of one command */
	VEC(struct ran) commands; /* the first: all that are of none */
	VEC(struct run_row) rows;
	VEC(int64_t) sampled; /* epochs with samples of the image */
};

/* ---- which epochs are of which command ---- */

static int add_command(void *arg, const struct store_profile *p)
{
	struct counting *t = arg;
	struct command_reader reader;
	struct command c, second;

	if (command_reader_init(&reader, p->data, p->size))
		return -EBADMSG;
	/* Of several commands in one epoch nobody knows which has the counts. */
	if (command_reader_next(&reader, &c) > 0 && c.runs == 1 &&
		command_reader_next(&reader, &second) == 0)
		*vec_add(&t->epochs) = (struct epoch){p->epoch, c.hash};
	return 0;
}

static struct ran *command_of(struct counting *t, int64_t epoch)
{
	uint64_t hash = 0;

	vec_each (x, &t->epochs)
		if (x->id == epoch)
			hash = x->hash;
	vec_each (x, &t->commands)
		if (x->hash == hash)
			return x;
	*vec_add(&t->commands) = (struct ran){.hash = hash};
	return &t->commands.p[t->commands.n - 1];
}

/* ---- what was counted ---- */

static int add_counts(void *arg, const struct store_profile *p)
{
	struct counting *t = arg;
	struct exact_reader reader;
	struct exact_row row;
	struct ran *command;
	int rc;

	if (p->image != t->im->id)
		return 0;
	if (exact_reader_init(&reader, p->data, p->size))
		return -EBADMSG;
	command = command_of(t, p->epoch);
	command->counted++;
	while ((rc = exact_reader_next(&reader, &row)) > 0)
		*vec_add(&t->rows) = (struct run_row){row, (uint32_t)(command - t->commands.p)};
	return rc;
}

static int by_row(const void *a, const void *b)
{
	const struct run_row *x = a, *y = b;
	int order = exact_row_compare(&x->row, &y->row);

	return order ? order : x->command < y->command ? -1 : x->command > y->command;
}

/* What the runs of one command have for a row, in [from, until): their mean, as often as it was
 * sampled. Runs that have none executed nothing of the procedure. */
static void add_runs(const struct counting *t, size_t from, size_t until, struct counted_row *to)
{
	const struct ran *command = &t->commands.p[t->rows.p[from].command];
	double times = t->c->tied ? command->sampled : command->counted;
	double sum = 0, least = INFINITY, most = 0;

	for (size_t i = from; i < until; i++) {
		double one = (double)t->rows.p[i].row.count;

		sum += one;
		least = one < least ? one : least;
		most = one > most ? one : most;
	}
	if ((double)(until - from) < command->counted)
		least = 0;
	to->count += times * sum / command->counted;
	to->doubt += times * (most - least);
}

static void add_up(struct counting *t)
{
	vec_sort(&t->rows, by_row);
	for (size_t i = 0, end; i < t->rows.n; i = end) {
		const struct run_row *first = &t->rows.p[i];
		struct counted_row *last = t->c->rows.n ? &t->c->rows.p[t->c->rows.n - 1] : NULL;

		for (end = i + 1; end < t->rows.n && !by_row(first, &t->rows.p[end]); end++)
			;
		if (!last || exact_row_compare(&last->key, &first->row)) {
			last = vec_add(&t->c->rows);
			*last = (struct counted_row){.key = first->row};
		}
		add_runs(t, i, end, last);
	}
}

/* ---- what was sampled ---- */

static int add_sampled(void *arg, const struct store_profile *p)
{
	struct counting *t = arg;

	vec_each (epoch, &t->sampled)
		if (*epoch == p->epoch)
			return 0;
	*vec_add(&t->sampled) = p->epoch;
	command_of(t, p->epoch)->sampled++;
	return 0;
}

/* Every epoch that was sampled is a whole run of a command that was counted. */
static bool is_tied(const struct counting *t, const struct store_filter *f)
{
	if (f->t0 || f->t1 || f->pid || f->comm || !t->sampled.n)
		return false;
	vec_each (x, &t->commands)
		if (x->sampled > 0 && (!x->hash || !(x->counted > 0)))
			return false;
	return true;
}

/* ---- the whole ---- */

static int gather(struct counting *t, struct selection *sel, struct err *e)
{
	struct store_filter all = *selection_filter(sel), of_image = all;
	int rc;

	of_image.event = all.event = all.image = NULL;
	of_image.type = &blob_exact;
	all.type = &blob_command;
	rc = store_profiles(selection_store(sel), &all, add_command, t, e);
	if (!rc)
		rc = store_profiles(selection_store(sel), &of_image, add_counts, t, e);
	if (rc == -EBADMSG)
		return err_set(e, rc, "exact counts are damaged: 'culprit db check' says which");
	if (!rc && t->rows.n)
		rc = selection_blobs_of(sel, t->im, &blob_pc, add_sampled, t, e);
	return rc;
}

int counted_create(
	struct selection *sel, const struct selected_image *im, struct counted **out, struct err *e)
{
	struct counting t = {.im = im};
	int rc;

	*out = NULL;
	t.c = xcalloc(1, sizeof *t.c);
	rc = gather(&t, sel, e);
	if (!rc && t.rows.n) {
		t.c->tied = is_tied(&t, selection_filter(sel));
		add_up(&t);
		*out = t.c;
	} else {
		counted_destroy(t.c);
	}
	vec_deinit(&t.epochs);
	vec_deinit(&t.commands);
	vec_deinit(&t.rows);
	vec_deinit(&t.sampled);
	return rc;
}

void counted_destroy(struct counted *c)
{
	if (!c)
		return;
	vec_deinit(&c->rows);
	free(c);
}

size_t counted_find(const struct counted *c, const struct exact_row *key)
{
	size_t low = 0, high = c->rows.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (exact_row_compare(&c->rows.p[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
