/* What snippets call, run from random states: everything is as it was but the result. */
#include "rt/rt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "edit/native.h"
#include "isa/dice.h"
#include "rt/routines.h"

NATIVE_DEFINE

static const uint8_t blob[] = {
#include "rt/blob.h"
};

enum { PAGE = 4096, STACK = 1024, RSP = 4, FLAGS = 0xcd5 /* arithmetic, and direction */ };

/* Near each other, as in an edited file. */
static struct image {
	uint8_t code[8 * PAGE];
	uint8_t entry[PAGE];
	uint64_t counters[PAGE / 8];
	struct rt_threads threads;
} * image;

static uint64_t stack[STACK];

static void make_image(const char *path)
{
	struct rt_header *h;

	_Static_assert(sizeof blob <= sizeof image->code, "there is room");
	image = mmap(NULL, sizeof *image, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(image != MAP_FAILED);
	memcpy(image->code, blob, sizeof blob);
	h = (struct rt_header *)image->code;
	h->address = (uint64_t)h;
	h->counters = (uint64_t)image->counters;
	h->size = PAGE;
	h->threads = (uint64_t)&image->threads;
	h->blocks = 4;
	h->block = h->size;
	strcpy(h->path, path);
}

/* lea -16(%rsp), %rsp; call routine; lea 16(%rsp), %rsp; jmp native_back */
static void make_entry(size_t routine)
{
	int32_t by = (int32_t)(image->code + routine - (image->entry + 10));
	uint64_t back = (uint64_t)native_back;

	memcpy(image->entry, "\x48\x8d\x64\x24\xf0\xe8", 6);
	memcpy(image->entry + 6, &by, 4);
	memcpy(image->entry + 10, "\x48\x8d\x64\x24\x10\xff\x25\0\0\0\0", 11);
	memcpy(image->entry + 21, &back, 8);
	native_code = image->entry;
}

/* Returns the result. */
static uint64_t run(struct dice *dice)
{
	uint64_t before[STACK];

	for (unsigned i = 0; i < 16; i++)
		native_in.r[i] = dice_roll(dice);
	native_in.flags = (dice_roll(dice) & FLAGS) | 0x202;
	native_in.r[RSP] = (uint64_t)&stack[STACK - 64 - dice_below(dice, 2)];
	for (unsigned i = 0; i < STACK; i++)
		stack[i] = dice_roll(dice);
	memcpy(before, stack, sizeof before);
	native_enter();
	assert_memory_equal(native_in.r, native_out.r, sizeof native_in.r);
	assert_int_equal(native_in.flags & FLAGS, native_out.flags & FLAGS);
	size_t top = (native_in.r[RSP] - (uint64_t)stack) / 8;
	assert_memory_equal(stack + top, before + top, (STACK - top) * 8);
	return stack[top - 2];
}

static void thread_block(void **state)
{
	char path[] = "/tmp/culprit-test-routines-XXXXXX";
	struct dice dice = {.state = dice_option("SEED", 1)};

	(void)state;
	close(mkstemp(path));
	make_image(path);
	make_entry(RT_CALL_THREAD_BLOCK);
	assert_int_equal(run(&dice), 0); /* it was not started */
	((void (*)(void))(uintptr_t)(image->code + RT_START))();
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(run(&dice),
			image->threads.region + PAGE + RT_DIRECTORY - (uint64_t)image->counters);
	munmap(image, sizeof *image);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(thread_block)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
