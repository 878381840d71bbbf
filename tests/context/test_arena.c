/*
 * Calling context trees: random programs call as edited code does, native, with threads, children,
 * signals, deep recursion and without room. What is read equals a tree that was built beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "calls/tree.h"
#include "context/arena.h"
#include "store/edges.h"

#include "rt/context.c"

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

/* The header that the code above has in front of it when it is part of a program. */
__asm__(".data\n.globl rt_header\n.globl test_header\n.balign 8\n"
	"rt_header:\ntest_header:\n.fill " TEXT_OF(RT_HEADER) ", 1, 0\n.text\n");
extern struct rt_header test_header;
_Static_assert(sizeof test_header == RT_HEADER, "as much as above");

static unsigned complaints;

void rt_complain(const char *where, long error)
{
	assert_string_equal(where, test_header.path);
	assert_int_equal(error, -ENOENT);
	complaints++;
}

/* The second metric is an event; nobody adds up what is measured here. */
uint64_t rt_metric(uint64_t which)
{
	return which;
}

enum { PROCEDURES = 24, LEAVES = 6, SITES = 5, COUNTED = 3, FIRST = 1000, HANDLER = 23 };

static struct context_map the_map;
static struct context_shape shapes[PROCEDURES];
static char folder[64], path[128];

/* Procedures from LEAVES on have three counted sites and five with slots. */
static void make_map(void)
{
	the_map = (struct context_map){.id = {.size = 4, .bytes = "test"}, .first = FIRST};
	the_map.path = xstrdup("/test");
	for (unsigned i = 0; i < PROCEDURES; i++) {
		struct context_procedure p = {
			.start = 0x1000 * (i + 1), .site = (uint32_t)the_map.sites.n};

		if (i >= LEAVES) {
			p.counts = COUNTED;
			p.slots = SITES;
		}
		for (unsigned k = 0; i >= LEAVES && k < COUNTED + SITES; k++)
			*vec_add(&the_map.sites) = (struct context_site){
				p.start + 8 * k, k < COUNTED ? (i + k) % LEAVES : 0};
		*vec_add(&the_map.procedures) = p;
		shapes[i] = (struct context_shape){p.counts, p.slots};
	}
}

static int set_up(void **state)
{
	struct err e = {0};

	(void)state;
	strcpy(folder, "/tmp/culprit-test-context-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/arena", folder);
	strcpy(test_header.path, path);
	test_header.context.first = FIRST;
	test_header.context.shapes = (uint64_t)shapes - (uint64_t)&test_header;
	return context_arena_create(path, &e);
}

static void set_word(uint64_t value)
{
	__asm__ volatile("mov %0, %%fs:%c1" : : "r"(value), "i"(CONTEXT_WORD) : "memory");
}

static uint64_t get_word(void)
{
	uint64_t value;

	__asm__ volatile("mov %%fs:%c1, %0" : "=r"(value) : "i"(CONTEXT_WORD));
	return value;
}

static int tear_down(void **state)
{
	(void)state;
	munmap((void *)CONTEXT_ARENA, CONTEXT_WINDOW);
	set_word(0);
	unlink(path);
	return rmdir(folder);
}

/* ---- a program ---- */

struct program {
	struct call_tree *tree; /* what is expected */
	uint64_t random, key, left, entries;
	bool dry;   /* only expected */
	bool leave; /* nothing to the next thread on the same stack */
};

static unsigned draw(struct program *p, unsigned limit)
{
	p->random = p->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((p->random >> 33) % limit);
}

/* What the code at entries does. */
static struct context_record *enter(unsigned procedure)
{
	uint64_t slot = get_word();
	struct context_record *r = slot ? record_at(*(uint64_t *)slot) : NULL;

	if (r && r->procedure == CONTEXT_FAN)
		r = record_at(
			((struct context_fan *)r)->place[(FIRST + procedure) % CONTEXT_PLACES]);
	if (!r || r->procedure != FIRST + procedure)
		r = record_at(rt_context_enter(procedure));
	r->count++;
	return record_at(r->body);
}

/* The same in the tree that is expected. */
static uint32_t expect(struct program *p, uint32_t parent, unsigned procedure, uint64_t site)
{
	struct call_place at = {p->key, the_map.procedures.p[procedure].start, site, false};
	uint32_t up = parent, node;

	while (up != CALL_NONE && call_tree_node(p->tree, up)->at.procedure != at.procedure)
		up = call_tree_node(p->tree, up)->parent;
	at.recursive = up != CALL_NONE;
	node = call_tree_child(p->tree, parent, &at);
	call_tree_node(p->tree, node)->count++;
	p->entries++;
	return at.recursive ? up : node;
}

static void call(struct program *p, unsigned procedure, uint32_t parent, uint64_t site, int depth)
{
	uint32_t node = expect(p, parent, procedure, site);
	struct context_record *r = p->dry ? NULL : enter(procedure);
	const struct context_site *sites = the_map.sites.p + the_map.procedures.p[procedure].site;
	uint64_t before = get_word();

	while (procedure >= LEAVES && p->left && depth < 40 && draw(p, 4)) {
		unsigned number = draw(p, COUNTED + SITES), callee;

		p->left--;
		if (number < COUNTED) {
			if (r)
				((uint64_t *)r)[-1 - (int)number]++;
			expect(p, node, sites[number].callee, sites[number].at);
			continue;
		}
		/* The first two sites call one procedure each, the others many. */
		callee = number < COUNTED + 2 ? (procedure + number) % (PROCEDURES - 1)
					      : draw(p, PROCEDURES - 1);
		if (r)
			set_word((uint64_t)context_slot(r, number - COUNTED));
		call(p, callee, node, sites[number].at, depth + 1);
	}
	set_word(before);
}

static struct program start(uint64_t seed)
{
	return (struct program){.tree = call_tree_create(NULL),
		.random = seed,
		.key = edge_image_key(IMAGE_ELF, &the_map.id, the_map.path)};
}

static void run(struct program *p, uint64_t calls)
{
	for (p->left = calls; p->left; p->left -= p->left > 0)
		call(p, LEAVES + draw(p, 6), CALL_NONE, 0, 0);
}

/* ---- what is read ---- */

static struct call_tree *read_back(struct context_summary *sum)
{
	struct call_tree *tree = call_tree_create(NULL);
	struct err e = {0};
	int rc = context_arena_load(path, &the_map, 1, tree, NULL, sum, &e);

	if (rc)
		fail_msg("%s", e.text);
	return tree;
}

static void compare(struct call_tree *expected, struct call_tree *got)
{
	struct buf a = {0}, b = {0};

	call_tree_pack(expected, &a);
	call_tree_pack(got, &b);
	assert_int_equal(call_tree_size(expected), call_tree_size(got));
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
	buf_deinit(&a);
	buf_deinit(&b);
	call_tree_destroy(expected);
	call_tree_destroy(got);
}

static uint64_t entries_of(const struct call_tree *t, uint64_t procedure)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < call_tree_size(t); i++)
		if (!procedure || call_tree_node(t, i)->at.procedure == procedure)
			n += call_tree_node(t, i)->count;
	return n;
}

/* ---- tests ---- */

static void random_calls(void **state)
{
	struct program p = start(1);
	struct context_summary sum;

	(void)state;
	run(&p, 100000);
	assert_true(call_tree_size(p.tree) > 5000);
	compare(p.tree, read_back(&sum));
	assert_int_equal(sum.lost, 0);
	assert_int_equal(sum.roots, 1);
	assert_false(sum.shared);
}

static void deep_recursion(void **state)
{
	enum { DEEP = 100000 };
	struct context_record *first = NULL;
	struct context_summary sum;
	struct call_tree *got;

	(void)state;
	for (unsigned i = 0; i < DEEP; i++) {
		struct context_record *r = enter(LEAVES + i % 3);

		set_word((uint64_t)context_slot(r, 0));
		first = first ? first : r;
		assert_true(i % 3 || r == first);
	}
	got = read_back(&sum);
	assert_int_equal(sum.records, 3);
	assert_int_equal(sum.stand_ins, 1);
	assert_int_equal(entries_of(got, 0), DEEP);
	call_tree_destroy(got);
}

static void *thread(void *arg)
{
	struct program *p = arg;

	run(p, 10000);
	if (p->leave)
		set_word(0);
	return NULL;
}

static void run_threads(struct program *list, unsigned n, struct call_tree *total)
{
	pthread_t threads[64];

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread, &list[i]), 0);
	for (unsigned i = 0; i < n; i++) {
		struct buf packed = {0};

		pthread_join(threads[i], NULL);
		call_tree_pack(list[i].tree, &packed);
		assert_int_equal(call_tree_add(total, packed.p, packed.n), 0);
		buf_deinit(&packed);
		call_tree_destroy(list[i].tree);
	}
}

static void many_threads(void **state)
{
	struct call_tree *total = call_tree_create(NULL);
	struct program list[16];
	struct context_summary sum;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		list[i] = start(i);
		list[i].leave = true;
	}
	run_threads(list, 16, total);
	compare(total, read_back(&sum));
	assert_int_equal(sum.lost, 0);
	assert_false(sum.shared);
}

/* Those that come later use the trees of those that have gone. */
static void threads_one_after_the_other(void **state)
{
	struct call_tree *total = call_tree_create(NULL);
	struct context_summary sum;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct program p = start(i);

		p.leave = i == 19;
		run_threads(&p, 1, total);
	}
	compare(total, read_back(&sum));
	assert_true(sum.roots <= 3);
}

/* They go on in the same tree, and so does the parent; then others start anew in a process. */
static void children(void **state)
{
	struct context_summary sum;
	struct program p = start(7);

	(void)state;
	run(&p, 2000);
	for (int i = 0; i < 6; i++) {
		pid_t child;
		int status;

		if (i == 3)
			set_word(0);
		child = fork();
		p.dry = child != 0;
		run(&p, 2000);
		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	compare(p.tree, read_back(&sum));
	assert_true(sum.shared);
	assert_int_equal(sum.roots, 2);
}

static volatile sig_atomic_t handled;

static void handler(int signal)
{
	uint64_t before = get_word();

	(void)signal;
	enter(HANDLER);
	set_word(before);
	handled++;
}

static void signals(void **state)
{
	struct sigaction sa = {.sa_handler = handler}, old;
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	uint64_t start_of_handler = the_map.procedures.p[HANDLER].start;
	struct context_summary sum;
	struct program p = start(9);
	struct call_tree *got;

	(void)state;
	handled = 0;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	run(&p, 100000);
	setitimer(ITIMER_REAL, &never, NULL);
	raise(SIGALRM);
	sigaction(SIGALRM, &old, NULL);
	got = read_back(&sum);
	assert_int_equal(entries_of(got, start_of_handler), handled);
	assert_int_equal(entries_of(got, 0), p.entries + (uint64_t)handled);
	call_tree_destroy(got);
	call_tree_destroy(p.tree);
}

/* ---- paths ---- */

enum { PATHS = 3000, OWNER = LEAVES + 1 };

struct paths_seen {
	uint64_t number[PATHS], count[PATHS], n;
};

static uint64_t path_number(unsigned i)
{
	return i * (uint64_t)0x123456789abcd % ((uint64_t)1 << 55);
}

static void take_path(void *arg, const struct context_ran *ran)
{
	struct paths_seen *seen = arg;
	uint64_t i = seen->n++;

	assert_int_equal(ran->procedure, OWNER);
	assert_true(i < PATHS);
	seen->number[i] = ran->number;
	seen->count[i] = ran->count;
	assert_int_equal(ran->sums[0], 5 * ran->count);
	assert_int_equal(ran->sums[1], 0);
}

/* One procedure has its paths in a tree, whose root is the word right before its record. */
static void run_paths(unsigned first, uint64_t *lost)
{
	struct context_record *r = enter(OWNER);

	for (unsigned i = 0; i < 4 * PATHS; i++) {
		uint64_t *counter =
			(uint64_t *)rt_context_path((uint64_t)r, path_number(first + i % PATHS));

		counter[0] += i / PATHS;
		counter[1] += 5 * (i / PATHS);
		*lost += counter == (uint64_t *)record_at(CONTEXT_ARENA + CONTEXT_LOST_AT) -
					    CONTEXT_COUNTS_MAX;
	}
}

static void set_tree(bool tree)
{
	the_map.stride = tree ? 2 : 0;
	the_map.procedures.p[OWNER].tree = tree;
	the_map.procedures.p[OWNER].paths = tree;
	shapes[OWNER].counts = COUNTED + tree;
}

static void paths_in_trees(void **state)
{
	static struct paths_seen seen;
	struct context_sink sink = {take_path, &seen};
	struct call_tree *tree = call_tree_create(NULL);
	struct context_summary sum;
	struct err e = {0};
	uint64_t lost = 0, numbers = 0, all = 0;

	(void)state;
	seen.n = 0;
	set_tree(true);
	run_paths(0, &lost);
	assert_int_equal(context_arena_load(path, &the_map, 1, tree, &sink, &sum, &e), 0);
	set_tree(false);
	assert_int_equal(lost, 0);
	assert_int_equal(seen.n, PATHS);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(seen.count[i], 0 + 1 + 2 + 3);
		numbers += seen.number[i];
		all += path_number(i);
	}
	assert_int_equal(numbers, all);
	call_tree_destroy(tree);
}

/* They go where nobody is harmed. */
static void paths_without_room(void **state)
{
	struct rlimit old, small;
	uint64_t lost = 0;

	(void)state;
	set_tree(true);
	enter(OWNER);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){1 << 20, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	for (unsigned i = 0; i < 8; i++) {
		set_word(0);
		run_paths(i * PATHS, &lost);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	set_tree(false);
	assert_true(lost > 0);
}

static void no_room(void **state)
{
	struct rlimit old, small;
	struct context_summary sum;
	struct program p = start(3);
	struct call_tree *got;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){1 << 20, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	run(&p, 100000);
	setrlimit(RLIMIT_FSIZE, &old);
	got = read_back(&sum);
	assert_true(sum.lost > 0);
	assert_true(entries_of(got, 0) > 0);
	assert_int_equal(entries_of(got, 0) + sum.lost, p.entries);
	call_tree_destroy(got);
	call_tree_destroy(p.tree);
}

/* Everything is counted for nobody, and nothing else happens. */
static void no_file(void **state)
{
	struct program p = start(4);
	struct context_summary sum;
	struct call_tree *got;

	(void)state;
	strcpy(test_header.path, "/nonexistent/arena");
	run(&p, 1000);
	strcpy(test_header.path, path);
	got = read_back(&sum);
	assert_int_equal(call_tree_size(got), 0);
	assert_int_equal(complaints, 1);
	call_tree_destroy(got);
	call_tree_destroy(p.tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_calls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(deep_recursion, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_one_after_the_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(children, set_up, tear_down),
		cmocka_unit_test_setup_teardown(signals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(paths_in_trees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(paths_without_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_file, set_up, tear_down),
	};

	make_map();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	context_map_deinit(&the_map);
	return failed;
}
