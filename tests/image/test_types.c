/* Types and variables of this very program. */
#include "image/types.h"

#include "base/buf.h"
#include "image/image.h"
#include "image/lines.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct point {
	int x, y;
};

typedef struct {
	char name[8];
	struct point corners[3];
	union {
		double real;
		long whole;
	} value;
	struct shape_list *next;
	unsigned low : 3, high : 5;
} shape;

struct shape_list {
	shape *first;
};

volatile shape shapes[4];
static struct shape_list list;

struct only_cast {
	shape *volatile first;
	long words[23];
};

struct rig {
	struct lines *lines;
	struct types *types;
	uint64_t bias;
};

static int find_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof *r);

	*state = r;
	dl_iterate_phdr(find_bias, &r->bias);
	if (lines_open("/proc/self/exe", NULL, &r->lines, NULL))
		return -1;
	r->types = types_create(r->lines);
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	types_destroy(r->types);
	lines_destroy(r->lines);
	free(r);
	return 0;
}

static const struct type_variable *find(struct rig *r, volatile void *p)
{
	return types_variable_at(r->types, (uint64_t)p - r->bias);
}

static void assert_field(const struct type *t, uint64_t offset, const char *want)
{
	struct buf text = {0};

	type_field(t, offset, &text);
	assert_string_equal(buf_cstr(&text), want);
	buf_deinit(&text);
}

static void variables(void **state)
{
	const struct type_variable *v = find(*state, &shapes[2].value);

	list.first = (shape *)&shapes[1];
	assert_non_null(v);
	assert_string_equal(v->name, "shapes");
	assert_int_equal(v->size, sizeof shapes);
	assert_int_equal(v->type->kind, TYPE_ARRAY);
	assert_int_equal(v->type->element->size, sizeof(shape));
	assert_string_equal(find(*state, &list)->name, "list");
	assert_null(types_variable_at(((struct rig *)*state)->types, 1));
}

static void fields(void **state)
{
	const struct type *t = find(*state, shapes)->type;
	const struct type *one = t->element;

	assert_string_equal(one->name, "shape");
	assert_int_equal(one->align, 8);
	assert_field(t, 2 * sizeof(shape) + offsetof(shape, next), "[2].next");
	assert_field(one, offsetof(shape, corners) + 12, ".corners[1].y");
	assert_field(one, offsetof(shape, value), ".value.real");
	assert_field(one, 3, ".name[3]");
	assert_field(one, sizeof(shape) - 1, "+55");
	assert_string_equal(type_member_at(one, offsetof(shape, next) + 7)->name, "next");
	assert_null(type_member_at(one, sizeof(shape) - 1));
}

static void fits(void **state)
{
	const struct type *one = find(*state, shapes)->type->element;

	assert_true(type_fits(one, offsetof(shape, next), 8));
	assert_false(type_fits(one, offsetof(shape, next), 4)); /* half a pointer */
	assert_false(type_fits(one, offsetof(shape, next) + 4, 4));
	assert_true(type_fits(one, offsetof(shape, corners) + 4, 4));
	assert_true(type_fits(one, offsetof(shape, corners) + 8, 8)); /* x and y at once */
	assert_false(type_fits(one, offsetof(shape, corners) + 4, 8));
	assert_true(type_fits(one, offsetof(shape, value), 8));
	assert_true(type_fits(one, 5, 1));
	assert_false(type_fits(one, sizeof(shape) - 1, 1));
}

__attribute__((noinline)) static long look(const struct shape_list *l, long *sum)
{
	*sum += l->first ? l->first->corners[0].x : 1;
	return *sum;
}

static void pointers(void **state)
{
	struct rig *r = *state;
	const struct type *found[16];
	long sum = 0;
	size_t n;
	bool lists = false, longs = false;

	look(&list, &sum);
	n = types_pointed_at(r->types, (uint64_t)look - r->bias, found, 16);
	for (size_t i = 0; i < n; i++) {
		lists |= !strcmp(found[i]->name, "shape_list") && found[i]->kind == TYPE_STRUCT;
		longs |= !strcmp(found[i]->name, "long int");
	}
	assert_true(lists && longs);
	assert_int_equal(types_pointed_at(r->types, 1, found, 16), 0);
}

static bool has_size(struct rig *r, uint64_t size, const char *name)
{
	const struct type *found[16];
	size_t n = types_of_size(r->types, (uint64_t)look - r->bias, size, found, 16);

	for (size_t i = 0; i < n; i++)
		if (found[i]->size == size && !strcmp(found[i]->name, name))
			return true;
	return false;
}

/* What casts alone name. */
static void sizes(void **state)
{
	struct rig *r = *state;
	const struct type *found[16];
	long block[24] = {0};
	volatile void *p = block;

	assert_null(((volatile struct only_cast *)p)->first);
	assert_true(has_size(r, sizeof(shape), "shape"));
	assert_true(has_size(r, sizeof(struct shape_list), "shape_list"));
	assert_true(has_size(r, sizeof(struct only_cast), "only_cast"));
	assert_int_equal(types_of_size(r->types, (uint64_t)look - r->bias, 12345, found, 16), 0);
	assert_int_equal(types_of_size(r->types, 1, 8, found, 16), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(variables, setup, teardown),
		cmocka_unit_test_setup_teardown(fields, setup, teardown),
		cmocka_unit_test_setup_teardown(fits, setup, teardown),
		cmocka_unit_test_setup_teardown(pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
