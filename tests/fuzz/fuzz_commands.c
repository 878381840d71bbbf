/*
 * Profiles of commands from any bytes: what decodes ascends, survives packing again, and merging
 * adds up.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/commands.h"

typedef VEC(struct command) command_list;

static bool read_commands(const uint8_t *p, size_t n, command_list *out)
{
	struct command_reader r;
	struct command c;
	int got = command_reader_init(&r, p, n);

	while (!got && (got = command_reader_next(&r, &c)) > 0) {
		require(c.runs);
		require(!out->n || out->p[out->n - 1].hash < c.hash);
		*vec_add(out) = c;
		got = 0;
	}
	require(!got == !blob_command.check(p, n));
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	command_list list = {0}, back = {0};
	bool good = read_commands(p, n, &list);

	if (good) {
		commands_pack(list.p, list.n, again);
		require(read_commands(again->p, again->n, &back) && back.n == list.n);
		require(!list.n || !memcmp(list.p, back.p, list.n * sizeof *list.p));
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_command, repack, data, size);
}
