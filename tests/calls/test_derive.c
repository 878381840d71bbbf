/* Paths by the code of this very program, whose calls are known. */
#include "calls/derive.h"

#include "image/frames.h"
#include "image/image.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEY 4711
#define APART                                                                                 \
	__attribute__((noinline, noclone, no_icf, no_sanitize_address, no_sanitize_undefined, \
		optimize("no-optimize-sibling-calls", "omit-frame-pointer")))

APART int inner(int x);
APART int middle(int x);
APART int outer(int x);

int inner(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

int middle(int x)
{
	volatile char frame[100];

	frame[x & 63] = 1;
	return inner(x) + frame[x & 63];
}

int outer(int x)
{
	return middle(x) + middle(x + 1);
}

static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(uint64_t *)bias = info->dlpi_addr;
	return 1; /* the program comes first */
}

static uint64_t address_of(int (*f)(int))
{
	uint64_t bias = 0;

	dl_iterate_phdr(take_bias, &bias);
	return (uint64_t)f - bias;
}

static uint32_t distance(const struct call_callers *c, int (*callee)(int), int (*caller)(int))
{
	uint32_t lists[2];

	call_callers_of(c, KEY, address_of(callee), lists);
	for (uint32_t i = lists[0]; i != CALLERS_NONE; i = call_callers_get(c, i)->next)
		if (call_callers_get(c, i)->procedure == address_of(caller))
			return call_callers_get(c, i)->down;
	return 0;
}

static struct call_callers *read_self(void)
{
	struct call_callers *c = call_callers_create();
	struct frames *frames;
	struct image *im;

	assert_int_equal(image_open_path("/proc/self/exe", &im, NULL), 0);
	assert_int_equal(frames_open(im, &frames), 0);
	assert_false(call_callers_has(c, KEY));
	call_callers_add(c, KEY, im, frames);
	assert_true(call_callers_has(c, KEY));
	frames_destroy(frames);
	image_destroy(im);
	return c;
}

static void test_derives(void **s)
{
	struct call_callers *c = read_self();
	struct call_map *m = call_map_create();
	uint32_t to_middle = distance(c, middle, outer), to_inner = distance(c, inner, middle),
		 node;
	struct call_frame known[] = {{KEY, address_of(outer), 320}, {7, 9, 64}};
	struct call_frame frame = {KEY, address_of(inner), 320 + to_middle + to_inner};

	(void)s;
	assert_true(outer(1) > 0);
	assert_true(to_middle >= 16 && to_inner >= 100);
	assert_int_equal(call_map_derive(m, c, STACK_MAIN, &frame), CALL_NONE);
	call_map_learn(m, NULL, STACK_MAIN, known, 2);
	node = call_map_derive(m, c, STACK_MAIN, &frame);
	assert_int_not_equal(node, CALL_NONE);
	assert_int_equal(call_tree_node(call_map_tree(m), node)->depth, 3);
	node = call_tree_node(call_map_tree(m), node)->parent;
	assert_int_equal(call_tree_node(call_map_tree(m), node)->at.procedure, address_of(middle));
	/* At other heights, and on other stacks, nobody could have called. */
	assert_int_equal(call_map_derive(m, c, STACK_THREAD, &frame), CALL_NONE);
	frame.height += 8;
	assert_int_equal(call_map_derive(m, c, STACK_MAIN, &frame), CALL_NONE);
	call_map_destroy(m);
	call_callers_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_derives)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
