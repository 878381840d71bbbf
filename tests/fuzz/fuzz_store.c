/*
 * A database whose bytes were changed: opening, checking and reading it may fail but not crash. The
 * input says what to change: three bytes of place and one to write, again and again; a last piece
 * of three bytes cuts the file there.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/pack.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define T0 1700000000000000

static char path[64];
static struct buf sound; /* the database before it is changed */

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* A changed header may ask for a log. */
static void remove_files(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	char name[80];

	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

static void forget(void)
{
	remove_files();
	buf_deinit(&sound);
}

static void fill(struct store *s)
{
	static const struct range range = {0x10, 4};
	static const struct store_procedure one = {
		{0x10, &range, 1, PROCEDURE_SYMBOL, "f"}, "abcd", 4};
	const struct store_image im = {.kind = IMAGE_ELF,
		.identity = {.size = 20, .bytes = {1, 2}},
		.path = "/usr/bin/gzip"};
	struct store_event event = {.name = "cpu-clock", .unit = "ns", .period = 1e6};
	int64_t host, image, process;

	require(!store_host(s, &(struct store_host){"box", "id", "cpu", "6.1", 2}, &host, NULL));
	require(!store_epoch_start(s, host, T0, "", &event.epoch, NULL));
	require(!store_event(s, &event, NULL));
	require(!store_image(s, &im, &image, NULL));
	require(!store_procedures_add(s, image, &one, 1, NULL));
	require(!store_process(
		s, &(struct store_process){.epoch = event.epoch, .comm = "gzip"}, &process, NULL));
	for (int64_t t = T0; t < T0 + 3; t++) {
		const struct store_profile p = {event.epoch, event.id, image, process, t, t + 1,
			&blob_pc, "\x02\x01\x00\x01", 4};
		const struct store_total row = {
			7, 7, T0, "gzip", "gzip", "/", 0, image, event.id, 4};

		require(!store_profile_add(s, &p, NULL));
		require(!store_totals_add(s, event.epoch, t, t + 1, &row, 1, NULL));
		require(!store_account_add(
			s, event.id, t, t + 1, &(struct store_account){.attributed = 4}, NULL));
	}
}

static void read_sound(void)
{
	FILE *file = fopen(path, "r");
	int c;

	require(file != NULL);
	while ((c = getc(file)) != EOF)
		buf_u8(&sound, (uint8_t)c);
	fclose(file);
}

static void prepare(void)
{
	struct store *s;

	snprintf(path, sizeof path, "%s/culprit-fuzz-%d.db",
		access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	remove_files();
	require(!store_open(path, STORE_WRITE, &s, NULL));
	require(!store_begin(s, NULL));
	fill(s);
	require(!store_commit(s, NULL));
	store_close(s);
	read_sound();
	atexit(forget);
}

static void write_changed(const uint8_t *data, size_t size)
{
	struct buf b = {0};
	FILE *file;

	remove_files();
	buf_put(&b, sound.p, sound.n);
	for (; size >= 4; data += 4, size -= 4)
		b.p[(data[0] | data[1] << 8 | (size_t)data[2] << 16) % b.n] = data[3];
	if (size == 3)
		b.n = (data[0] | data[1] << 8 | (size_t)data[2] << 16) % b.n;
	file = fopen(path, "w");
	require(file && fwrite(b.p, 1, b.n, file) == b.n && !fclose(file));
	buf_deinit(&b);
}

/* ---- reading ---- */

static int see_epoch(void *arg, const struct store_epoch *epoch)
{
	(void)arg;
	return strlen(epoch->events) > 1u << 30;
}

static int see_account(void *arg, const struct store_event *event, const struct store_account *sum)
{
	(void)arg;
	(void)sum;
	return strlen(event->name) > 1u << 30;
}

static int see_image(void *arg, const struct store_image *im)
{
	struct store_procedures list = {0};
	struct buf code = {0};

	if (!store_procedures(arg, im->id, &list, NULL))
		store_procedure_at(&list, 0x12);
	store_procedures_free(&list);
	store_code(arg, im->id, 0x10, &code, NULL);
	buf_deinit(&code);
	return 0;
}

static int see_process(void *arg, const struct store_process *p)
{
	(void)arg;
	return strlen(p->comm) + strlen(p->cgroup) > 1u << 30;
}

static int see_profile(void *arg, const struct store_profile *p)
{
	(void)arg;
	if (p->type->check)
		p->type->check(p->data, p->size);
	return 0;
}

static int see_total(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	(void)arg;
	(void)t0;
	(void)t1;
	return strlen(row->comm) > 1u << 30;
}

static void see_fault(void *arg, const char *text)
{
	(void)arg;
	require(text[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct store_filter filter = {
		.image = "gz*", .comm = "gzip", .event = "cpu-clock", .t0 = 1};
	struct store_size sizes;
	struct store *s;
	struct err e = {0};

	if (!sound.n)
		prepare();
	write_changed(data, size);
	if (store_open(path, STORE_READ, &s, &e)) {
		require(e.code < 0 && e.text[0]);
		return 0;
	}
	store_check(s, see_fault, NULL, &e);
	store_epochs(s, see_epoch, NULL, &e);
	store_accounts(s, NULL, see_account, NULL, &e);
	store_images(s, see_image, s, &e);
	store_processes(s, see_process, NULL, &e);
	store_profiles(s, &filter, see_profile, NULL, &e);
	store_profiles(s, NULL, see_profile, NULL, &e);
	store_totals(s, &filter, see_total, NULL, &e);
	store_size(s, &sizes, &e);
	store_close(s);
	return 0;
}
