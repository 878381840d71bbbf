/*
 * Simulated cache misses as a metric of paths.
 *
 *   path_misses DATABASE CALLGRIND.OUT
 *
 * Adds the metric "D1-simulated" to the paths that a database has: misses of the first data cache
 * by loads, as callgrind simulated them (--cache-sim=yes) in another run of the same job. What an
 * instruction missed is shared out among the paths that go through it by how often each ran: the
 * simulation knows no paths. So a path that misses more than others at the same instruction is not
 * seen, and the metric is spread more evenly over paths than it is.
 */
#include "analyze/path_code.h"
#include "analyze/path_list.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "callgrind.h"

#define METRIC "D1-simulated"

/* What is known of an instruction of the image at hand. */
struct insn_sum {
	uint64_t address;
	double executions, misses;
};

struct adding {
	struct store *store;
	struct selection *sel;
	struct path_list *list;
	const struct callgrind *c;
	struct hmap insns;    /* struct insn_sum */
	double count, misses; /* of the path at hand */
	struct err e;
};

static void check(struct adding *a, int rc)
{
	if (rc)
		errx(1, "%s", a->e.text);
}

static void take_misses(struct adding *a, const struct selected_image *im)
{
	hmap_clear(&a->insns);
	for (struct callgrind_insn *i = NULL; (i = hmap_next(&a->c->insns, i));)
		if (!strcmp(a->c->objects.strings[i->object], im->path)) {
			struct insn_sum *s = hmap_put(&a->insns, &i->address, NULL);

			s->misses += (double)i->count[CALLGRIND_D1];
		}
}

static void execute(void *arg, uint64_t address)
{
	struct adding *a = arg;
	struct insn_sum *s = hmap_get(&a->insns, &address);

	if (s)
		s->executions += a->count;
}

static void share(void *arg, uint64_t address)
{
	struct adding *a = arg;
	const struct insn_sum *s = hmap_get(&a->insns, &address);

	if (s && s->executions > 0)
		a->misses += s->misses * a->count / s->executions;
}

/* All paths of a procedure, with fn at each instruction. */
static void walk(
	struct adding *a, const struct path_procedure *p, path_code_fn *fn, uint64_t *misses)
{
	const struct path_entry *paths;
	struct path_code *code;

	path_list_all(a->list, &paths);
	if (!p->procedure ||
		path_code_create(path_list_codes(a->list), p->image, p->procedure, &code))
		return;
	for (size_t i = p->first; i < p->first + p->n; i++) {
		a->count = (double)paths[i].count;
		a->misses = 0;
		path_code_each(code, &paths[i].shape, fn, a);
		if (misses)
			misses[i] = (uint64_t)(a->misses + 0.5);
	}
	path_code_destroy(code);
}

typedef VEC(struct path_row) row_list;

static void add_rows(
	struct adding *a, const struct path_procedure *p, const uint64_t *misses, row_list *rows)
{
	const struct path_entry *paths;

	path_list_all(a->list, &paths);
	*vec_add(rows) = (struct path_row){.procedure = p->start, .how = p->how};
	for (size_t i = p->first; i < p->first + p->n; i++)
		*vec_add(rows) = (struct path_row){.procedure = p->start,
			.is_path = true,
			.shape = paths[i].shape,
			.metrics = {misses[i]}};
}

static void store_rows(struct adding *a, const struct selected_image *im, row_list *rows)
{
	struct metric_names names = {0};
	struct store_host host = {.name = "", .machine_id = "", .cpu = "", .kernel = ""};
	struct store_event event = {.name = "paths", .unit = STORE_COUNTED, .period = 1};
	struct buf packed = {0};
	int64_t host_id, process, epoch;

	metric_add(&names, METRIC);
	vec_sort(rows, path_row_compare);
	paths_pack(&names, rows->p, rows->n, &packed);
	check(a, store_begin(a->store, &a->e));
	check(a, store_host(a->store, &host, &host_id, &a->e));
	check(a, store_epoch_start(a->store, host_id, 1, METRIC, &epoch, &a->e));
	event.epoch = epoch;
	check(a, store_event(a->store, &event, &a->e));
	check(a, store_process(a->store,
			 &(struct store_process){.epoch = epoch, .comm = "callgrind", .cgroup = ""},
			 &process, &a->e));
	check(a, store_profile_add(a->store,
			 &(struct store_profile){.epoch = epoch,
				 .event = event.id,
				 .image = im->id,
				 .process = process,
				 .t0 = 1,
				 .t1 = 2,
				 .type = &blob_path,
				 .data = packed.p,
				 .size = packed.n},
			 &a->e));
	check(a, store_epoch_end(a->store, epoch, 2, &a->e));
	check(a, store_commit(a->store, &a->e));
	buf_deinit(&packed);
}

static void add_image(struct adding *a, const struct selected_image *im)
{
	const struct path_procedure *procedures;
	const struct path_entry *paths;
	size_t n = path_list_procedures(a->list, &procedures);
	uint64_t *misses = xcalloc(path_list_all(a->list, &paths) + 1, sizeof *misses);
	row_list rows = {0};

	take_misses(a, im);
	for (size_t i = 0; i < n; i++)
		if (procedures[i].image == im)
			walk(a, &procedures[i], execute, NULL);
	for (size_t i = 0; i < n; i++)
		if (procedures[i].image == im) {
			walk(a, &procedures[i], share, misses);
			add_rows(a, &procedures[i], misses, &rows);
		}
	if (rows.n)
		store_rows(a, im, &rows);
	vec_deinit(&rows);
	free(misses);
}

int main(int argc, char **argv)
{
	struct callgrind c;
	struct adding a = {.c = &c};
	struct selected_image *images;
	size_t n;

	if (argc != 3)
		errx(2, "usage: path_misses DATABASE CALLGRIND.OUT");
	callgrind_open(&c, argv[2]);
	hmap_init(&a.insns, sizeof(struct insn_sum), offsetof(struct insn_sum, executions));
	check(&a, store_open(argv[1], STORE_UPDATE, &a.store, &a.e));
	check(&a, selection_create(a.store, &(struct selection_options){0}, &a.sel, &a.e));
	check(&a, path_list_create(a.sel, &(struct path_list_options){.metric = PATH_BY_COUNT},
			  &a.list, &a.e));
	n = selection_images(a.sel, &images);
	for (size_t i = 0; i < n; i++)
		add_image(&a, &images[i]);
	path_list_destroy(a.list);
	selection_destroy(a.sel);
	store_close(a.store);
	hmap_deinit(&a.insns);
	callgrind_deinit(&c);
	return 0;
}
