#include "analyze/frequency.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "flow/assembled.h"
#include "isa/decode.h"

#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

/* A program that runs at random: each block has its probability to branch and its cycles. */
struct machine_block {
	double taken;  /* of a block that branches: to the edge that is no fall-through */
	double cycles; /* of one execution */
};

enum { BURST = 100, PERIOD = 2000 };

struct run {
	struct evidence ev;
	double *block, *edge; /* exact */
	unsigned long long state;
};

static double draw(struct run *r)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (double)(r->state >> 11) / 9007199254740992.0;
}

/* Which edge leaves a node this time. */
static uint32_t choose(struct run *r, const struct machine_block *m, uint32_t node)
{
	const struct graph *g = &r->ev.flow->graph;
	uint32_t fall = GRAPH_NONE, other = GRAPH_NONE;

	graph_each_out (it, g, node)
		if (r->ev.flow->edge_kind[*it] == FLOW_EDGE_UNSEEN)
			continue;
		else if (r->ev.flow->edge_kind[*it] == FLOW_EDGE_FALL)
			fall = *it;
		else
			other = *it;
	if (fall == GRAPH_NONE || other == GRAPH_NONE)
		return fall == GRAPH_NONE ? other : fall;
	return draw(r) < m[node].taken ? other : fall;
}

/*
 * Runs for so many blocks. Time is sampled on random instructions of the block that it meets; from
 * every sample the next branches are written down.
 */
static void run(struct run *r, const struct machine_block *m, uint64_t blocks)
{
	const struct flow *f = r->ev.flow;
	uint32_t node = f->entry_node, burst = 0;
	double next = draw(r) * PERIOD, now = 0;

	for (uint64_t i = 0; i < blocks;) {
		uint32_t edge = node == f->exit_node ? GRAPH_NONE : choose(r, m, node);

		if (node < f->nblocks) {
			i++;
			r->block[node]++;
			for (now += m[node].cycles; now >= next; next += 2 * PERIOD * draw(r)) {
				uint32_t n = (uint32_t)(draw(r) * f->blocks[node].count);

				r->ev.samples[f->blocks[node].first + n]++;
				r->ev.total++;
				burst = BURST;
			}
		}
		if (edge == GRAPH_NONE) {
			node = f->entry_node;
			continue;
		}
		r->edge[edge]++;
		if (burst && node < f->nblocks && f->blocks[node].end == FLOW_BRANCHES) {
			r->ev.edges[edge]++;
			burst--;
		}
		node = f->graph.edge[edge].to;
	}
}

static void run_init(struct run *r, const char *name)
{
	*r = (struct run){.ev = {.flow = flow_of(name), .period = PERIOD, .timed = true}};
	r->ev.samples = xcalloc(r->ev.flow->ninsns, sizeof *r->ev.samples);
	r->ev.edges = xcalloc(r->ev.flow->graph.edges, sizeof *r->ev.edges);
	r->block = xcalloc(r->ev.flow->nblocks, sizeof *r->block);
	r->edge = xcalloc(r->ev.flow->graph.edges, sizeof *r->edge);
	r->state = 88172645463325252u;
}

static void run_deinit(struct run *r)
{
	flow_destroy(r->ev.flow);
	free(r->ev.samples);
	free(r->ev.edges);
	free(r->block);
	free(r->edge);
}

/* Estimates that are relative, made right in the sum of instructions. */
static double factor_of(const struct run *r, const struct frequency *f)
{
	double exact = 0, estimated = 0;

	for (uint32_t b = 0; b < r->ev.flow->nblocks; b++) {
		exact += r->block[b] * r->ev.flow->blocks[b].count;
		estimated += f->block[b].count * r->ev.flow->blocks[b].count;
	}
	return exact / estimated;
}

static void within(double estimate, double exact, double share)
{
	if (!(fabs(estimate - exact) <= share * exact))
		fail_msg("%g is not %g", estimate, exact);
}

/*
 * An outer loop around an inner one and a diamond. The inner loop is fast, one side of the diamond
 * takes nearly all the time.
 */
static const char nested[] = ".globl nested\n.type nested, @function\nnested:\n"
			     "1: nop\n nop\n"
			     "2: nop\n nop\n nop\n jne 2b\n"
			     " nop\n je 3f\n"
			     " nop\n nop\n jmp 4f\n"
			     "3: nop\n"
			     "4: nop\n jne 1b\n ret\n";

static void recovers_frequencies_whatever_instructions_take(void **state)
{
	/* Blocks: 0 outer header, 1 inner, 2 test, 3 and 4 sides, 5 outer test, 6 return. */
	static const struct machine_block m[] = {
		{0, 1}, {0.9, 0.5}, {0.3, 2}, {0, 300}, {0, 1}, {0.99, 1}, {0, 1}};
	struct run r;
	struct frequency *f;
	struct err e = {0};
	double factor;

	(void)state;
	assemble(nested);
	run_init(&r, "nested");
	assert_int_equal(r.ev.flow->nblocks, sizeof m / sizeof *m);
	run(&r, m, 3000000);
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	assert_true(f->converged);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	assert_true(f->scale_low == 0 && isinf(f->scale_high));
	factor = factor_of(&r, f);
	for (uint32_t b = 0; b < 6; b++) {
		within(factor * f->block[b].count, r.block[b], 0.06);
		assert_true(f->block[b].low < f->block[b].count);
		assert_true(f->block[b].high > f->block[b].count);
	}
	for (uint32_t i = 0; i < r.ev.flow->graph.edges; i++)
		if (r.edge[i] > 10000)
			within(factor * f->edge[i].count, r.edge[i], 0.06);
	frequency_destroy(f);
	run_deinit(&r);
}

/* Where no burst came to, samples are all there is, and what is made of them is not trusted. */
static void without_edges_nothing_is_certain(void **state)
{
	static const struct machine_block m[] = {
		{0, 1}, {0.9, 0.5}, {0.3, 2}, {0, 3}, {0, 1}, {0.99, 1}, {0, 1}};
	struct run r;
	struct frequency *f;
	struct err e = {0};

	(void)state;
	assemble(nested);
	run_init(&r, "nested");
	run(&r, m, 300000);
	memset(r.ev.edges, 0, r.ev.flow->graph.edges * sizeof *r.ev.edges);
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	for (uint32_t b = 0; b < r.ev.flow->nblocks; b++)
		assert_int_equal(f->block[b].confidence, CONFIDENCE_LOW);
	assert_true(f->block[1].count > f->block[0].count);
	frequency_destroy(f);
	run_deinit(&r);
}

/* A procedure that nothing was sampled of. */
static void nothing_at_all(void **state)
{
	struct run r;
	struct frequency *f;
	struct err e = {0};

	(void)state;
	assemble(nested);
	run_init(&r, "nested");
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	for (uint32_t b = 0; b < r.ev.flow->nblocks; b++)
		assert_int_equal(f->block[b].confidence, CONFIDENCE_LOW);
	frequency_destroy(f);
	run_deinit(&r);
}

/*
 * The nested loops with a word that the block of one side of the diamond moves, of whose turns a
 * part was counted. Cycles stand for ns.
 */
static void solve_paced(double part, double factor, struct run *r, struct frequency **f)
{
	static const struct machine_block m[] = {
		{0, 3}, {0.9, 2}, {0.3, 4}, {0, 30}, {0, 3}, {0.99, 3}, {0, 1}};
	struct pace pace = {.seen = 1000, .counted = (uint64_t)(1000 * part)};
	struct err e = {0};

	assemble(nested);
	run_init(r, "nested");
	run(r, m, 1000000);
	r->ev.clock = true;
	pace.offset = r->ev.flow->blocks[3].start;
	pace.turns = (uint64_t)(part * factor * r->block[3]);
	r->ev.paces = &pace;
	r->ev.npaces = 1;
	assert_int_equal(frequency_create(&r->ev, f, &e), 0);
}

static void words_that_count_tell_the_scale(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_paced(0.95, 1, &r, &f);
	assert_int_equal(f->scale, FREQUENCY_KNOWN);
	for (uint32_t b = 0; b < 6; b++)
		within(f->block[b].count, r.block[b], 0.1);
	assert_true(f->scale_low > 0.6 && f->scale_low < 1);
	assert_true(f->scale_high > 1 && f->scale_high < 1.6);
	frequency_destroy(f);
	run_deinit(&r);
}

/* The rest may be something else. */
static void words_seen_for_a_while_tell_nothing(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_paced(0.2, 1, &r, &f);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	frequency_destroy(f);
	run_deinit(&r);
}

/* A word that loses most of its turns would make the procedure slower than any core. */
static void words_that_lose_turns_tell_nothing(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_paced(0.95, 0.02, &r, &f);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	frequency_destroy(f);
	run_deinit(&r);
}

/* A computed jump that the graph does not resolve: where bursts saw it go counts. */
static void follows_what_was_seen(void **state)
{
	struct run r;
	struct frequency *f;
	struct err e = {0};
	struct evidence_way ways[2] = {{.count = 300}, {.count = 100}};
	uint32_t jump = GRAPH_NONE;

	(void)state;
	assemble(".globl seen\n.type seen, @function\nseen:\n"
		 " push %rax\n jmp *%rdi\n"
		 " inc %eax\n inc %eax\n ret\n"
		 " inc %eax\n inc %eax\n inc %eax\n ret\n");
	run_init(&r, "seen");
	for (uint32_t i = 0; i < r.ev.flow->ninsns; i++)
		if (r.ev.flow->insns[i].kind == INSN_JUMP_INDIRECT)
			jump = i;
	assert_int_not_equal(jump, GRAPH_NONE);
	ways[0].insn = ways[1].insn = jump;
	ways[0].to = r.ev.flow->insns[jump + 1].address;
	ways[1].to = r.ev.flow->insns[jump + 4].address;
	r.ev.ways = ways;
	r.ev.nways = 2;
	for (uint32_t i = 0; i < r.ev.flow->ninsns; i++)
		r.ev.total += r.ev.samples[i] = 100;
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	within(f->block[1].count, 0.75 * f->block[0].count, 0.02);
	within(f->block[2].count, 0.25 * f->block[0].count, 0.05);
	frequency_destroy(f);
	run_deinit(&r);
}

/* An interpreter with a jump to any of 16 operations behind each of them. */
static const char interpreter[] =
	".macro go\n cmp $15, %edi\n ja 9f\n movslq (%rdx,%rdi,4), %rax\n"
	" add %rdx, %rax\n jmp *%rax\n.endm\n"
	".globl interpreter\n.type interpreter, @function\ninterpreter:\n"
	" lea table(%rip), %rdx\n go\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"op\\n: movzbl (%rsi), %edi\n inc %rsi\n go\n.endr\n"
	"9: ret\n"
	".section .rodata\n.balign 4\ntable:\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n .long op\\n - table\n.endr\n";

/* The jth of the blocks that end in a jump through the table. */
static uint32_t dispatch(const struct flow *f, uint32_t j)
{
	for (uint32_t b = 0; b < f->nblocks; b++)
		if (f->blocks[b].end == FLOW_TABLE && j-- == 0)
			return b;
	fail();
	return GRAPH_NONE;
}

/* So often from the dispatch behind operation a (or the first, 0) to operation b. */
static void see_operation(struct run *r, uint32_t a, uint32_t b, uint64_t count)
{
	const struct flow *f = r->ev.flow;
	uint32_t to = dispatch(f, b) - 1; /* its first block ends in the check */

	graph_each_out (it, &f->graph, dispatch(f, a))
		if (f->graph.edge[*it].to == to)
			r->ev.edges[*it] += count;
	r->ev.samples[f->blocks[to].first] += count;
	r->ev.total += count;
}

/* Of 16 * 17 edges a few are followed; what ran without being followed is not lost. */
static void tables_are_narrowed_to_what_was_seen(void **state)
{
	struct run r;
	struct frequency *f;
	struct err e = {0};
	uint32_t kept = 0;

	(void)state;
	assemble(interpreter);
	run_init(&r, "interpreter");
	assert_int_equal(dispatch(r.ev.flow, 16), r.ev.flow->nblocks - 2);
	see_operation(&r, 4, 6, 300);
	see_operation(&r, 6, 4, 200);
	see_operation(&r, 6, 6, 100);
	r.ev.samples[r.ev.flow->blocks[dispatch(r.ev.flow, 9) - 1].first] = 50;
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	assert_true(f->converged);
	within(f->block[dispatch(r.ev.flow, 6)].count, 1.5 * f->block[dispatch(r.ev.flow, 4)].count,
		0.1);
	assert_true(f->block[dispatch(r.ev.flow, 9)].count > 0);
	assert_true(f->block[dispatch(r.ev.flow, 12)].count <
		    0.01 * f->block[dispatch(r.ev.flow, 6)].count);
	for (uint32_t i = 0; i < r.ev.flow->graph.edges; i++)
		kept += r.ev.flow->edge_kind[i] == FLOW_EDGE_TABLE && f->edge[i].count > 0;
	assert_in_range(kept, 4, 40);
	frequency_destroy(f);
	run_deinit(&r);
}

/* ---- scale ---- */

enum { PAIRS = 20 };

/*
 * A loop that counts by threes, sampled 1,000 times every microsecond of a clock: 1 ms in all. Of
 * the pairs, `wrong` say something else than the rest, which is `speed` turns a nanosecond.
 */
static void count_turns(struct run *r, struct selected_image *im, struct procedure *p,
	struct anchor *anchors, size_t wrong, double speed, uint64_t exits)
{
	const struct flow *f;
	uint64_t loop;

	assemble(".globl turns\n.type turns, @function\nturns:\n xor %eax, %eax\n"
		 "1: add $3, %rax\n inc %ecx\n cmp %rdi, %rax\n jne 1b\n ret\n");
	run_init(r, "turns");
	f = r->ev.flow;
	*p = *find_procedure("turns");
	im->procedures.p = p;
	im->procedures.n = 1;
	r->ev.image = im;
	r->ev.clock = true;
	r->ev.period = 1000;
	r->ev.samples[1] = r->ev.total = 1000;
	for (uint32_t e = 0; e < f->graph.edges; e++)
		if (f->graph.edge[e].from == 1)
			r->ev.edges[e] = f->graph.edge[e].to == 1 ? 1000000 : exits;
	loop = f->blocks[1].start;
	for (size_t i = 0; i < PAIRS; i++) {
		double factor = i < wrong ? -0.1 * (double)(i + 1) : speed * (0.99 + 0.001 * i);

		anchors[i] = (struct anchor){.pc = loop,
			.last = loop + 4,
			.between = 100000,
			.weight = 1,
			.changed = 1,
			.known = 1};
		anchors[i].difference[0] = (int64_t)(3 * 100000 * factor);
	}
	r->ev.anchors = anchors;
	r->ev.nanchors = PAIRS;
}

/* Code that anchors are read from. */
static void load_code(struct run *r, const struct procedure *p, struct buf *code)
{
	assert_int_equal(image_code(built, &p->ranges[0], code), 0);
	r->ev.code = code->p;
	r->ev.code_size = code->n;
}

static void solve_turns(
	size_t wrong, double speed, uint64_t exits, struct frequency **out, struct run *r)
{
	struct selected_image im = {0};
	struct procedure p;
	struct anchor anchors[PAIRS];
	struct buf code = {0};
	struct err e = {0};

	count_turns(r, &im, &p, anchors, wrong, speed, exits);
	load_code(r, &p, &code);
	assert_int_equal(frequency_create(&r->ev, out, &e), 0);
	buf_deinit(&code);
}

static void pairs_tell_the_scale(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_turns(4, 1, 4, &f, &r);
	assert_int_equal(f->scale, FREQUENCY_KNOWN);
	within(f->block[1].count, 1e6, 0.03);
	assert_true(f->scale_low > 0.7 && f->scale_low < 1);
	assert_true(f->scale_high > 1 && f->scale_high < 1.4);
	frequency_destroy(f);
	run_deinit(&r);
}

static void pairs_that_disagree_tell_nothing(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_turns(12, 1, 4, &f, &r);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	frequency_destroy(f);
	run_deinit(&r);
}

/* Where a loop is left a thousand times between two samples, its registers began anew as often. */
static void short_stays_tell_nothing(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_turns(0, 1, 10000, &f, &r);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	frequency_destroy(f);
	run_deinit(&r);
}

/* No core goes round a loop of four instructions twenty times in a nanosecond. */
static void pairs_that_cannot_be_tell_nothing(void **state)
{
	struct frequency *f;
	struct run r;

	(void)state;
	solve_turns(0, 20, 4, &f, &r);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	frequency_destroy(f);
	run_deinit(&r);
}

/* Two loops, one after the other, which nobody saw the end of: one tells nothing of the other. */
static void see_two_loops(struct run *r, struct pace *pace, uint64_t turns)
{
	const struct flow *f;

	assemble(".globl two\n.type two, @function\ntwo:\n"
		 "1: nop\n nop\n nop\n jne 1b\n"
		 "2: nop\n nop\n nop\n jne 2b\n ret\n");
	run_init(r, "two");
	f = r->ev.flow;
	r->ev.clock = true;
	r->ev.period = 1000;
	r->ev.samples[f->blocks[0].first] = 100;
	r->ev.samples[f->blocks[1].first] = 900;
	r->ev.total = 1000;
	for (uint32_t e = 0; e < f->graph.edges; e++)
		if (f->graph.edge[e].from == f->graph.edge[e].to)
			r->ev.edges[e] = 100000;
	*pace = (struct pace){
		.offset = f->blocks[0].start, .seen = 1000, .counted = 1000, .turns = turns};
	r->ev.paces = pace;
	r->ev.npaces = 1;
}

/* A scale that is told of the whole moves what anchors do not tell. */
static void told_scales_leave_anchors(void **state)
{
	struct frequency *f;
	struct run r;
	struct pace pace;
	struct err e = {0};
	double before;

	(void)state;
	see_two_loops(&r, &pace, 100000);
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	assert_int_equal(f->nwords, 1);
	assert_true(f->words[0].error > 1); /* of the other loop it says nothing */
	within(f->block[0].count, 100000, 0.05);
	before = f->block[1].count;
	frequency_rescale(f, &r.ev, 0.6, 0.25);
	within(f->block[0].count, 100000, 0.1);
	within(f->block[1].count, 0.6 * before, 0.1);
	frequency_destroy(f);
	run_deinit(&r);
}

/* But for those that are far from it, which cannot be right. */
static void told_scales_outdo_wrong_anchors(void **state)
{
	struct frequency *f;
	struct run r;
	struct pace pace;
	struct err e = {0};
	double before[2];

	(void)state;
	see_two_loops(&r, &pace, 100000);
	assert_int_equal(frequency_create(&r.ev, &f, &e), 0);
	before[0] = f->block[0].count;
	before[1] = f->block[1].count;
	frequency_rescale(f, &r.ev, 0.3, 0.25);
	within(f->block[0].count, 0.3 * before[0], 1e-9);
	within(f->block[1].count, 0.3 * before[1], 1e-9);
	frequency_destroy(f);
	run_deinit(&r);
}

static int tear_down(void **state)
{
	forget_built();
	return close_workshop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			recovers_frequencies_whatever_instructions_take, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			without_edges_nothing_is_certain, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(nothing_at_all, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(pairs_tell_the_scale, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			pairs_that_disagree_tell_nothing, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(short_stays_tell_nothing, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			pairs_that_cannot_be_tell_nothing, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			words_that_count_tell_the_scale, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			words_seen_for_a_while_tell_nothing, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			words_that_lose_turns_tell_nothing, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			told_scales_leave_anchors, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			told_scales_outdo_wrong_anchors, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(follows_what_was_seen, open_workshop, tear_down),
		cmocka_unit_test_setup_teardown(
			tables_are_narrowed_to_what_was_seen, open_workshop, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
