/*
 * Operands of any bytes: what the roles say must agree with the decoder and hold together.
 */
#include "isa/roles.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_texts(const uint8_t *code, size_t n, const struct roles *r)
{
	struct role_texts t;

	memset(&t, 'x', sizeof t);
	assert(!isa_role_texts(code, n, &t));
	assert(strnlen(t.result, ROLES_TEXT) < ROLES_TEXT);
	assert(strnlen(t.source, ROLES_TEXT) < ROLES_TEXT);
	assert(strnlen(t.memory, ROLES_TEXT) < ROLES_TEXT);
	assert(r->place || (!r->loads && !r->stores));
	assert(!r->constant_source || t.source[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		struct roles r = {0};
		struct insn insn;
		int rc = isa_roles(data + at, size - at, 0x401000 + at, &r);

		assert(!rc || isa_decode(data + at, size - at, 0, &insn) ||
			!"the decoder takes what the roles refuse");
		if (rc) {
			at++;
			continue;
		}
		assert(!isa_decode(data + at, size - at, 0, &insn));
		assert(r.length == insn.length && r.kind == insn.kind);
		check_texts(data + at, size - at, &r);
		at += r.length;
	}
	return 0;
}
