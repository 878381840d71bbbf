/*
 * Machine models and the scoreboard on any bytes: the look-up takes what the decoder takes, its
 * lists hold together, and the scoreboard's cycles are in order and not below its bounds.
 */
#include "isa/scoreboard.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INSNS 64

static void check_insn(const struct model *m, const struct model_insn *in)
{
	assert(in->nuses <= MODEL_USES && in->nreads <= MODEL_READS);
	assert(in->nwrites <= MODEL_WRITES && in->nplaces <= MODEL_PLACES);
	for (unsigned i = 0; i < in->nuses; i++)
		assert(model_group(m, in->use[i].group).units);
	for (unsigned i = 0; i < in->nreads; i++)
		assert(in->read[i].reg < MODEL_REGISTERS);
	for (unsigned i = 0; i < in->nwrites; i++)
		assert(in->write[i].reg < MODEL_REGISTERS);
}

static size_t decode(
	const struct model *m, const uint8_t *data, size_t size, struct model_insn *insn)
{
	size_t n = 0;

	for (size_t at = 0; at < size && n < INSNS;) {
		struct insn plain;
		int rc = model_insn(m, data + at, size - at, &insn[n]);

		assert(rc || !isa_decode(data + at, size - at, 0, &plain));
		if (rc) {
			at++;
			continue;
		}
		assert(insn[n].length == plain.length && insn[n].kind == plain.kind);
		check_insn(m, &insn[n]);
		at += insn[n++].length;
	}
	return n;
}

static void check_order(const struct scoreboard_insn *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(out[i].enter < out[i].issue && out[i].issue <= out[i].complete);
		assert(out[i].complete <= out[i].retire && out[i].ready <= out[i].issue);
		assert(out[i].on < (int32_t)n);
		assert(!i ||
			(out[i].enter >= out[i - 1].enter && out[i].retire >= out[i - 1].retire));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scoreboard *boards[64];
	static struct model_insn insn[INSNS];
	struct scoreboard_insn out[INSNS];
	struct scoreboard_sum sum;
	const struct model *m;
	unsigned which;
	size_t n;

	if (!size)
		return 0;
	which = data[0] % model_count();
	m = model_at(which);
	if (!boards[which])
		boards[which] = scoreboard_create(m);
	n = decode(m, data + 1, size - 1, insn);
	assert(!scoreboard_block(boards[which], insn, n, out, &sum));
	check_order(out, n);
	assert(!scoreboard_loop(boards[which], insn, n < 16 ? n : 16, out, &sum));
	assert(isfinite(sum.cycles) && sum.cycles >= 0);
	return 0;
}
