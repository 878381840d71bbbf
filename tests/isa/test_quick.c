/*
 * What is decoded without Zydis comes out as with it: all the code of programs, and random bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "image/image.h"
#include "isa/dice.h"
#include "isa/quick.h"

static bool same_operand(const struct form_operand *a, const struct form_operand *b)
{
	return a->type == b->type && a->reg == b->reg && a->size == b->size;
}

static bool same_form(const struct form *a, const struct form *b)
{
	return a->op == b->op && a->length == b->length && a->kind == b->kind &&
	       a->condition == b->condition && same_operand(&a->to, &b->to) &&
	       same_operand(&a->from, &b->from) && a->base == b->base && a->index == b->index &&
	       a->scale == b->scale && a->other_space == b->other_space && a->loads == b->loads &&
	       a->stores == b->stores && a->displacement == b->displacement &&
	       a->immediate == b->immediate && a->reads == b->reads && a->writes == b->writes &&
	       a->kills == b->kills && a->flags_read == b->flags_read &&
	       a->flags_written == b->flags_written && a->flags_killed == b->flags_killed &&
	       a->below_rsp == b->below_rsp && a->below_rbp == b->below_rbp &&
	       a->copies_rsp == b->copies_rsp;
}

static bool same_insn(const struct insn *a, const struct insn *b)
{
	return a->address == b->address && a->length == b->length && a->kind == b->kind &&
	       a->target == b->target && a->relative == b->relative && a->memory == b->memory &&
	       a->behind == b->behind && a->low == b->low && a->value == b->value &&
	       a->filler == b->filler;
}

/* Returns whether it is one that is known without Zydis. */
static bool compare(const uint8_t *code, size_t n, uint64_t address)
{
	struct form form, quick;
	struct insn insn, quick_insn;
	char text[128];

	bool known = quick_decode(code, n, address, &quick_insn);
	bool has_form = quick_form(code, n, address, &quick);
	if ((known &&
		    (decode_by_zydis(code, n, address, &insn) || !same_insn(&insn, &quick_insn))) ||
		(has_form &&
			(form_by_zydis(code, n, address, &form) || !same_form(&form, &quick)))) {
		isa_text(code, n, address, ISA_ATT, NULL, NULL, text, sizeof text);
		fail_msg("0x%llx %s (%02x %02x %02x %02x)", (unsigned long long)address, text,
			code[0], code[1], code[2], code[3]);
	}
	return known && has_form;
}

static void compare_image(const char *path)
{
	const struct procedure *ps;
	struct image *im;
	struct buf code = {0};
	struct insn insn;
	size_t known = 0, all = 0;

	assert_int_equal(image_open_path(path, &im, NULL), 0);
	size_t n = image_procedures(im, &ps);
	for (size_t i = 0; i < n; i++) {
		code.n = 0;
		if (image_code(im, &ps[i].ranges[0], &code))
			continue;
		for (size_t at = 0; at + 4 < code.n; all++) {
			uint64_t address = ps[i].start + at;
			known += compare(code.p + at, code.n - at, address);
			at += isa_decode(code.p + at, code.n - at, address, &insn) ? 1
										   : insn.length;
		}
	}
	assert_true(known > all * 3 / 4);
	buf_deinit(&code);
	image_destroy(im);
}

static void test_programs(void **state)
{
	(void)state;
	compare_image("/usr/bin/gzip");
	compare_image("/usr/bin/bash");
	compare_image("/usr/lib/x86_64-linux-gnu/libc.so.6");
}

/* Also cut off anywhere: what is not there is not read (ASan sees to that). */
static void test_random(void **state)
{
	struct dice dice = {.state = dice_option("SEED", 1)};

	(void)state;
	for (uint64_t n = dice_option("TRIALS", 500000); n; n--) {
		size_t size = 1 + dice_below(&dice, 15);
		uint8_t code[16] = {0}, bytes[16];
		for (size_t i = 0; i < size; i++)
			code[i] = (uint8_t)dice_roll(&dice);
		if (dice_chance(&dice, 50))
			code[0] = (uint8_t)(0x40 | (code[0] & 15));
		memcpy(bytes, code, sizeof bytes);
		struct form f;
		struct insn insn;
		if (size < 4) {
			uint8_t *exact = malloc(size);
			memcpy(exact, code, size);
			assert_int_equal(isa_form(exact, size, 0, &f) == 0,
				form_by_zydis(code, size, 0, &f) == 0);
			assert_int_equal(isa_decode(exact, size, 0, &insn) == 0,
				decode_by_zydis(code, size, 0, &insn) == 0);
			free(exact);
		} else {
			compare(bytes, size, dice_roll(&dice));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
