/* Procedures that are made by hand: a loop of four instructions that waits for its load. */
#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "base/err.h"
#include "base/mem.h"
#include "cmd/cfg_dot.h"
#include "cmd/why_view.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* mov (%rdi),%rax; add $8,%rdi; cmp %rsi,%rdi; jne back; ret; and a block that nothing runs */
static const uint8_t code[] = {0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x39, 0xf7, 0x75,
	0xf4, 0xc3, 0x31, 0xc0, 0xc3};
enum { START = 0x401000, INSNS = 7, BLOCKS = 3, EDGES = 8 };

struct scene {
	struct evidence evidence;
	struct frequency frequency;
	struct why why;
	struct why_view view;
	uint64_t samples[INSNS];
	struct why_insn insns[INSNS];
	struct why_cycles cycles[BLOCKS];
	struct estimate block[BLOCKS], edge[EDGES];
	struct why_stall stalls[2];
	uint32_t from[1];
	char *text;
	size_t size;
};

static int line_of(void *arg, uint64_t address, enum isa_syntax syntax, struct listing_line *out)
{
	static char text[256];

	(void)arg;
	if (address < START || address >= START + sizeof code)
		return -ENOENT;
	*out = (struct listing_line){.address = address, .text = text, .source = ""};
	isa_text(code + (address - START), sizeof code - (address - START), address, syntax, NULL,
		NULL, text, sizeof text);
	if (address < START + 12) {
		out->file = "/src/deep/loop.c";
		out->line = address == START ? 7 : 8;
		out->source = address == START ? "s += *p;" : "p++ \033[31m";
	}
	return 0;
}

static void set_flow(struct scene *sc)
{
	static const struct range range = {START, sizeof code};
	struct flow_source source = {.ranges = &range, .nranges = 1, .entry = START, .code = code};
	struct err e = {0};

	if (flow_create(&source, &sc->evidence.flow, &e))
		fail_msg("%s", e.text);
	assert_int_equal(sc->evidence.flow->ninsns, INSNS);
	assert_int_equal(sc->evidence.flow->nblocks, BLOCKS);
	assert_true(sc->evidence.flow->graph.edges <= EDGES);
}

/* A million rounds, of which the load waits 18 cycles each. */
static void set_figures(struct scene *sc)
{
	const struct flow *f = sc->evidence.flow;

	for (uint32_t e = 0; e < f->graph.edges; e++) {
		bool back = f->graph.edge[e].from == 0 && f->graph.edge[e].to == 0;
		bool dead = f->graph.edge[e].from == 2 || f->graph.edge[e].to == 2;

		sc->edge[e] = (struct estimate){back   ? 999900
						: dead ? 0
						       : 100,
			90, 1.1e6, CONFIDENCE_MEDIUM};
	}
	sc->block[0] = (struct estimate){1e6, 9.5e5, 1.05e6, CONFIDENCE_HIGH};
	sc->block[1] = (struct estimate){100, 90, 110, CONFIDENCE_LOW};
	for (uint32_t i = 0; i < INSNS; i++)
		sc->insns[i] = (struct why_insn){.count = i < 4   ? 1e6
							  : i < 5 ? 100
								  : 0,
			.gone = NAN,
			.line_gone = NAN,
			.on = GRAPH_NONE};
	sc->insns[0].samples = 900;
	sc->insns[0].cpi = 18;
	sc->insns[0].cpi_low = 16;
	sc->insns[0].cpi_high = 20;
	sc->insns[0].min_cpi = 0.25;
	sc->insns[0].stall = 17.75;
	sc->insns[0].nstalls = 2;
	sc->stalls[0] = (struct why_stall){CULPRIT_DCACHE, 12, 17.75, 0, 1};
	sc->stalls[1] = (struct why_stall){CULPRIT_DTLB, 0, 5.75, 0, 0};
	sc->insns[1].samples = 100;
	sc->insns[1].cpi = sc->insns[1].cpi_low = 2;
	sc->insns[1].stopped = 1.75;
	sc->insns[1].cause = WHY_OPERAND;
	sc->insns[1].on = 0;
	sc->cycles[0] = (struct why_cycles){2.48, 43.08, 39.6, 47.2};
	sc->cycles[1] = (struct why_cycles){1, 1, 1, 1};
}

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);

	set_flow(sc);
	set_figures(sc);
	sc->evidence.samples = sc->samples;
	sc->evidence.total = 1010;
	sc->frequency = (struct frequency){.flow = sc->evidence.flow,
		.scale = FREQUENCY_KNOWN,
		.scale_low = 0.92,
		.scale_high = 1.08,
		.block = sc->block,
		.edge = sc->edge,
		.converged = true};
	sc->why = (struct why){.evidence = &sc->evidence,
		.frequency = &sc->frequency,
		.machine = {.model = model_by_name("icelake"), .known = true},
		.insns = sc->insns,
		.blocks = sc->cycles,
		.cpi = {0.62, 10.77, 9.9, 11.8},
		.stalls = sc->stalls,
		.nstalls = 2,
		.from = sc->from,
		.nfrom = 1,
		.sample = 2e4,
		.cycles = 2e7,
		.assumed = 1,
		.summary = {.execution = 0.05,
			.cause = {[WHY_OPERAND] = 0.1},
			.dynamic = 0.8,
			.culprit = {[CULPRIT_DCACHE] = {0.55, 0.8}, [CULPRIT_DTLB] = {0, 0.25}},
			.unexplained = 0.07,
			.unexplained_gain = -0.03,
			.sampling_error = 0.01}};
	sc->view = (struct why_view){.why = &sc->why,
		.procedure = "walk",
		.image = "/opt/walk",
		.start = START,
		.event = "cpu-clock",
		.all = 2020,
		.line = line_of};
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	flow_destroy(sc->evidence.flow);
	free(sc->text);
	free(sc);
	return 0;
}

static void make_relative(struct scene *sc)
{
	sc->frequency.scale = FREQUENCY_RELATIVE;
	sc->why.cpi.actual = NAN;
	sc->why.cpi.high = INFINITY;
	for (int b = 0; b < BLOCKS; b++)
		sc->cycles[b].actual = NAN;
	for (int i = 0; i < INSNS; i++)
		sc->insns[i].cpi = NAN;
}

static const char *shown(struct scene *sc, void (*show)(const struct why_view *, FILE *))
{
	FILE *out;

	free(sc->text);
	sc->text = NULL;
	out = open_memstream(&sc->text, &sc->size);
	show(&sc->view, out);
	fclose(out);
	return sc->text;
}

#define has(text, part)                                           \
	do {                                                      \
		if (!strstr(text, part))                          \
			fail_msg("no \"%s\" in\n%s", part, text); \
	} while (0)
#define has_not(text, part)                                    \
	do {                                                   \
		if (strstr(text, part))                        \
			fail_msg("\"%s\" in\n%s", part, text); \
	} while (0)

static void counts_and_cycles_in_few_digits(void **state)
{
	char text[16], range[40];

	(void)state;
	assert_string_equal(why_count(0, text), "0");
	assert_string_equal(why_count(0.25, text), "0.25");
	assert_string_equal(why_count(871, text), "871");
	assert_string_equal(why_count(999.6, text), "1.00k");
	assert_string_equal(why_count(12345, text), "12.3k");
	assert_string_equal(why_count(999600, text), "1.00M");
	assert_string_equal(why_count(1.21e9, text), "1.21G");
	assert_string_equal(why_count(NAN, text), "-");
	assert_string_equal(why_count(INFINITY, text), "-");
	assert_string_equal(why_count(1e18, text), "1.00E");
	assert_string_equal(why_count(1e300, text), "1e+300");
	assert_string_equal(why_cy(0.25, text), "0.25cy");
	assert_string_equal(why_cy(18, text), "18.0cy");
	assert_string_equal(why_cy(412.3, text), "412cy");
	assert_string_equal(why_cy(NAN, text), "-");
	assert_string_equal(why_range(12, 16.2, range), "12.0-16.2cy");
	assert_string_equal(why_range(3, 3.001, range), "3.00cy");
	assert_string_equal(why_range(3, NAN, range), "-");
}

static void known_scale(void **state)
{
	struct scene *sc = *state;
	const char *text;

	sc->insns[0].gone = 0.125;
	text = shown(sc, why_view_print);
	has(text, "cpu-clock = 1010 (50.00% of all) in walk\n/opt/walk at 0x401000\n");
	has(text, "best case    0.62 CPI on ");
	has(text, "actual      10.77 CPI (9.90 to 11.80)");
	has(text, "within a factor of 0.92 to 1.08");
	has(text, "(of the 1000 samples that are on instructions)");
	has(text, "*** 401000: 4 instructions, 1.00M times (high: 950k to 1.05M), in loop 401000, 100.00% of");
	has(text, "best case 2.48cy = 0.62 CPI, actual 43.1cy = 10.77 CPI (9.90 to 11.80)");
	has(text, "loop.c:7 s += *p;\n");
	has(text, "12.0-17.8cy        d  D-cache miss (12.5% were gone)\n");
	has(text, "0.00-5.75cy        D  DTLB miss\n");
	has(text, " 900   90.00%         18.0cy   401000  mov    (%rdi),%rax\n");
	has(text, "1.75cy        a  operand of another instruction: that at 401000\n");
	has(text, "jne    401000  taken 100.0%\n");
	has(text, "*** 1 block, 2 instructions: no samples, seldom or never run (--all)");
	has_not(text, "xor");
	has_not(text, ">");
	has_not(text, "\033");
}

static void summary_adds_up(void **state)
{
	struct scene *sc = *state;
	const char *text = shown(sc, why_view_print);

	has(text, "D-cache miss                       55.0% to  80.0%\n");
	has(text, "unexplained gain                   -3.0%\n");
	has(text, "  subtotal dynamic                                 84.0%\n");
	has(text, "  subtotal static                                  10.0%\n");
	has(text, "total stall                                        94.0%\n");
	has(text, "execution                                           5.0%\n");
	has(text, "sampling error                                      1.0%\n");
	has(text, "total                                             100.0%\n");
	has_not(text, "4K aliasing");
}

static void relative_scale_claims_no_cpi(void **state)
{
	struct scene *sc = *state;
	const char *text;

	make_relative(sc);
	text = shown(sc, why_view_print);
	has(text, "the scale of the counts is not known");
	has(text, "actual     > 5.00 CPI\n");
	has(text, "<1.00M times");
	has(text, "actual >20.0cy = 5.00 CPI\n");
	has(text, ">18.0cy   401000");
	has(text, " 12.0-17.8cy        d");
	has_not(text, "11.80");
	text = shown(sc, why_view_json);
	has(text, "\"scale\": \"relative\"");
	has(text, "\"actual_cpi\": null");
	has(text, "\"cpi_high\": null");
}

static void everything_and_without_source(void **state)
{
	struct scene *sc = *state;
	const char *text;

	sc->view.everything = sc->view.no_source = true;
	sc->view.syntax = ISA_INTEL;
	sc->view.width = 200;
	text = shown(sc, why_view_print);
	has(text, "xor    eax,eax");
	has(text, "mov    rax,QWORD PTR [rdi]");
	has(text, "100.00% of the time; best case");
	has_not(text, "loop.c");
	has_not(text, "--all");
}

static void json_has_blocks_and_edges(void **state)
{
	struct scene *sc = *state;
	const char *text = shown(sc, why_view_json);

	has(text, "\"start\": \"0x401000\"");
	has(text,
		"{\"culprit\": \"dcache\", \"min\": 12, \"max\": 17.75, \"from\": [\"0x401000\"]}");
	has(text,
		"\"static\": [{\"cause\": \"operand\", \"cycles\": 1.75, \"from\": \"0x401000\"}]");
	has(text, "{\"from\": \"0x401000\", \"to\": \"0x401000\", \"kind\": \"jump\", \"count\": "
		  "999900");
	has(text, "\"to\": null, \"kind\": \"return\"");
}

static void dot(const struct why_view *v, FILE *out)
{
	cfg_dot(v, false, out);
}

static void graph_shows_time_and_confidence(void **state)
{
	struct scene *sc = *state;
	const char *text;

	sc->view.procedure = "operator\"\"_x<\\n>";
	text = shown(sc, dot);
	has(text, "operator\\\"\\\"_x<\\\\n>");
	has(text, "b0 [id=\"block-0x401000\", label=\"401000..40100b  100.00% (1000 samples)\\l"
		  "1.00M times (high), CPI 10.77");
	has(text, "fillcolor=\"#ff6950\"");
	has(text, "    900  401000  mov    (%rdi),%rax\\l");
	has(text, "b0 -> b0 [id=\"edge-0x401000-0x401000\", label=\" taken 1.00M 100%\"");
	has(text, "style=dashed, color=blue3");
	has(text, "entry -> b0");
	has(text, "b1 -> exit");
	has(text, "1 block that seldom or never ran left out");
	has_not(text, "b2 [");
	sc->view.everything = true;
	has(shown(sc, dot), "b2 [");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_cycles_in_few_digits),
		TEST(known_scale),
		TEST(summary_adds_up),
		TEST(relative_scale_claims_no_cpi),
		TEST(everything_and_without_source),
		TEST(json_has_blocks_and_edges),
		TEST(graph_shows_time_and_confidence),
	};

	setenv("NO_COLOR", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
