/*
 * Who calls whom, and who does not return.
 */
#include "flow/assembled.h"
#include "flow/callgraph.h"
#include "flow/noreturn.h"

static const char text[] =
	"#include <stdlib.h>\n"
	"#include <setjmp.h>\n"
	"extern jmp_buf env; extern int (*pointer)(int); extern int outside(int);\n"
	"#define HIDE __attribute__((noinline, noclone, noipa))\n"
	"HIDE void dies(int x) { if (x) outside(x); exit(x); }\n"
	"HIDE void dies_too(int x) { outside(x); dies(x + 1); __builtin_unreachable(); }\n"
	"HIDE void jumps(void) { longjmp(env, 1); }\n"
	"HIDE void pong(int x);\n"
	"HIDE void ping(int x) { outside(x); pong(x - 1); outside(x); }\n"
	"HIDE void pong(int x) { outside(x); ping(x - 1); outside(x + 1); }\n"
	"HIDE void spins(void) { for (;;) outside(1); }\n"
	"HIDE int maybe(int x) { if (x > 3) dies_too(x); return outside(x) + 1; }\n"
	"HIDE int recursive(int x) { return x ? recursive(x - 1) + outside(x) : 0; }\n"
	"HIDE int indirect(int x) { return pointer(x) + 1; }\n"
	"HIDE int indirect_tail(int x) { return pointer(x); }\n"
	"HIDE int tail(int x) { return maybe(x); }\n";

static uint32_t number_of(const char *name)
{
	const struct procedure *ps;
	image_procedures(built, &ps);
	return (uint32_t)(find_procedure(name) - ps);
}

static int kind_of(const struct callgraph *c, const char *from, const char *to)
{
	graph_each_out (e, &c->graph, number_of(from))
		if (c->graph.edge[*e].to == number_of(to))
			return c->edge_kind[*e];
	return -1;
}

static void test_returns(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool noreturn;
	} expected[] = {{"dies", true}, {"dies_too", true}, {"jumps", true}, {"ping", true},
		{"pong", true}, {"spins", true}, {"maybe", false}, {"recursive", false},
		{"indirect", false}, {"indirect_tail", false}, {"tail", false}};
	struct callgraph *c;

	write_text("code.c", text);
	shell("gcc -O2 -w -shared -fPIC -fvisibility=hidden -o code.so code.c");
	open_built("code.so");
	struct flow *f = flow_of("maybe");
	uint32_t before = f->nblocks;
	flow_destroy(f);
	callgraph_create(program, NULL, &c);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		if (expected[i].noreturn !=
			!!(c->marks[number_of(expected[i].name)] & CALLGRAPH_NORETURN))
			fail_msg("%s", expected[i].name);

	assert_int_equal(kind_of(c, "dies_too", "dies"), CALLGRAPH_CALL);
	assert_int_equal(kind_of(c, "tail", "maybe"), CALLGRAPH_TAIL);
	assert_int_equal(kind_of(c, "tail", "dies"), -1);
	assert_int_equal(kind_of(c, "recursive", "recursive"), CALLGRAPH_CALL);
	assert_true(c->marks[number_of("indirect")] & CALLGRAPH_INDIRECT);
	assert_true(c->marks[number_of("indirect_tail")] & CALLGRAPH_INDIRECT_TAIL);
	assert_false(c->marks[number_of("tail")] & (CALLGRAPH_INDIRECT | CALLGRAPH_INDIRECT_TAIL));

	/* The flow that is made now knows. */
	f = flow_of("maybe");
	bool stops = false;
	for (uint32_t k = 0; k < f->nblocks; k++)
		stops |= f->blocks[k].end == FLOW_STOPS && !(f->blocks[k].marks & FLOW_PADDING);
	assert_true(stops && f->nblocks >= before);
	flow_destroy(f);
	callgraph_destroy(c);
}

static void test_names(void **state)
{
	(void)state;
	static const char *const never[] = {"abort", "exit@plt", "__stack_chk_fail@plt", "_exit",
		"__cxa_throw@plt", "_Unwind_Resume", "std::__throw_length_error(char const*)@plt",
		"std::terminate()", "longjmp", "siglongjmp@plt", "__libc_fatal", "verrx"};
	static const char *const may[] = {"printf", "exits", "exit_handler", "@plt", "", "zzz", "_",
		"abort@", "std::terminate_handler"};

	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (!noreturn_name(never[i]))
			fail_msg("%s", never[i]);
	for (size_t i = 0; i < sizeof may / sizeof *may; i++)
		if (noreturn_name(may[i]))
			fail_msg("%s", may[i]);
	assert_false(noreturn_name(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_names),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);
	forget_built();
	return r;
}
