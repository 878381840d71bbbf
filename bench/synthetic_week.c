/*
 * A week of a busy machine as the daemon keeps it: by the hour, 480 images and 5 million addresses
 * in all, few images hot and many seen now and then. Usage: synthetic_week FILE
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/pack.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	IMAGES = 480,
	HOURS = 7 * 24,
	PCS = 5000000,
	COMMS = 24,
	PROCEDURES = 500, /* of an image */
	PROCEDURE_SIZE = 512,
};

#define HOUR 3600000000ll
#define T0   1700002800000000ll /* on the hour */

struct week {
	struct store *s;
	struct err *e;
	struct store_event event;
	int64_t images[IMAGES], processes[COMMS];
	uint64_t seed;
	uint64_t pcs; /* written so far */
};

static uint32_t draw(struct week *w, uint32_t below)
{
	w->seed = w->seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((w->seed >> 33) % below);
}

static int add_image(struct week *w, unsigned number)
{
	_cleanup_free_ struct range *ranges = xcalloc(PROCEDURES, sizeof *ranges);
	_cleanup_free_ struct store_procedure *list = xcalloc(PROCEDURES, sizeof *list);
	char path[64], names[PROCEDURES][32];
	const struct segment whole = {0, PROCEDURES * PROCEDURE_SIZE + 0x1000, 0x400000};
	struct store_image im = {
		.kind = IMAGE_ELF, .path = path, .segments = &whole, .nsegments = 1};
	int r;

	snprintf(path, sizeof path, "/usr/lib/week/libweek%u.so", number);
	im.identity.size = 20;
	memcpy(im.identity.bytes, &number, sizeof number);
	r = store_image(w->s, &im, &w->images[number], w->e);
	for (unsigned i = 0; i < PROCEDURES; i++) {
		snprintf(names[i], sizeof names[i], "week_%u_procedure_%u", number, i);
		ranges[i] = (struct range){0x401000 + i * PROCEDURE_SIZE, PROCEDURE_SIZE};
		list[i].p = (struct procedure){
			ranges[i].start, &ranges[i], 1, PROCEDURE_SYMBOL, names[i]};
	}
	return r ? r : store_procedures_add(w->s, w->images[number], list, PROCEDURES, w->e);
}

static int start(struct week *w)
{
	const struct store_host host = {"week", "0", "cpu", "6.1", 2};
	char comm[16];
	int64_t host_id;
	int r = store_host(w->s, &host, &host_id, w->e);

	if (!r)
		r = store_epoch_start(w->s, host_id, T0, "", &w->event.epoch, w->e);
	if (!r)
		r = store_event(w->s, &w->event, w->e);
	for (unsigned i = 0; !r && i < IMAGES; i++)
		r = add_image(w, i);
	for (unsigned i = 0; !r && i < COMMS; i++) {
		struct store_process p = {.epoch = w->event.epoch, .comm = comm, .cgroup = ""};

		snprintf(comm, sizeof comm, "comm%u", i);
		r = store_process(w->s, &p, &w->processes[i], w->e);
	}
	return r;
}

/* Addresses lie in clusters, as the hot loops of procedures do, and most have one sample. */
static uint64_t draw_pcs(struct week *w, uint32_t n, struct buf *out)
{
	_cleanup_free_ struct pc_count *list = xcalloc(n, sizeof *list);
	uint32_t room = PROCEDURES * PROCEDURE_SIZE, step = 2 * (room / n ? room / n : 1);
	uint64_t samples = 0, at = 0x1000;

	for (uint32_t i = 0; i < n; i++) {
		at += 1 + (draw(w, 3) ? draw(w, 16) : draw(w, step < 4096 ? step : 4096));
		list[i] = (struct pc_count){at, draw(w, 3) ? 1 : 2 + draw(w, 50)};
		samples += list[i].count;
	}
	pack_pcs(list, n, out);
	return samples;
}

static int add_profile(
	struct week *w, unsigned hour, unsigned image, uint32_t n, struct store_total *total)
{
	unsigned comm = draw(w, 3) ? image % COMMS : draw(w, COMMS);
	struct buf data = {0};
	uint64_t samples = draw_pcs(w, n, &data);
	struct store_profile p = {
		.epoch = w->event.epoch,
		.event = w->event.id,
		.image = w->images[image],
		.process = w->processes[comm],
		.t0 = T0 + hour * HOUR,
		.t1 = T0 + (hour + 1) * HOUR,
		.type = &blob_pc,
		.data = data.p,
		.size = data.n,
	};
	int r = store_profile_add(w->s, &p, w->e);

	w->pcs += n;
	*total = (struct store_total){
		.pid = 1000 + (int32_t)comm * 7,
		.tid = 1000 + (int32_t)comm * 7 + (int32_t)draw(w, 4),
		.started = T0 + comm,
		.comm = "comm",
		.thread = "thread",
		.cgroup = "/system.slice/week.service",
		.cpu = (int32_t)draw(w, 2),
		.image = w->images[image],
		.event = w->event.id,
		.samples = samples,
	};
	buf_deinit(&data);
	return r;
}

/* The hotter an image, the more hours it runs in and the more addresses it has there. */
static int add_hour(struct week *w, unsigned hour)
{
	static struct store_total totals[IMAGES * 4];
	struct store_account account = {.scale = 1};
	uint64_t until = (uint64_t)PCS * (hour + 1) / HOURS;
	size_t n = 0;
	int r = store_begin(w->s, w->e);

	if (!r && !hour)
		r = start(w);
	while (!r && w->pcs < until && n < sizeof totals / sizeof *totals) {
		/* Three that come round in turn, so that each is seen. */
		unsigned image = n < 3 ? (hour * 3 + n) % IMAGES : draw(w, 1 + draw(w, IMAGES));
		uint32_t most = 6000 / (image + 1) + 200, pcs = 1 + draw(w, most);

		r = add_profile(w, hour, image, pcs, &totals[n]);
		account.attributed += totals[n++].samples;
	}
	account.expected = (double)account.attributed;
	if (!r)
		r = store_totals_add(w->s, w->event.epoch, T0 + hour * HOUR, T0 + (hour + 1) * HOUR,
			totals, n, w->e);
	if (!r)
		r = store_account_add(w->s, w->event.id, T0 + hour * HOUR, T0 + (hour + 1) * HOUR,
			&account, w->e);
	return r ? r : store_commit(w->s, w->e);
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct week w = {
		.e = &e,
		.event = {.name = "cpu-clock", .unit = "ns", .period = 1e6, .rate = 1000},
		.seed = 1,
	};
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return EXIT_USAGE;
	}
	unlink(argv[1]);
	r = store_open(argv[1], STORE_WRITE, &w.s, &e);
	for (unsigned hour = 0; !r && hour < HOURS; hour++)
		r = add_hour(&w, hour);
	if (!r)
		r = store_compact(w.s, INT64_MAX, HOUR, &e);
	store_close(w.s);
	if (r) {
		fprintf(stderr, "%s\n", e.text);
		return err_exit_code(r);
	}
	printf("%d images, %llu addresses, %d hours\n", IMAGES, (unsigned long long)w.pcs, HOURS);
	return 0;
}
