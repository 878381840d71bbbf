/* The machine that a selection was sampled on, and how much code keeps it busy. */
#include "analyze/why.h"

#include "analyze/evidence.h"
#include "analyze/foresight.h"
#include "analyze/residence.h"
#include "analyze/stays.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/io.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the clock ---- */

#define USUAL_CLOCK 3.0 /* GHz, where nothing says better */

/* What the processor is sold as: "... @ 2.80GHz", else what it runs at now. */
static double nominal_clock(void)
{
	_cleanup_(buf_deinit) struct buf text = {0};
	const char *at;
	double clock = 0;

	if (io_read_file(-1, "/proc/cpuinfo", 1 << 22, &text))
		return USUAL_CLOCK;
	if ((at = strstr(buf_cstr(&text), "model name")) && (at = strchr(at, '@')))
		clock = strtod(at + 1, NULL);
	else if ((at = strstr(buf_cstr(&text), "cpu MHz")) && (at = strchr(at, ':')))
		clock = strtod(at + 1, NULL) / 1000;
	return clock > 0.2 && clock < 20 ? clock : USUAL_CLOCK;
}

/* ---- hot code ---- */

#define LINE   64
#define PAGE   4096
#define NEARLY 0.99 /* of the samples */

struct unit {
	int64_t image;
	uint64_t number;
	uint64_t samples;
};

struct footprint {
	struct hmap lines, pages;
	size_t event;
	uint64_t samples;
};

static void add_unit(struct hmap *m, int64_t image, uint64_t number, uint64_t samples)
{
	struct unit key = {image, number, 0}, *u = hmap_put(m, &key, NULL);

	u->samples += samples;
}

static int add_code(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct footprint *f = arg;
	struct pc_count pc;
	int rc;

	(void)e;
	if (event != f->event)
		return 0;
	while ((rc = pc_reader_next(pcs, &pc)) > 0) {
		add_unit(&f->lines, im->id, pc.offset / LINE, pc.count);
		add_unit(&f->pages, im->id, pc.offset / PAGE, pc.count);
		f->samples += pc.count;
	}
	return rc;
}

static int compare_samples(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* How many of the most sampled it takes to have nearly all samples. */
static uint64_t count_hot(const struct hmap *m, uint64_t samples)
{
	VEC(uint64_t) list = {0};
	uint64_t sum = 0, n = 0;

	for (const struct unit *u = NULL; (u = hmap_next(m, u));)
		*vec_add(&list) = u->samples;
	vec_sort(&list, compare_samples);
	while (n < list.n && (double)sum < NEARLY * (double)samples)
		sum += list.p[n++];
	vec_deinit(&list);
	return n;
}

static int find_footprint(struct why_machine *m, struct selection *sel, size_t event, struct err *e)
{
	struct footprint f = {.event = event};
	int rc;

	hmap_init(&f.lines, sizeof(struct unit), offsetof(struct unit, samples));
	hmap_init(&f.pages, sizeof(struct unit), offsetof(struct unit, samples));
	rc = selection_profiles(sel, add_code, &f, e);
	if (!rc) {
		m->hot_lines = count_hot(&f.lines, f.samples);
		m->hot_pages = count_hot(&f.pages, f.samples);
	}
	hmap_deinit(&f.lines);
	hmap_deinit(&f.pages);
	return rc;
}

/* ---- the event ---- */

/* Samples that were not kept are time, too. */
static double all_cycles(const struct why_machine *m, const struct selected_event *ev)
{
	const struct store_account *a = &ev->account;
	double samples = (double)(a->attributed + a->unknown + a->lost + a->throttled);

	return samples * ev->period * (strncmp(ev->name, "cycles", 6) ? m->cycles_per_ns : 1);
}

/* What was calibrated when the time event was sampled; the last epoch counts. */
struct calibration {
	const struct selection *sel;
	int event;
	int32_t skid;
	double cycles_per_ns, cost; /* seconds of a sample */
};

static int take_calibration(void *arg, const struct store_event *ev)
{
	struct calibration *c = arg;

	if (selection_event(c->sel, ev->id) != c->event)
		return 0;
	if (ev->skid_share > 0)
		c->skid = ev->skid;
	if (ev->cycles_per_ns > 0)
		c->cycles_per_ns = ev->cycles_per_ns;
	c->cost = ev->cost;
	return 0;
}

/* cycles:p, :pp and :ppp ask for the address itself. */
static bool is_precise(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon && strchr(colon, 'p');
}

#define OWN_LEAST 0.5 /* what was measured in a bad moment must not turn things upside down */

static int find_calibration(struct why_machine *m, struct selection *sel, size_t time,
	const struct selected_event *ev, struct err *e)
{
	struct calibration c = {sel, (int)time, 1, 0, 0};
	int rc = store_events(selection_store(sel), take_calibration, &c, e);

	if (rc)
		return rc;
	m->skid = is_precise(ev->name) ? 0 : c.skid;
	m->own =
		strncmp(ev->name, "cycles", 6) ? fmax(OWN_LEAST, 1 - c.cost * 1e9 / ev->period) : 1;
	m->cycles_per_ns = c.cycles_per_ns > 0 ? c.cycles_per_ns : nominal_clock();
	return 0;
}

/* Those that count the misses of the first level: whoever misses none of it costs nothing. */
static const struct {
	const char *name;
	enum culprit culprit;
} bounding[] = {
	{"L1-dcache-load-misses", CULPRIT_DCACHE},
	{"dTLB-load-misses", CULPRIT_DTLB},
	{"L1-icache-load-misses", CULPRIT_ICACHE},
	{"iTLB-load-misses", CULPRIT_ITLB},
	{"branch-misses", CULPRIT_MISPREDICT},
};

static void find_events(struct why_machine *m, const struct selected_event *events, size_t n)
{
	for (unsigned c = 0; c < CULPRITS; c++)
		m->event[c].number = SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof bounding / sizeof *bounding; k++) {
			size_t length = strlen(bounding[k].name);
			const char *name = events[i].name;

			if (strncmp(name, bounding[k].name, length) ||
				(name[length] && name[length] != ':'))
				continue;
			m->event[bounding[k].culprit].number = i;
			m->event[bounding[k].culprit].period = events[i].period;
		}
}

void why_machine_deinit(struct why_machine *m)
{
	foresight_destroy(m->foresight);
	m->foresight = NULL;
	residence_destroy(m->residence);
	m->residence = NULL;
	stays_destroy(m->stays);
	m->stays = NULL;
}

/* Of the first cache of code, which has been twice as large since Granite Rapids. */
static uint64_t count_code_lines(void)
{
	long size = sysconf(_SC_LEVEL1_ICACHE_SIZE);

	return size > 0 ? (uint64_t)size / LINE : WHY_CODE_LINES;
}

int why_machine_init(struct why_machine *m, struct selection *sel, struct err *e)
{
	struct why_machine found = {.own = 1, .code_lines = count_code_lines()};
	size_t time = evidence_time_event(sel);
	const struct selected_event *events;
	int rc;

	find_events(&found, events, selection_events(sel, &events));
	found.model = model_of_host(&found.known);
	if (time == SIZE_MAX) {
		found.cycles_per_ns = nominal_clock();
		*m = found;
		return 0;
	}
	rc = find_calibration(&found, sel, time, &events[time], e);
	if (!rc) {
		found.cycles = all_cycles(&found, &events[time]);
		rc = find_footprint(&found, sel, time, e);
	}
	if (!rc)
		rc = foresight_create(sel, &found.foresight, e);
	if (!rc)
		rc = residence_create(sel, (uint32_t)found.code_lines, &found.residence, e);
	if (!rc)
		rc = stays_create(sel, &found.stays, e);
	if (rc)
		why_machine_deinit(&found);
	else
		*m = found;
	return rc;
}
