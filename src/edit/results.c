#include "edit/results.h"

#include "base/buf.h"
#include "base/err.h"
#include "collect/command.h"
#include "collect/host.h"
#include "image/image.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>

#define CODE_MOST (128 << 10) /* bytes of a procedure; larger ones are kept without */

struct storing {
	struct store *store;
	const struct results *run;
	int64_t epoch, process;
	int64_t event; /* of the last profile */
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
	struct storing *s, struct image *im, int64_t id, const struct result *from, struct err *e)
{
	procedure_list list = {0};
	struct buf code = {0};
	size_t at = 0;
	int rc;

	vec_each (start, &from->procedures)
		add_procedure(im, *start, &list, &code);
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

/* An event of that name may be there already: of the image before. */
static int put_profile(struct storing *s, int64_t image, const struct result *from, struct err *e)
{
	struct store_event event = {
		.epoch = s->epoch, .name = from->event, .unit = STORE_COUNTED, .period = 1};
	int rc = store_event(s->store, &event, e);

	s->event = event.id;
	return rc ? rc
		  : store_profile_add(s->store,
			    &(struct store_profile){.epoch = s->epoch,
				    .event = event.id,
				    .image = image,
				    .process = s->process,
				    .t0 = s->run->t0,
				    .t1 = s->run->t1,
				    .type = from->type,
				    .data = from->packed.p,
				    .size = from->packed.n},
			    e);
}

static int put_image(struct storing *s, const struct result *from, struct err *e)
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
		rc = put_procedures(s, im, id, from, e);
	if (!rc && from->packed.n)
		rc = put_profile(s, id, from, e);
	image_destroy(im);
	return rc;
}

/* ---- the whole ---- */

static int put_run(struct storing *s, struct err *e)
{
	const struct results *run = s->run;
	int64_t host;
	int rc = host_put(s->store, &host, e);

	if (!rc)
		rc = store_epoch_start(s->store, host, run->t0, "", &s->epoch, e);
	if (!rc)
		rc = store_process(s->store,
			&(struct store_process){
				.epoch = s->epoch, .comm = run->command, .cgroup = ""},
			&s->process, e);
	for (size_t i = 0; i < run->list.n && !rc; i++)
		rc = put_image(s, &run->list.p[i], e);
	if (!rc && run->hash && s->event)
		rc = command_keep(s->store,
			&(struct command_run){.program = run->list.p[0].path,
				.command = run->hash,
				.epoch = s->epoch,
				.event = s->event,
				.t0 = run->t0,
				.t1 = run->t1},
			e);
	return rc ? rc : store_epoch_end(s->store, s->epoch, run->t1, e);
}

int results_store(const char *database, const struct results *r, struct err *e)
{
	struct storing s = {.run = r};
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

void results_deinit(struct results *r)
{
	vec_each (result, &r->list) {
		buf_deinit(&result->packed);
		vec_deinit(&result->procedures);
	}
	vec_deinit(&r->list);
}
