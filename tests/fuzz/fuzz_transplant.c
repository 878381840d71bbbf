/*
 * Instructions taken out of any bytes: they are as long as the decoder says, stay within the bytes
 * given, and a copy is an instruction of the same kind that fits into its room.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "isa/decode.h"
#include "isa/transplant.h"

enum { MOST = 256 }; /* instructions do not depend on one another: short inputs find more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_operand(const struct transplant *t)
{
	require(t->size <= TRANSPLANT_OPERAND && t->segment <= 2);
	require(t->base < 16 || t->base == 0xff);
	require(t->index < 16 || t->index == 0xff);
	require(t->reg < 16 || t->reg == 0xff);
}

static void check_copy(const struct transplant *t)
{
	struct transplant again;

	require(t->ncode && t->ncode <= TRANSPLANT_LENGTH && !t->moved == !t->size);
	require(!t->moved || (t->moved + 4 <= t->ncode && (t->loads || t->stores)));
	isa_transplant(t->code, t->ncode, 0, &again);
	require(again.kind == TRANSPLANT_COPY && again.length == t->ncode);
	require(again.size == t->size && again.loads == t->loads && again.stores == t->stores);
	/* What it names now is known by the place of its displacement. */
	require(!t->size || (again.base == 0xff && again.index == 0xff && !again.segment &&
				    again.displacement == t->ncode && again.moved == t->moved));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MOST)
		return 0;
	for (size_t at = 0; at < size;) {
		uint64_t address = 0xffffffff81000000 + at;
		struct transplant t;
		struct insn insn;
		bool good = !isa_decode(data + at, size - at, address, &insn);

		isa_transplant(data + at, size - at, address, &t);
		require(t.length == (good ? insn.length : 0));
		require(good || t.kind == TRANSPLANT_STOP);
		check_operand(&t);
		if (t.kind == TRANSPLANT_COPY)
			check_copy(&t);
		else
			require(!t.ncode);
		if (good && insn.target && t.kind != TRANSPLANT_STOP)
			require(t.target == insn.target);
		at += good ? insn.length : 1;
	}
	return 0;
}
