#include "store/commands.h"

#include "base/buf.h"

#include <errno.h>

/*
 * A profile of commands (unpacked):
 *
 *   uleb    number of commands
 *   commands by hash, each:
 *     u64     hash
 *     uleb    runs - 1
 *
 * 1. Hashes ascend.
 * 2. The last command ends the blob.
 */
#define COMMAND_LEAST 9 /* bytes of a command */

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void put(struct buf *out, const struct command *c)
{
	buf_u64(out, c->hash);
	buf_uleb(out, c->runs - 1);
}

void commands_pack(const struct command *list, size_t n, struct buf *out)
{
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++)
		put(out, &list[i]);
}

int command_reader_init(struct command_reader *r, const void *p, size_t n)
{
	*r = (struct command_reader){.at = cursor_over(p, n)};
	r->left = cursor_uleb(&r->at);
	return r->at.failed || r->left > cursor_left(&r->at) / COMMAND_LEAST ? -EBADMSG : 0;
}

int command_reader_next(struct command_reader *r, struct command *out)
{
	struct command c;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	c.hash = cursor_u64(&r->at);
	if (__builtin_add_overflow(cursor_uleb(&r->at), 1, &c.runs) || r->at.failed ||
		(r->last.runs && c.hash <= r->last.hash))
		return -EBADMSG;
	r->left--;
	*out = r->last = c;
	return 1;
}

/* ---- as a type of blob ---- */

static int command_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct command_reader ra, rb;
	struct command x, y;
	struct buf body = {0};
	uint64_t n = 0;
	int left, right;

	if (command_reader_init(&ra, a, na) || command_reader_init(&rb, b, nb))
		return -EBADMSG;
	left = command_reader_next(&ra, &x);
	right = command_reader_next(&rb, &y);
	for (; left > 0 || right > 0; n++) {
		bool first = left > 0 && (right <= 0 || x.hash <= y.hash);
		bool second = right > 0 && (left <= 0 || y.hash <= x.hash);
		struct command one = first ? x : y;

		if (first && second)
			one.runs = add(x.runs, y.runs);
		put(&body, &one);
		left = first ? command_reader_next(&ra, &x) : left;
		right = second ? command_reader_next(&rb, &y) : right;
	}
	if (left == 0 && right == 0) {
		buf_uleb(out, n);
		buf_put(out, body.p, body.n);
	}
	buf_deinit(&body);
	return left || right ? -EBADMSG : 0;
}

static int command_weight(const void *p, size_t n, uint64_t *samples)
{
	struct command_reader reader;
	struct command c;
	uint64_t sum = 0;
	int r;

	if (command_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = command_reader_next(&reader, &c)) > 0)
		sum = add(sum, c.runs);
	if (!r)
		*samples = sum;
	return r;
}

static int command_check(const void *p, size_t n)
{
	uint64_t samples;

	return command_weight(p, n, &samples);
}

const struct blob_type blob_command = {
	.name = "command",
	.merge = command_merge,
	.check = command_check,
	.weight = command_weight,
};
