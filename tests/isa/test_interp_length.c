/*
 * Lengths of instructions as the interpreter sees them, against Zydis: over the code of libraries
 * and programs of the machine, and over random instructions of all maps.
 *
 * CULPRIT_INTERP_LENGTHS=all goes through everything in the folders of libraries and programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "isa/decode.h"
#include "isa/dice.h"
#include "isa/forms.h"
#include "isa/interp.h"

enum { SOME = 300000 /* instructions of a file in the unit test */, RANDOM = 200000 };

static unsigned long compared, odd, wrong;

/* Control registers are moved as if modrm.mod were 3; nobody writes anything else. */
static bool is_control(const struct form *f)
{
	return f->in.opcode_map == ZYDIS_OPCODE_MAP_0F && (f->in.opcode & 0xfc) == 0x20 &&
	       f->in.raw.modrm.mod != 3;
}

/* Dead extensions, and a REX that is ignored, need not be known. */
static bool is_odd(const struct form *f)
{
	switch (f->in.encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_3DNOW:
	case ZYDIS_INSTRUCTION_ENCODING_XOP:
	case ZYDIS_INSTRUCTION_ENCODING_MVEX:
		return true;
	default:
		return form_has_lost_rex(f) || is_control(f) ||
		       f->in.meta.isa_ext == ZYDIS_ISA_EXT_PADLOCK;
	}
}

/* One example of each mnemonic. */
static bool is_shown(const char *text)
{
	static bool shown[4096];
	unsigned hash = 0;
	for (; *text && *text != ' '; text++)
		hash = hash * 31 + (unsigned char)*text;
	bool before = shown[hash % 4096];
	shown[hash % 4096] = true;
	return before;
}

static void show(const char *where, uint64_t address, const uint8_t *code, const struct insn *insn,
	unsigned length)
{
	char text[128];
	wrong++;
	isa_text(code, insn->length, address, ISA_INTEL, NULL, NULL, text, sizeof text);
	if (is_shown(text))
		return;
	fprintf(stderr, "%s %lx:", where, address);
	for (int i = 0; i < insn->length; i++)
		fprintf(stderr, " %02x", code[i]);
	fprintf(stderr, "  %s: %u bytes, not %u\n", text, insn->length, length);
}

/* ---- code that exists ---- */

/* One after the other to the end, or to what is no instruction (data among code). */
static unsigned long compare_code(const char *path, uint64_t start, const uint8_t *code, size_t n)
{
	struct insn insn;
	unsigned long count = 0;
	for (size_t at = 0; at < n; at += insn.length, count++) {
		if (isa_decode(code + at, n - at, start + at, &insn) < 0)
			break;
		unsigned length = interp_length(code + at, (unsigned)(n - at));
		if (length == insn.length)
			continue;
		struct form f;
		if (!length && form_decode(&f, code + at, n - at) && is_odd(&f))
			odd++;
		else
			show(path, start + at, code + at, &insn, length);
	}
	return count;
}

static unsigned long compare_procedure(struct image *im, const struct procedure *p)
{
	unsigned long count = 0;
	for (uint32_t i = 0; i < p->nranges; i++) {
		struct buf code = {0};
		if (!image_code(im, &p->ranges[i], &code))
			count += compare_code(image_path(im), p->ranges[i].start, code.p, code.n);
		buf_deinit(&code);
	}
	return count;
}

/* Procedures spread over the whole file until there are enough instructions. */
static void compare_file(const char *path, unsigned long enough)
{
	enum { STRIDE = 7 };
	struct image *im;
	const struct procedure *all;
	unsigned long count = 0;
	if (image_open_path(path, &im, NULL) < 0)
		return;
	size_t n = image_procedures(im, &all);
	for (size_t first = 0; first < STRIDE; first++) {
		for (size_t i = first; i < n && count < enough; i += STRIDE)
			count += compare_procedure(im, &all[i]);
	}
	compared += count;
	image_destroy(im);
}

static void compare_files(const char *pattern, unsigned long enough)
{
	glob_t files;
	if (glob(pattern, 0, NULL, &files))
		return;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		char target[8];
		if (readlink(files.gl_pathv[i], target, sizeof target) < 0)
			compare_file(files.gl_pathv[i], enough);
	}
	globfree(&files);
}

static void test_files(void **state)
{
	(void)state;
	static const char *const some[] = {"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6.*",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.*", "/usr/lib/x86_64-linux-gnu/libz.so.1.*",
		"/usr/bin/bash", "/usr/bin/perl", "/usr/bin/python3.*",
		"/usr/lib/gcc/x86_64-linux-gnu/*/cc1"};
	static const char *const all[] = {"/usr/lib/x86_64-linux-gnu/*.so*",
		"/usr/lib/x86_64-linux-gnu/*/*.so*", "/usr/lib/gcc/x86_64-linux-gnu/*/*",
		"/usr/bin/*", "/usr/sbin/*"};
	const char *option = getenv("CULPRIT_INTERP_LENGTHS");

	compared = wrong = 0;
	if (option && !strcmp(option, "all")) {
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			compare_files(all[i], ~0ul);
	} else {
		for (size_t i = 0; i < sizeof some / sizeof *some; i++)
			compare_files(some[i], SOME);
	}
	print_message("%lu instructions compared, %lu not known\n", compared, odd);
	assert_true(compared > 0);
	assert_int_equal(wrong, 0);
}

/* ---- code that could exist ---- */

/* Every prefix of an instruction is cut off; ASan watches the end. */
static void compare_cut(const struct form *f)
{
	for (unsigned n = 0; n < f->in.length; n++) {
		u8 *exact = malloc(n ? n : 1);
		assert_non_null(exact);
		memcpy(exact, f->bytes, n);
		unsigned length = interp_length(exact, n);
		free(exact);
		if (length)
			fail_msg("%u of %u bytes of %02x %02x %02x have length %u", n, f->in.length,
				f->bytes[0], f->bytes[1], f->bytes[2], length);
	}
}

static void test_random(void **state)
{
	(void)state;
	struct dice d = {.state = dice_option("CULPRIT_INTERP_SEED", 7)};
	wrong = 0;
	for (int i = 0; i < RANDOM; i++) {
		struct form f;
		u8 code[32];
		if (!form_roll(&d, &f) || is_odd(&f))
			continue;
		memset(code, 0x90, sizeof code);
		memcpy(code, f.bytes, f.in.length);
		unsigned length = interp_length(code, sizeof code);
		struct insn insn = {.length = f.in.length};
		if (length != f.in.length)
			show("random", 0, code, &insn, length);
		else if (i % 16 == 0)
			compare_cut(&f);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
