#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "isa/hazards.h"

#define HAZARDS(code) isa_hazards(code, sizeof(code) - 1)

static void test_hazards(void **state)
{
	(void)state;
	assert_int_equal(HAZARDS("\xf0\x48\x83\x06\x01"), HAZARD_LOCKED); /* lock addq $1,(%rsi) */
	assert_int_equal(HAZARDS("\x48\x87\x06"), HAZARD_LOCKED);         /* xchg %rax,(%rsi) */
	assert_int_equal(HAZARDS("\x48\x87\xc8"), 0);                     /* xchg %rcx,%rax */
	assert_int_equal(HAZARDS("\x48\xf7\xf1"), HAZARD_DIVIDES);        /* div %rcx */
	assert_int_equal(HAZARDS("\xf2\x0f\x5e\xc1"), HAZARD_DIVIDES | HAZARD_FLOAT); /* divsd */
	assert_int_equal(HAZARDS("\xf2\x0f\x59\xc1"), HAZARD_FLOAT);                  /* mulsd */
	assert_int_equal(HAZARDS("\xc5\xf3\x59\xc1"), HAZARD_FLOAT);                  /* vmulsd */
	assert_int_equal(HAZARDS("\xd8\xc9"), HAZARD_FLOAT);                          /* fmul */
	assert_int_equal(HAZARDS("\x66\x0f\x28\xc1"), 0);                             /* movapd */
	assert_int_equal(HAZARDS("\x0f\x54\xc1"), 0);                                 /* andps */
	assert_int_equal(HAZARDS("\x66\x0f\xfe\xc1"), 0);                             /* paddd */
	assert_int_equal(HAZARDS("\x0f\xae\xf0"), HAZARD_SERIALISING);                /* mfence */
	assert_int_equal(HAZARDS("\x0f\x05"), HAZARD_SERIALISING);                    /* syscall */
	assert_int_equal(HAZARDS("\xf3\xa4"), HAZARD_REPEATS);            /* rep movsb */
	assert_int_equal(HAZARDS("\x66\x81\xc1\x34\x12"), HAZARD_LENGTH); /* add $0x1234,%cx */
	assert_int_equal(HAZARDS("\x66\x83\xc1\x12"), 0);                 /* add $0x12,%cx */
	assert_int_equal(HAZARDS("\x81\xc1\x34\x12\x00\x00"), 0);         /* add $0x1234,%ecx */
	assert_int_equal(HAZARDS("\xf3\x90"), HAZARD_PAUSES);             /* pause */
	assert_int_equal(HAZARDS("\x90"), 0);
	assert_int_equal(HAZARDS("\x48"), 0); /* cut off */
	assert_int_equal(isa_hazards("", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hazards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
