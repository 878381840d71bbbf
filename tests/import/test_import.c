#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "import/import.h"
#include "import/perf_data.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/pack.h"
#include "store/store.h"

#include <errno.h>
#include <link.h>

/* Where this program is mapped in the recordings, with the offset of its code. */
#define MAPPED 0x55550000000ull

static char folder[] = "/tmp/culprit-test-import.XXXXXX";
static char *file, *database, *self;
static struct image_id self_id;
static struct segment code;
static uint64_t base;

/* Code with branches at known places. */
__asm__(".text\n"
	"straight_begin: nop\n"
	"straight_first: je straight_end\n"
	"nop\n"
	"straight_second: jne straight_end\n"
	"nop\n"
	"straight_jump: jmp straight_begin\n"
	"straight_end: ret\n");
extern const uint8_t straight_begin[], straight_first[], straight_second[], straight_jump[],
	straight_end[];

static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	return 1;
}

static int set_up(void **state)
{
	const struct segment *list;
	struct image *im;

	(void)state;
	self = realpath("/proc/self/exe", NULL);
	if (!mkdtemp(folder) || image_open_path(self, &im, NULL) < 0)
		return -1;
	self_id = *image_id(im);
	image_segments(im, &list);
	code = list[0];
	image_destroy(im);
	dl_iterate_phdr(find_base, NULL);
	file = xasprintf("%s/perf.data", folder);
	database = xasprintf("%s/culprit.db", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(file);
	unlink(database);
	free(file);
	free(database);
	free(self);
	return rmdir(folder);
}

/* As the recording has the address of something in this program. */
static uint64_t recorded(const void *p)
{
	return (uintptr_t)p - base - code.vaddr + MAPPED;
}

static uint64_t offset_of(const void *p)
{
	return (uintptr_t)p - base - code.vaddr + code.offset;
}

static void map_self(struct data *d, uint64_t time)
{
	data_mmap(&d->records, 7, time, MAPPED, code.size, code.offset, &self_id, self);
}

/* Imports what was built, which is gone afterwards. */
static int import(struct data *d, struct import_result *out, struct err *e)
{
	const struct import_options o = {.path = file};
	struct buf b;
	struct store *s;
	int r;

	for (size_t i = 0; i < d->nattrs; i++)
		d->attrs[i].build_id = 1;
	b = data_file(d);
	data_write(file, &b);
	buf_deinit(&b);
	data_deinit(d);
	unlink(database);
	assert_int_equal(store_open(database, STORE_WRITE, &s, e), 0);
	r = import_perf(s, &o, out, e);
	store_close(s);
	return r;
}

/* What is in the database of a type: the weights, and edges. */
struct seen {
	struct edge edges[16];
	size_t n;
	uint64_t samples;
};

static int see(void *arg, const struct store_profile *p)
{
	struct seen *seen = arg;
	struct edge_reader r;
	uint64_t weight;

	assert_int_equal(p->type->weight(p->data, p->size, &weight), 0);
	seen->samples += weight;
	if (p->type != &blob_edge)
		return 0;
	assert_int_equal(edge_reader_init(&r, p->data, p->size), 0);
	while (seen->n < 16 && edge_reader_next(&r, &seen->edges[seen->n]) > 0)
		seen->n++;
	return 0;
}

static struct seen stored(const struct blob_type *type, const char *event)
{
	struct store_filter filter = {.type = type, .event = event};
	struct seen seen = {0};
	struct store *s;
	struct err e = {0};

	assert_int_equal(store_open(database, STORE_READ, &s, &e), 0);
	assert_int_equal(store_profiles(s, &filter, see, &seen, &e), 0);
	store_close(s);
	return seen;
}

static void check_edge(const struct seen *s, const void *from, const void *to, uint64_t count)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->edges[i].from == offset_of(from) && s->edges[i].to == offset_of(to)) {
			assert_int_equal(s->edges[i].count, count);
			return;
		}
	fail_msg("there is no such edge");
}

/*
 * Samples come before the mapping that they need, in two rounds; some are of nobody, of a guest or
 * of no event, and one event was lost twice over.
 */
static void test_order_and_accounts(void **state)
{
	struct data d = {.attrs = {data_attr(0, 0), data_attr(2, 0)}, .nattrs = 2};
	struct import_result r;
	struct err e = {0};
	size_t start;

	(void)state;
	d.attrs[0].read_format = 1 << 4; /* it counts what it loses */
	perf_sample(&d.records, 10, recorded(straight_begin), 7, 2000, PERF_RECORD_MISC_USER);
	perf_sample(&d.records, 11, recorded(straight_begin), 7, 3000, PERF_RECORD_MISC_USER);
	data_round(&d.records);
	map_self(&d, 1000);
	perf_comm(&d.records, 7, "it", 900, true);
	perf_sample(&d.records, 10, 0x10, 7, 5000, PERF_RECORD_MISC_USER);
	perf_sample(&d.records, 10, 0x20, 7, 6000, PERF_RECORD_MISC_GUEST_USER);
	perf_sample(&d.records, 99, 0x30, 7, 6000, PERF_RECORD_MISC_USER);
	for (unsigned i = 0; i < 2; i++) {
		start = perf_begin(&d.records, i ? PERF_RECORD_LOST_SAMPLES : PERF_RECORD_LOST, 0);
		if (!i)
			buf_u64(&d.records, 10);
		buf_u64(&d.records, i ? 40 : 50); /* also of other records */
		perf_end(&d.records, start, 7, 7, 7000, 10);
	}
	data_round(&d.records);
	assert_int_equal(import(&d, &r, &e), 0);
	assert_int_equal(r.samples, 3);
	assert_int_equal(r.unknown, 1);
	assert_int_equal(r.guest, 1);
	assert_int_equal(r.foreign, 1);
	assert_int_equal(r.lost, 40);
	assert_int_equal(r.events, 2);
	assert_int_equal(r.absent.n, 0);
	import_result_deinit(&r);
	assert_int_equal(stored(&blob_pc, "cpu-clock").samples, 2);
	assert_int_equal(stored(&blob_pc, "page-faults").samples, 1);
}

/* A sample with more behind it. */
static size_t begin_sample(struct data *d, uint64_t pc, uint64_t time)
{
	size_t start = d->records.n;

	perf_sample(&d->records, 10, pc, 7, time, PERF_RECORD_MISC_USER);
	return start;
}

/* Taken branches become edges, and those that were passed on the way from one to the next. */
static void test_branches(void **state)
{
	struct data d = {.attrs = {data_attr(0, PERF_SAMPLE_BRANCH_STACK)}, .nattrs = 1};
	struct import_result r;
	struct err e = {0};
	struct seen seen;

	(void)state;
	d.attrs[0].branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	map_self(&d, 1000);
	for (unsigned i = 0; i < 5; i++) {
		size_t start = begin_sample(&d, recorded(straight_begin), 2000 + i);

		buf_u64(&d.records, 3);
		for (unsigned k = 0; k < 2; k++) {
			buf_u64(&d.records, recorded(straight_jump));
			buf_u64(&d.records, recorded(straight_begin));
			buf_u64(&d.records, 0);
		}
		for (unsigned k = 0; k < 3; k++)
			buf_u64(&d.records, 0); /* nothing was remembered */
		perf_size(&d.records, start);
	}
	assert_int_equal(import(&d, &r, &e), 0);
	assert_int_equal(r.samples, 5);
	import_result_deinit(&r);
	seen = stored(&blob_edge, NULL);
	assert_int_equal(seen.n, 3);
	check_edge(&seen, straight_jump, straight_begin, 10);
	check_edge(&seen, straight_first, straight_first + 2, 5);
	check_edge(&seen, straight_second, straight_second + 2, 5);
}

/* Marks say whose the addresses are; a guest's are nobody's here. */
static void test_chain(void **state)
{
	struct data d = {.attrs = {data_attr(0, PERF_SAMPLE_CALLCHAIN)}, .nattrs = 1};
	const uint64_t chain[] = {PERF_CONTEXT_GUEST, 1, PERF_CONTEXT_KERNEL, 0xffffffff81000010,
		PERF_CONTEXT_USER, recorded(straight_begin), recorded(straight_end)};
	struct import_result r;
	struct err e = {0};
	size_t start;

	(void)state;
	map_self(&d, 1000);
	start = begin_sample(&d, recorded(straight_begin), 2000);
	buf_u64(&d.records, sizeof chain / sizeof *chain);
	buf_put(&d.records, chain, sizeof chain);
	perf_size(&d.records, start);
	start = begin_sample(&d, recorded(straight_begin), 2001);
	buf_u64(&d.records, UINT64_MAX / 8); /* more than there is */
	perf_size(&d.records, start);
	assert_int_equal(import(&d, &r, &e), 0);
	assert_int_equal(r.samples, 1);
	assert_int_equal(r.bad, 1);
	import_result_deinit(&r);
	assert_int_equal(stored(&blob_context, NULL).samples, 1);
}

/* Another build at the same place is not taken for it. */
static void test_absent(void **state)
{
	struct data d = {.attrs = {data_attr(0, 0)}, .nattrs = 1};
	struct image_id other = self_id;
	struct import_result r;
	struct err e = {0};

	(void)state;
	other.bytes[0] ^= 1;
	data_mmap(&d.records, 7, 1000, MAPPED, code.size, code.offset, &other, self);
	perf_sample(&d.records, 10, recorded(straight_begin), 7, 2000, PERF_RECORD_MISC_USER);
	assert_int_equal(import(&d, &r, &e), 0);
	assert_int_equal(r.unknown, 0);
	assert_int_equal(r.absent.n, 1);
	assert_string_equal(r.absent.p[0].path, self);
	import_result_deinit(&r);
}

/* What fails leaves the database as it was. */
static void test_all_or_nothing(void **state)
{
	struct data d = {.attrs = {data_attr(0, 0)}, .nattrs = 1};
	struct import_result r;
	struct err e = {0};

	(void)state;
	map_self(&d, 1000);
	for (unsigned i = 0; i < 100; i++)
		perf_sample(&d.records, 10, recorded(straight_begin), 7, i * 1000000000ull + 2000,
			PERF_RECORD_MISC_USER);
	data_round(&d.records);
	buf_u64(&d.records, 9); /* a record without a size */
	assert_int_equal(import(&d, &r, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "nonsense"));
	assert_int_equal(stored(&blob_pc, NULL).samples, 0);

	d = (struct data){.attrs = {data_attr(0, 0)}, .nattrs = 1};
	data_string(data_feature(&d, 6), "aarch64");
	map_self(&d, 1000);
	assert_int_equal(import(&d, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "aarch64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_accounts),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_all_or_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
