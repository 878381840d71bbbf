/*
 * How much longer work takes while it is sampled: one thread per CPU does small pieces of fixed
 * work, compression, queries, sorting and a walk through memory, each of a millisecond or so, and
 * times every piece. Several samplers are compared in turns (phases.h); a piece counts for a
 * sampler when it was that one's turn from beginning to end.
 *
 *   work [-t SECONDS] [-s PHASE_MS] -x NAME=[PID]...
 *
 * Prints a line for each phase: phase=perf pieces=40123 us=812.1 slowdown=0.0713, the slowdown
 * being that of the mean against all phases named as the first, for each kind of work on each CPU,
 * averaged over these. Pieces that took half as long again as the median are left out in every
 * phase: then another process or another machine ran.
 */
#include "phases.h"

#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <zstd.h>

#define TEXT       24576
#define NUMBERS    12000
#define CHAIN      (1 << 17)
#define STEPS      60000
#define MAX_PIECES (1 << 16)

enum kind { COMPRESS, QUERY, SORT, WALK, KINDS };

struct pieces {
	float *us;
	uint32_t n;
};

struct worker {
	pthread_t thread;
	int cpu;
	struct pieces pieces[KINDS][MAX_PHASES];
	char text[TEXT], packed[2 * TEXT];
	uint32_t numbers[NUMBERS], sorted[NUMBERS];
	uint32_t *chain;
	ZSTD_CCtx *zstd;
	sqlite3 *db;
	sqlite3_stmt *query;
	uint64_t seed, sum;
};

static uint32_t random_below(struct worker *w, uint32_t n)
{
	w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (w->seed >> 32) * n >> 32;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* A random cycle through 512 KB. */
static void make_chain(struct worker *w)
{
	w->chain = malloc(CHAIN * sizeof *w->chain);
	if (!w->chain)
		err(1, "memory");
	for (uint32_t i = 0; i < CHAIN; i++)
		w->chain[i] = i;
	for (uint32_t i = CHAIN - 1; i > 0; i--) {
		uint32_t k = random_below(w, i), t = w->chain[i];
		w->chain[i] = w->chain[k];
		w->chain[k] = t;
	}
}

static void make_table(struct worker *w)
{
	static const char sql[] =
		"CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT);"
		"WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3000) "
		"INSERT INTO t SELECT i, i * 7919 % 1009, printf('%08x', i * 2654435761) FROM r;"
		"CREATE INDEX tb ON t(b);";
	static const char query[] = "SELECT sum(x.a), max(x.c) FROM t x JOIN t y ON x.b = y.b "
				    "WHERE y.a < 400 AND x.c LIKE '%7%'";
	if (sqlite3_open(":memory:", &w->db) || sqlite3_exec(w->db, sql, NULL, NULL, NULL) ||
		sqlite3_prepare_v2(w->db, query, -1, &w->query, NULL))
		errx(1, "sqlite: %s", sqlite3_errmsg(w->db));
}

static void prepare(struct worker *w)
{
	w->seed = 1;
	for (int i = 0; i < TEXT; i++)
		w->text[i] =
			" etaoinshrdlucmfwypvbgk"[random_below(w, 23) * random_below(w, 23) / 23];
	for (int i = 0; i < NUMBERS; i++)
		w->numbers[i] = random_below(w, UINT32_MAX);
	w->zstd = ZSTD_createCCtx();
	make_chain(w);
	make_table(w);
}

static void do_piece(struct worker *w, enum kind kind)
{
	uint32_t at = 0;
	switch (kind) {
	case COMPRESS:
		w->sum += ZSTD_compressCCtx(w->zstd, w->packed, sizeof w->packed, w->text, TEXT, 6);
		break;
	case QUERY:
		while (sqlite3_step(w->query) == SQLITE_ROW)
			w->sum += sqlite3_column_int64(w->query, 0);
		sqlite3_reset(w->query);
		break;
	case SORT:
		memcpy(w->sorted, w->numbers, sizeof w->sorted);
		qsort(w->sorted, NUMBERS, sizeof *w->sorted, by_value);
		break;
	case WALK:
		for (int i = 0; i < STEPS; i++)
			at = w->chain[at];
		w->sum += at;
		break;
	case KINDS:
		break;
	}
}

static void *run(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) < 0)
		err(1, "CPU %d", w->cpu);
	for (int kind = 0; !atomic_load(&over); kind = (kind + 1) % KINDS) {
		int phase = atomic_load(&turn);
		unsigned number = atomic_load(&turns);
		double t0 = seconds_now();
		do_piece(w, kind);
		double t1 = seconds_now();
		if (phase < 0 || atomic_load(&turn) != phase || atomic_load(&turns) != number)
			continue;
		struct pieces *p = &w->pieces[kind][phase];
		if (p->n < MAX_PIECES)
			p->us[p->n++] = (t1 - t0) * 1e6;
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Adds up those that are within the limit. */
static uint32_t add_pieces(const struct pieces *p, double limit, double *sum)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->us[i] <= limit) {
			*sum += p->us[i];
			n++;
		}
	return n;
}

/* The mean over all phases of that name. */
static double mean_of(const struct pieces *p, const char *name, double limit)
{
	double sum = 0;
	uint32_t n = 0;
	for (int k = 0; k < nphases; k++)
		if (!strcmp(phases[k].name, name))
			n += add_pieces(&p[k], limit, &sum);
	return n ? sum / n : 0;
}

static bool seen_before(int phase)
{
	for (int k = 0; k < phase; k++)
		if (!strcmp(phases[k].name, phases[phase].name))
			return true;
	return false;
}

static void report(struct worker **w, int n)
{
	double slowdown[MAX_PHASES] = {0}, us[MAX_PHASES] = {0};
	uint32_t pieces[MAX_PHASES] = {0};
	for (int i = 0; i < n * KINDS; i++) {
		struct pieces *p = w[i / KINDS]->pieces[i % KINDS];
		if (!p[0].n)
			errx(1, "no piece of work came to its end in time; give more with -t");
		qsort(p[0].us, p[0].n, sizeof *p[0].us, by_time);
		double limit = 1.5 * p[0].us[p[0].n / 2], base = mean_of(p, phases[0].name, limit);
		for (int k = 0; k < nphases; k++) {
			double mean = mean_of(p, phases[k].name, limit);
			us[k] += mean / (n * KINDS);
			slowdown[k] += (mean / base - 1) / (n * KINDS);
			pieces[k] += p[k].n;
		}
	}
	for (int k = 0; k < nphases; k++)
		if (!seen_before(k))
			printf("phase=%s pieces=%u us=%.2f slowdown=%.6f\n", phases[k].name,
				pieces[k], us[k], slowdown[k]);
}

static struct worker *start_worker(int cpu)
{
	struct worker *w = calloc(1, sizeof *w);
	if (!w)
		err(1, "memory");
	w->cpu = cpu;
	for (int i = 0; i < KINDS * MAX_PHASES; i++)
		if (!(w->pieces[i / MAX_PHASES][i % MAX_PHASES].us =
				    malloc(MAX_PIECES * sizeof(float))))
			err(1, "memory");
	prepare(w);
	return w;
}

int main(int argc, char **argv)
{
	struct worker *w[MAX_CPUS];
	double seconds = 10;
	long phase_ms = 30;
	for (int c; (c = getopt(argc, argv, "t:s:x:")) != -1;) {
		switch (c) {
		case 't':
			seconds = atof(optarg);
			break;
		case 's':
			phase_ms = atol(optarg);
			break;
		case 'x':
			add_phase(optarg);
			break;
		default:
			errx(2, "usage: work [-t SECONDS] [-s PHASE_MS] -x NAME=[PID]...");
		}
	}
	if (!nphases)
		errx(2, "usage: work [-t SECONDS] [-s PHASE_MS] -x NAME=[PID]...");
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	n = n < MAX_CPUS ? n : MAX_CPUS;
	for (int i = 0; i < n; i++)
		w[i] = start_worker(i);
	for (int i = 0; i < n; i++)
		if (pthread_create(&w[i]->thread, NULL, run, w[i]))
			errx(1, "no thread for CPU %d", i);
	direct(seconds, phase_ms);
	for (int i = 0; i < n; i++)
		pthread_join(w[i]->thread, NULL);
	report(w, n);
	return 0;
}
