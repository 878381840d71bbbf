/* record --exact: how often every block and edge ran. */
#include "base/err.h"
#include "cmd/record_edited.h"
#include "edit/books.h"
#include "edit/exact.h"
#include "edit/guide.h"

#include <inttypes.h>
#include <sys/wait.h>

struct exact_own {
	struct exact_options options; /* of the file that is edited; the guide is ours */
	struct guide *guide;
	struct books_summary sum;
	size_t images;
};

static struct exact_own *own_of(struct edited_run *r)
{
	struct exact_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options.atomic = r->choice->atomic;
		own->options.per_thread = r->choice->per_thread;
	}
	return own;
}

static int tool(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e)
{
	struct exact_own *own = own_of(r);
	int rc = edited_find_guide(r, path, &own->guide, e);

	own->options.guide = own->guide;
	if (!rc)
		exact_tool(&own->options, out);
	return rc;
}

static void release(struct edited_run *r)
{
	guide_destroy(own_of(r)->guide);
}

static void add_result(struct edited_run *r, const struct edited_file *f, const exact_rows *rows)
{
	struct result *to = vec_add(&r->results.list);

	*to = (struct result){.path = f->original, .event = "exact", .type = &blob_exact};
	vec_each (row, rows)
		if (row->kind == EXACT_PROCEDURE)
			*vec_add(&to->procedures) = row->procedure;
	exact_pack(rows->p, rows->n, &to->packed);
}

/* Of a copy that somebody else ran only the copy itself knows. */
static bool was_killed(const struct edited_run *r, const struct counts *counts)
{
	return r->choice->counted ? !exact_all_ended(counts) : WIFSIGNALED(r->status);
}

static int read_file(struct edited_run *r, const struct edited_file *f, struct err *e)
{
	struct exact_own *own = own_of(r);
	struct books_summary sum;
	exact_rows rows = {0};
	struct counts counts;
	int rc = edited_map_counts(r, f, &counts, e);

	if (rc)
		return rc;
	rc = books_close(&(struct books_source){.map = f->edit.map.p,
				 .size = f->edit.map.n,
				 .counters = counts.p,
				 .n = counts.bytes / sizeof *counts.p,
				 .killed = was_killed(r, &counts),
				 .shared = edited_is_shared(r)},
		&rows, &sum);
	counts_unmap(&counts);
	if (rc)
		return err_set(e, rc, "%s: the map of its counters is damaged", f->edit.image);
	own->sum.procedures += sum.procedures;
	own->sum.exact += sum.exact;
	own->sum.blocks += sum.blocks;
	own->images += rows.n > 0;
	if (rows.n)
		add_result(r, f, &rows);
	vec_deinit(&rows);
	return 0;
}

static int read_all(struct edited_run *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->files.n && !rc; i++)
		rc = read_file(r, &r->files.p[i], e);
	return rc;
}

static void say(struct edited_run *r, const char *database)
{
	const struct exact_own *own = own_of(r);

	cmd_note("exact: %" PRIu64 " blocks run in %" PRIu32 " procedures of %zu files -> %s",
		own->sum.blocks, own->sum.procedures, own->images, database);
	if (!edited_is_shared(r) && own->sum.exact < own->sum.procedures)
		cmd_note("the books of %" PRIu32 " procedures do not balance (calls that did not "
			 "come back): they are not called exact",
			own->sum.procedures - own->sum.exact);
	edited_say_shared(r);
}

const struct edited_kind edited_exact = {
	.name = "exact",
	.tool = tool,
	.read = read_all,
	.say = say,
	.release = release,
};
