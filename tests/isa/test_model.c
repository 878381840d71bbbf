#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "isa/model_internal.h"

static struct model_insn look_up(const char *name, const char *code, size_t n)
{
	const struct model *m = model_by_name(name);
	struct model_insn in;

	assert_non_null(m);
	assert_int_equal(model_insn(m, code, n, &in), 0);
	assert_int_equal(in.length, n);
	return in;
}
#define LOOK_UP(name, code) look_up(name, code, sizeof(code) - 1)

static unsigned latency_of(const struct model_insn *in, unsigned reg)
{
	for (unsigned i = 0; i < in->nwrites; i++)
		if (in->write[i].reg == reg)
			return in->write[i].latency;
	fail_msg("register %u is not written", reg);
	return 0;
}

static bool reads(const struct model_insn *in, unsigned reg)
{
	for (unsigned i = 0; i < in->nreads; i++)
		if (in->read[i].reg == reg)
			return true;
	return false;
}

/* ---- the tables ---- */

static void test_forms_are_sorted(void **state)
{
	(void)state;
	for (size_t i = 1; i < model_nforms; i++) {
		const struct model_form_row *a = &model_forms[i - 1], *b = &model_forms[i];

		assert_true(a->mnemonic < b->mnemonic ||
			    (a->mnemonic == b->mnemonic && a->form < b->form));
	}
}

static void test_tables_hold_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < model_nforms; i++)
		assert_true(model_forms[i].row < model_nrows);
	for (unsigned t = 0; t < MODEL_TABLES; t++) {
		const struct model_tables *table = model_tables[t];

		assert_int_equal(table->column, t);
		assert_true(table->limits.width && table->limits.window);
		for (size_t i = 0; i < model_nrows; i++)
			assert_true(model_rows[i][t] == MODEL_CLASS_NONE ||
				    model_rows[i][t] < table->nclasses);
		for (unsigned i = 0; i < table->nclasses; i++) {
			const struct model_class *c = &table->class[i];

			assert_true(c->uses <= MODEL_USES);
			for (unsigned k = 0; k < c->uses; k++)
				assert_true(table->use[c->use + k].group < table->ngroups);
		}
	}
}

/* ---- which chip ---- */

static void test_chips(void **state)
{
	static const struct {
		struct model_cpuid chip;
		const char *name;
	} cases[] = {
		{{"GenuineIntel", 6, 0x6a, false}, "icelake"},
		{{"GenuineIntel", 6, 0x55, false}, "skylake-server"},
		{{"GenuineIntel", 6, 0x9e, false}, "skylake"},
		{{"GenuineIntel", 6, 0x8f, false}, "sapphirerapids"},
		{{"GenuineIntel", 6, 0xa7, false}, "icelake"},
		{{"GenuineIntel", 6, 0xa7, true}, "sapphirerapids"}, /* a number that is not its own */
		{{"GenuineIntel", 0x13, 0x01, true}, "sapphirerapids"},
		{{"GenuineIntel", 6, 0x97, false}, "alderlake-p"},
		{{"AuthenticAMD", 0x17, 0x31, false}, "zen2"},
		{{"AuthenticAMD", 0x19, 0x01, false}, "zen3"},
		{{"AuthenticAMD", 0x19, 0x11, false}, "zen4"},
		{{"AuthenticAMD", 0x1a, 0x02, false}, "zen5"},
		{{"AuthenticAMD", 6, 0x6a, false}, NULL},
		{{"GenuineIntel", 0x19, 0x11, false}, NULL},
		{{"GenuineIntel", 6, 0x0f, false}, NULL},
		{{"AuthenticAMD", 0x17, 0x01, false}, NULL},
		{{"CentaurHauls", 7, 0x3b, false}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool known = !cases[i].name;
		const struct model *m = model_by_cpuid(&cases[i].chip, &known);

		assert_string_equal(model_name(m), cases[i].name ? cases[i].name : "generic");
		assert_int_equal(known, cases[i].name != NULL);
	}
}

static void test_names(void **state)
{
	bool known;

	(void)state;
	assert_int_equal(model_count(), 10);
	for (size_t i = 0; i < model_count(); i++) {
		const struct model *m = model_at(i);
		char plain[64];

		assert_ptr_equal(model_by_name(model_name(m)), m);
		assert_false(model_is_plain(m));
		snprintf(plain, sizeof plain, "%s:llvm", model_name(m));
		assert_true(model_is_plain(model_by_name(plain)));
		assert_true(model_limits(m)->width >= 4 && model_limits(m)->window >= 192);
	}
	assert_null(model_at(model_count()));
	assert_null(model_by_name("pentium"));
	assert_non_null(model_of_host(&known));
}

/* ---- figures ---- */

/* What every one of these chips has. */
static void test_common_figures(void **state)
{
	(void)state;
	for (size_t i = 0; i < model_count(); i++) {
		const char *name = model_name(model_at(i));
		struct model_insn add = LOOK_UP(name, "\x48\x01\xd8");     /* add %rbx,%rax */
		struct model_insn mul = LOOK_UP(name, "\x48\x0f\xaf\xc3"); /* imul %rbx,%rax */
		struct model_insn load = LOOK_UP(name, "\x48\x8b\x03");    /* mov (%rbx),%rax */
		struct model_insn sum = LOOK_UP(name, "\x48\x03\x03");     /* add (%rbx),%rax */

		assert_int_equal(add.uops, 1);
		assert_int_equal(latency_of(&add, MODEL_RAX), 1);
		assert_int_equal(add.flags & MODEL_UNKNOWN, 0);
		assert_true(add.nuses > 0);
		assert_in_range(latency_of(&mul, MODEL_RAX), 3, 4);
		assert_in_range(latency_of(&load, MODEL_RAX), 4, 5);
		assert_true(load.nplaces == 1 && load.place[0].loads && !load.place[0].stores);
		/* rax is needed when the load is done, rbx at once. */
		assert_true(latency_of(&sum, MODEL_RAX) >= latency_of(&load, MODEL_RAX));
		for (unsigned k = 0; k < sum.nreads; k++)
			assert_int_equal(sum.read[k].late > 0, sum.read[k].reg == MODEL_RAX);
	}
}

static void test_idioms(void **state)
{
	struct model_insn zero = LOOK_UP("icelake:llvm", "\x31\xc0");   /* xor %eax,%eax */
	struct model_insn xor = LOOK_UP("icelake:llvm", "\x31\xd8");    /* xor %ebx,%eax */
	struct model_insn vector = LOOK_UP("zen3", "\xc5\xf1\xef\xd1"); /* vpxor x1,x1,x2 */
	struct model_insn move = LOOK_UP("zen3:llvm", "\x48\x89\xd8");  /* mov %rbx,%rax */
	struct model_insn nop = LOOK_UP("icelake", "\x0f\x1f\x44\x00\x00");

	(void)state;
	assert_true(zero.flags & MODEL_ELIMINATED && !reads(&zero, 0));
	assert_true(!(xor.flags &MODEL_ELIMINATED) && reads(&xor, 0) && reads(&xor, 3));
	assert_true(vector.flags & MODEL_ELIMINATED && !reads(&vector, MODEL_VECTOR + 1));
	assert_true(move.flags & MODEL_MOVE);
	assert_true(!nop.nplaces && !nop.nreads);
	for (size_t i = 0; i < model_count(); i++) {
		const char *name = model_name(model_at(i));

		zero = LOOK_UP(name, "\x31\xc0");
		assert_true(zero.flags & MODEL_ELIMINATED && !zero.nreads && zero.uops == 1);
		move = LOOK_UP(name, "\x48\x89\xd8");
		assert_true(move.flags & MODEL_MOVE && move.uops == 1);
	}
}

/* Registers that keep a part are read, conditional ones too. */
static void test_partial_writes(void **state)
{
	struct model_insn byte = LOOK_UP("zen4", "\x0f\x94\xc0");            /* sete %al */
	struct model_insn cmov = LOOK_UP("zen4", "\x48\x0f\x44\xc3");        /* cmove %rbx,%rax */
	struct model_insn convert = LOOK_UP("zen4", "\xf2\x48\x0f\x2a\xc0"); /* cvtsi2sd */
	struct model_insn wide = LOOK_UP("zen4", "\xb8\x01\x00\x00\x00");    /* mov $1,%eax */
	struct model_insn masked = LOOK_UP("zen4", "\x62\xf1\x74\x49\x58\xd8");  /* vaddps {%k1} */
	struct model_insn whole = LOOK_UP("zen4", "\x62\xf1\x74\x48\x58\xd8");   /* no mask */
	struct model_insn compare = LOOK_UP("zen4", "\x62\xf1\x75\x49\x74\xd0"); /* into %k2 */
	struct model_insn inc = LOOK_UP("zen4", "\x48\xff\xc0");

	(void)state;
	assert_true(reads(&byte, 0) && reads(&byte, MODEL_FLAGS) && !reads(&byte, MODEL_CARRY));
	assert_true(reads(&cmov, 0) && reads(&cmov, 3));
	assert_true(reads(&convert, MODEL_VECTOR));
	assert_false(reads(&wide, 0));
	assert_true(reads(&masked, MODEL_VECTOR + 3) && reads(&masked, MODEL_MASK + 1));
	assert_false(reads(&whole, MODEL_VECTOR + 3) || reads(&whole, MODEL_MASK));
	assert_true(reads(&compare, MODEL_MASK + 1) && !reads(&compare, MODEL_MASK + 2));
	assert_true(latency_of(&compare, MODEL_MASK + 2) > 0);
	assert_int_equal(latency_of(&inc, MODEL_FLAGS), 1);
	for (unsigned i = 0; i < inc.nwrites; i++)
		assert_int_not_equal(inc.write[i].reg, MODEL_CARRY);
}

/* Zen 5 has Zen 4's table, but other vector units. */
static void test_vectors_of_zen5(void **state)
{
	static const struct {
		const char *code;
		int more; /* cycles than on Zen 4 */
	} list[] = {
		{"\x66\x0f\xfe\xc1", 1},  /* paddd %xmm1,%xmm0 */
		{"\x66\x0f\xfe\x03", 1},  /* paddd (%rbx),%xmm0 */
		{"\xc5\xf9\xdb\xc1", 1},  /* vpand %xmm1,%xmm0,%xmm0 */
		{"\x0f\x58\xc1", -1},     /* addps %xmm1,%xmm0 */
		{"\x0f\x58\x03", -1},     /* addps (%rbx),%xmm0 */
		{"\xc5\xfb\x5c\xc1", -1}, /* vsubsd %xmm1,%xmm0,%xmm0 */
		{"\x0f\x59\xc1", 0},      /* mulps %xmm1,%xmm0 */
		{"\x0f\x28\x03", 0},      /* movaps (%rbx),%xmm0 */
		{"\x66\x0f\xef\xc0", 0},  /* pxor %xmm0,%xmm0 */
		{"\x48\x01\xd8", 0},      /* add %rbx,%rax */
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		size_t length = strlen(list[i].code);
		struct model_insn older = look_up("zen4", list[i].code, length);
		struct model_insn newer = look_up("zen5", list[i].code, length);

		assert_int_equal(newer.latency, older.latency + list[i].more);
		assert_int_equal(newer.write[0].latency, older.write[0].latency + list[i].more);
	}
}

static void test_corrections(void **state)
{
	struct model_insn divide = LOOK_UP("icelake", "\x48\xf7\xf1"); /* div %rcx */
	struct model_insn plain = LOOK_UP("icelake:llvm", "\x48\xf7\xf1");
	struct model_insn locked = LOOK_UP("icelake", "\xf0\x48\xff\x03"); /* lock incq (%rbx) */
	struct model_insn swap = LOOK_UP("zen3", "\x48\x87\x03");          /* xchg %rax,(%rbx) */
	struct model_insn push = LOOK_UP("icelake", "\x53");
	struct model_insn llvm_push = LOOK_UP("icelake:llvm", "\x53");
	struct model_insn sum = LOOK_UP("icelake", "\x48\x03\x03"); /* add (%rbx),%rax: fused */
	struct model_insn llvm_sum = LOOK_UP("icelake:llvm", "\x48\x03\x03");
	struct model_insn compare = LOOK_UP("icelake", "\x48\x39\xd8");
	struct model_insn cpuid = LOOK_UP("icelake", "\x0f\xa2");

	(void)state;
	assert_int_equal(latency_of(&divide, MODEL_RAX), 14);
	assert_int_equal(latency_of(&divide, MODEL_RDX), 18);
	assert_true(divide.flags & MODEL_CORRECTED && !(plain.flags & MODEL_CORRECTED));
	assert_int_equal(locked.latency, 20);
	assert_true(swap.flags & MODEL_CORRECTED);
	assert_true(!reads(&push, MODEL_RSP) && reads(&llvm_push, MODEL_RSP));
	assert_int_equal(push.moved, MODEL_RSP);
	assert_int_equal(push.by, -8);
	assert_int_equal(sum.uops, 1);
	assert_int_equal(llvm_sum.uops, 2);
	assert_true(compare.flags & MODEL_FUSES);
	assert_true(cpuid.flags & MODEL_SERIALISING);
}

static void test_unknown(void **state)
{
	/* vaddps %zmm0,%zmm1,%zmm2: no chip of that model has it. */
	struct model_insn in = LOOK_UP("skylake", "\x62\xf1\x74\x48\x58\xd0");
	struct model_insn out = {.length = 99};

	(void)state;
	assert_true(in.uops >= 1 && in.latency >= 1);
	assert_int_equal(model_insn(model_at(0), "\x06", 1, &out), -EBADMSG);
	assert_int_equal(model_insn(model_at(0), "\x48", 1, &out), -EBADMSG);
	assert_int_equal(model_insn(model_at(0), "", 0, &out), -EBADMSG);
	assert_int_equal(out.length, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_are_sorted),
		cmocka_unit_test(test_tables_hold_together),
		cmocka_unit_test(test_chips),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_common_figures),
		cmocka_unit_test(test_idioms),
		cmocka_unit_test(test_partial_writes),
		cmocka_unit_test(test_vectors_of_zen5),
		cmocka_unit_test(test_corrections),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
