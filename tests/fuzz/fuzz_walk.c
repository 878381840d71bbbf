/*
 * Takes the input as registers and a stack (the first half) and as .eh_frame (the second): whatever
 * they say, a walk ends, and stays in the copy.
 */
#include "calls/walk.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { VADDR = 0x1000, MOST = 64 };

static const struct frames *find(void *arg, uint64_t pc, uint64_t *bias)
{
	*bias = 0;
	return pc % 16 ? arg : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct walk_frame out[MOST];
	struct walk_start s = {.known = (1u << FRAME_REGISTERS) - 1};
	struct frames *f;
	size_t frames, half = n / 2;

	if (half < sizeof s.registers)
		return 0;
	memcpy(s.registers, data, sizeof s.registers);
	s.stack = data + sizeof s.registers;
	s.size = half - sizeof s.registers;
	frames_create(data + half, n - half, VADDR, n % 2, &f);
	walk_stack(&s, find, f, out, MOST, &frames);
	if (!frames || frames > MOST)
		abort();
	frames_destroy(f);
	return 0;
}
