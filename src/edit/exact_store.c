#include "edit/exact_store.h"

#include "base/buf.h"
#include "base/err.h"
#include "collect/host.h"
#include "image/image.h"
#include "store/exact.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>

#define CODE_MOST (128 << 10) /* bytes of a procedure; larger ones are kept without */

struct storing {
	struct store *store;
	const struct exact_run *run;
	int64_t epoch, event, process;
};

/* ---- procedures ---- */

typedef VEC(struct store_procedure) procedure_list;

static uint64_t size_of(const struct procedure *p)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < p->nranges; i++)
		size += p->ranges[i].size;
	return size;
}

/* Its code is put behind what is there; where it will be is not known before all is read. */
static void add_procedure(struct image *im, uint64_t start, procedure_list *list, struct buf *code)
{
	const struct procedure *p = image_procedure_at(im, start);
	struct store_procedure *to;
	size_t before = code->n;

	if (!p || p->start != start)
		return;
	for (uint32_t i = 0; i < p->nranges && size_of(p) <= CODE_MOST; i++)
		if (image_code(im, &p->ranges[i], code)) {
			code->n = before;
			break;
		}
	to = vec_add(list);
	*to = (struct store_procedure){.p = *p, .code_size = code->n - before};
}

static int put_procedures(
	struct storing *s, struct image *im, int64_t id, const exact_rows *rows, struct err *e)
{
	procedure_list list = {0};
	struct buf code = {0};
	size_t at = 0;
	int rc;

	vec_each (row, rows)
		if (row->kind == EXACT_PROCEDURE)
			add_procedure(im, row->procedure, &list, &code);
	vec_each (p, &list) {
		p->code = p->code_size ? code.p + at : NULL;
		at += p->code_size;
	}
	rc = store_procedures_add(s->store, id, list.p, list.n, e);
	vec_deinit(&list);
	buf_deinit(&code);
	return rc;
}

/* ---- images ---- */

static int put_counts(struct storing *s, int64_t image, const exact_rows *rows, struct err *e)
{
	struct buf packed = {0};
	int rc;

	exact_pack(rows->p, rows->n, &packed);
	rc = store_profile_add(s->store,
		&(struct store_profile){.epoch = s->epoch,
			.event = s->event,
			.image = image,
			.process = s->process,
			.t0 = s->run->t0,
			.t1 = s->run->t1,
			.type = &blob_exact,
			.data = packed.p,
			.size = packed.n},
		e);
	buf_deinit(&packed);
	return rc;
}

static int put_image(struct storing *s, const struct exact_image *from, struct err *e)
{
	struct store_image si = {.kind = IMAGE_ELF, .path = from->path};
	struct image *im;
	int64_t id;
	int rc = image_open_path(from->path, &im, e);

	if (rc)
		return rc;
	si.identity = *image_id(im);
	si.nsegments = image_segments(im, &si.segments);
	rc = store_image(s->store, &si, &id, e);
	if (!rc)
		rc = put_procedures(s, im, id, &from->rows, e);
	if (!rc)
		rc = put_counts(s, id, &from->rows, e);
	image_destroy(im);
	return rc;
}

/* ---- the whole ---- */

static int put_run(struct storing *s, struct err *e)
{
	struct store_event event = {.name = "exact", .unit = STORE_COUNTED, .period = 1};
	const struct exact_run *run = s->run;
	int64_t host;
	int rc = host_put(s->store, &host, e);

	if (!rc)
		rc = store_epoch_start(s->store, host, run->t0, "", &s->epoch, e);
	event.epoch = s->epoch;
	if (!rc)
		rc = store_event(s->store, &event, e);
	s->event = event.id;
	if (!rc)
		rc = store_process(s->store,
			&(struct store_process){
				.epoch = s->epoch, .comm = run->command, .cgroup = ""},
			&s->process, e);
	for (size_t i = 0; i < run->n && !rc; i++)
		if (run->images[i].rows.n)
			rc = put_image(s, &run->images[i], e);
	return rc ? rc : store_epoch_end(s->store, s->epoch, run->t1, e);
}

int exact_store(const char *database, const struct exact_run *run, struct err *e)
{
	struct storing s = {.run = run};
	int rc = store_open(database, STORE_WRITE, &s.store, e);

	if (rc)
		return rc;
	rc = store_begin(s.store, e);
	if (!rc)
		rc = put_run(&s, e);
	if (!rc)
		rc = store_commit(s.store, e);
	store_close(s.store);
	return rc;
}
