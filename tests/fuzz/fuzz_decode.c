/*
 * The decoder and its text over any bytes: they agree on what is an instruction and how long it
 * is, stay within the bytes given, and the text stays within its buffer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/decode.h"

enum { MOST = 256 }; /* instructions hardly depend on one another: short inputs find more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool name_all(void *arg, uint64_t address, char *name, size_t size)
{
	(void)arg;
	snprintf(name, size, "symbol+0x%lx", (unsigned long)address);
	return true;
}

static void check(const uint8_t *code, size_t n, uint64_t address, enum isa_syntax syntax,
	const struct insn *insn)
{
	char whole[512], small[24];
	size_t length = isa_text(code, n, address, syntax, name_all, NULL, whole, sizeof whole);
	if (length != (insn ? insn->length : 1) || (!insn && strcmp(whole, "(bad)")))
		abort();
	if (!whole[0] || whole[strlen(whole) - 1] == ' ' || strstr(whole, "(null)"))
		abort();
	isa_text(code, n, address, syntax, name_all, NULL, small, sizeof small);
	if (strncmp(small, whole, sizeof small - 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MOST)
		return 0;
	for (size_t at = 0; at < size;) {
		struct insn insn;
		uint64_t address = 0xffffffff81000000 + at;
		bool good = !isa_decode(data + at, size - at, address, &insn);
		if (good && (insn.length < 1 || insn.length > 15 || insn.length > size - at))
			abort();
		check(data + at, size - at, address, ISA_ATT, good ? &insn : NULL);
		check(data + at, size - at, address, ISA_INTEL, good ? &insn : NULL);
		at += good ? insn.length : 1;
	}
	return 0;
}
