/*
 * Random snippets at random places, run by the machine and compared with what their statements
 * mean. SEED and TRIALS make other and longer runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "edit/native.h"
#include "edit/snippet.h"
#include "edit/snippet_internal.h"
#include "isa/dice.h"
#include "isa/form.h"

NATIVE_DEFINE

#define WORDS   16
#define STACK   128    /* words; rsp is in the middle */
#define ROUTINE 0x640  /* its offset in the run time */
#define CLOCK   15     /* the word that only the clock is kept in */
#define EXITS   3      /* the end, and the two that a2 and a3 name */
#define PART    0x2000 /* where what lies apart is, in the code */

/* Near each other, for displacements have 32 bits. */
static struct region {
	uint8_t code[0x4000];
	uint8_t way_out[EXITS][32];
	uint8_t routine[64];
	uint64_t words[WORDS];
	uint8_t left_by;
} * region;

static __thread uint64_t thread_words[WORDS];
static uint64_t stack[STACK];
static struct dice dice;

/* What there is before and after. */
struct world {
	uint64_t words[WORDS], thread_words[WORDS], stack[STACK];
	uint64_t reg[SNIPPET_REGISTERS]; /* of the snippet */
	unsigned left_by;
	uint64_t started; /* by the clock */
	bool clock;       /* was read */
};

/* ---- text ---- */

/* t4 is the address of the words, t5 and v1 are small numbers; nobody changes these. */
static const char *some_memory(void)
{
	static char text[32];
	unsigned n = (unsigned)dice_below(&dice, 8);

	switch (dice_below(&dice, 6)) {
	case 0:
		snprintf(text, sizeof text, "[a0 + %u]", 8 * n);
		break;
	case 1:
		snprintf(text, sizeof text, "[a0 + t5*8 + %u]", 8 * n);
		break;
	case 2:
		snprintf(text, sizeof text, "[a0 + v1*8]");
		break;
	case 3:
		snprintf(text, sizeof text, "[t4 + t5*%u + a6]", n & 1 ? 8 : 4 << (n & 1 ? 0 : 1));
		break;
	case 4:
		snprintf(text, sizeof text, "tls[a1 + %u]", 8 * n);
		break;
	default:
		snprintf(text, sizeof text, "tls[v1*8 + a1]");
		break;
	}
	return text;
}

static const char *some_register(void)
{
	static const char *const names[] = {"t0", "t1", "t2", "t3", "v0"};

	return names[dice_below(&dice, 5)];
}

static const char *some_value(bool memory)
{
	static const char *const values[] = {"0", "1", "-1", "77", "a4", "a5", "0x123456789abc",
		"-2147483648", "t4", "t5", "v1"};

	if (memory && dice_chance(&dice, 30))
		return some_memory();
	if (memory && dice_chance(&dice, 5))
		return "&[a0 + 16]";
	return dice_chance(&dice, 50) ? some_register() : values[dice_below(&dice, 11)];
}

/* Values of any kind; the result of less than two is not known. */
static void add_call(struct buf *b)
{
	const char *reg = some_register();
	char first[32];

	snprintf(first, sizeof first, "%s", some_value(true));
	switch (dice_below(&dice, 4)) {
	case 0:
		buf_printf(b, "; call a7()");
		return;
	case 1:
		buf_printf(b, "; call a7(%s)", first);
		return;
	case 2:
		buf_printf(b, "; %s = call a7(%s); %s = 6", reg, first, reg);
		return;
	default:
		buf_printf(b, "; %s = call a7(%s, %s)", reg, first, some_value(true));
	}
}

/* What the clock says nobody knows, but it does not go back; then everything is known again. */
static void add_clock(struct buf *b)
{
	const char *reg = some_register();

	buf_printf(b, "; %s = rdtsc; [a0 + %d] = %s; %s = 5", reg, 8 * CLOCK, reg, reg);
}

/* Also to what lies apart, from what does not. */
static unsigned targets_known = 3;

static void add_statement(struct buf *b)
{
	static const char *const signs[] = {" = ", " += ", " -= "};
	static const char *const tests[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
	static const char *const targets[] = {"a2", "a3", "end", "part"};
	bool memory = dice_chance(&dice, 50);
	char left[32];

	snprintf(left, sizeof left, "%s", memory ? some_memory() : some_register());
	if (memory && dice_chance(&dice, 20))
		buf_printf(b, "; atomic %s += %s", left, some_value(false));
	else
		buf_printf(b, "; %s%s%s", left, signs[dice_below(&dice, 3)], some_value(!memory));
	if (dice_chance(&dice, 20)) /* what the sum before may tell */
		buf_printf(b, "; if %s%s0 goto %s", left, tests[dice_below(&dice, 6)],
			targets[dice_below(&dice, targets_known)]);
	if (dice_chance(&dice, 20))
		buf_printf(b, "; if %s%s%s goto %s", some_register(), tests[dice_below(&dice, 6)],
			some_value(true), targets[dice_below(&dice, targets_known)]);
	if (dice_chance(&dice, 2))
		buf_printf(b, "; goto %s", targets[dice_below(&dice, targets_known)]);
	if (dice_chance(&dice, 15))
		add_call(b);
	if (dice_chance(&dice, 10))
		add_clock(b);
}

static unsigned statements(const struct buf *b)
{
	unsigned n = 1;

	for (size_t i = 0; i < b->n; i++)
		n += b->p[i] == ';';
	return n;
}

/* The clock before all else, and what is made of it, as where metrics are read. */
static void begin_with_clock(struct buf *b)
{
	const char *reg = some_register();

	buf_printf(b, "%s = rdtsc; [a0 + %d] = %s; %s = 5; ", reg, 8 * CLOCK, reg, reg);
}

static void add_statements(struct buf *b)
{
	unsigned most = SNIPPET_STATEMENTS - (targets_known == 4 ? 16 : 3);

	for (uint64_t n = 1 + dice_below(&dice, 6); n && statements(b) + 7 < most; n--)
		add_statement(b);
}

static void make_text(struct buf *b)
{
	static const char *const sums[] = {"t0 = 5; t0 -= v1; v1 = t0",
		"t1 = 9; t0 = t1; t0 -= v1; [a0] += 1; [a0 + 8] += t0; v1 = t1; v0 = a5",
		"t0 = 7; t0 -= [a0 + 8]; [a0 + 16] += t0"};

	static const char *const counters[] = {"[a0] += 1", "atomic [a0] += 1", "v0 += a4",
		"[a0 + v1*8] += 1; v0 = a5", "[a0] -= 1; if [a0] < 0 goto a2"};

	b->n = 0;
	if (dice_chance(&dice, 30)) {
		buf_printf(b, "%s", counters[dice_below(&dice, 5)]);
		return;
	}
	if (dice_chance(&dice, 20)) {
		begin_with_clock(b);
		buf_printf(b, "%s", sums[dice_below(&dice, 3)]);
		return;
	}
	if (dice_chance(&dice, 20))
		begin_with_clock(b);
	buf_printf(b, "t0 = 3; t1 = a4; t2 = a5; t3 = -9; t4 = &[a0]; t5 = 2");
	targets_known = dice_chance(&dice, 50) ? 4 : 3;
	add_statements(b);
	buf_printf(b, "; end:");
	if (targets_known == 3)
		return;
	targets_known = 3;
	buf_printf(b, " apart; part: t0 = 1");
	add_statements(b);
	buf_printf(b, "; goto end");
}

/* ---- meaning ---- */

static uint64_t *place_of(struct world *w, const struct operand *o, uint64_t address)
{
	uint64_t in_thread = (uint64_t)thread_words - (uint64_t)__builtin_thread_pointer();

	if (o->space == SPACE_THREAD)
		return &w->thread_words[(address - in_thread) / 8];
	return &w->words[(address - (uint64_t)region->words) / 8];
}

static uint64_t sum(const struct world *w, const struct operand *o, const uint64_t *arguments)
{
	uint64_t n = (uint64_t)o->number;

	for (unsigned i = 0; i < o->narguments; i++)
		n += arguments[o->argument[i]];
	if (o->type == OPERAND_CONSTANT)
		return n;
	if (o->base != SNIPPET_NO)
		n += w->reg[o->base];
	if (o->index != SNIPPET_NO)
		n += w->reg[o->index] * o->scale;
	return n;
}

static uint64_t value(struct world *w, const struct operand *o, const uint64_t *arguments)
{
	if (o->type == OPERAND_REGISTER)
		return w->reg[o->base];
	if (o->type == OPERAND_MEMORY)
		return *place_of(w, o, sum(w, o, arguments));
	return sum(w, o, arguments);
}

static bool holds(uint8_t condition, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (condition) {
	case 4:
		return x == y;
	case 5:
		return x != y;
	case 12:
		return x < y;
	case 13:
		return x >= y;
	case 14:
		return x <= y;
	default:
		return x > y;
	}
}

static void assign(struct world *w, const struct statement *s, const uint64_t *arguments)
{
	uint64_t right = value(w, &s->right, arguments);
	uint64_t *to = s->left.type == OPERAND_REGISTER
			       ? &w->reg[s->left.base]
			       : place_of(w, &s->left, sum(w, &s->left, arguments));

	if (s->type == STATEMENT_SET)
		*to = right;
	else
		*to += s->type == STATEMENT_ADD ? right : -right;
}

/* What the routine makes of its values. */
static uint64_t routine_of(uint64_t first, uint64_t second)
{
	return 4 * first + second + 1;
}

static void call(struct world *w, const struct statement *s, const uint64_t *arguments)
{
	if (s->left.type != OPERAND_NONE && s->second.type != OPERAND_NONE)
		w->reg[s->left.base] =
			routine_of(value(w, &s->right, arguments), value(w, &s->second, arguments));
}

/* A sum that overflows tells its sign by the flags, as if it were not compared. */
static void mean(struct world *w, const struct snippet *s, const uint64_t *arguments)
{
	for (unsigned i = 0; i < s->n;) {
		const struct statement *t = &s->statement[i++];
		if (t->type < STATEMENT_IF) {
			assign(w, t, arguments);
			continue;
		}
		if (t->type == STATEMENT_APART)
			return;
		if (t->type == STATEMENT_CALL) {
			call(w, t, arguments);
			continue;
		}
		if (t->type == STATEMENT_CLOCK) {
			w->reg[t->left.base] = w->started;
			w->clock = true;
			continue;
		}
		if (t->type == STATEMENT_IF && !holds(t->condition, value(w, &t->left, arguments),
						       value(w, &t->right, arguments)))
			continue;
		if (t->argument != SNIPPET_NO) {
			w->left_by = t->argument - 1u;
			return;
		}
		i = t->target;
	}
}

/* ---- machine ---- */

static void make_ways_out(void)
{
	for (unsigned i = 0; i < EXITS; i++) {
		uint8_t *p = region->way_out[i];
		int32_t by = (int32_t)(&region->left_by - (p + 7));
		uint64_t back = (uint64_t)native_back;
		memcpy(p, "\xc6\x05", 2); /* movb $i, left_by(%rip) */
		memcpy(p + 2, &by, 4);
		p[6] = (uint8_t)i;
		memcpy(p + 7, "\xff\x25\0\0\0\0", 6); /* jmp *(%rip) */
		memcpy(p + 13, &back, 8);
	}
}

/* As those of the run time: the values are on the stack, and nothing changes but the first. */
extern const uint8_t routine_start[], routine_end[];
__asm__("routine_start:\n"
	"push %rax\n push %rcx\n mov 24(%rsp), %rax\n mov 32(%rsp), %rcx\n"
	"lea 1(%rcx,%rax,4), %rax\n mov %rax, 24(%rsp)\n pop %rcx\n pop %rax\n ret\n"
	"routine_end:\n");

static uint64_t target_of(const struct snippet_code *c, const struct snippet_fixup *x)
{
	uint64_t code = (uint64_t)region->code;

	if (x->calls)
		return (uint64_t)region->routine;
	if (!x->across)
		return x->target;
	return x->offset < c->apart ? code + PART + x->target - c->apart : code + x->target;
}

static void install(const struct snippet_code *c)
{
	uint8_t *end = region->code + c->apart;
	int32_t by;

	assert_true(c->bytes.n + 8 < PART);
	memcpy(region->code, c->bytes.p, c->apart);
	memcpy(region->code + PART, c->bytes.p + c->apart, c->bytes.n - c->apart);
	for (size_t i = 0; i < c->fixups.n; i++) {
		const struct snippet_fixup *x = &c->fixups.p[i];
		uint8_t *part = region->code + (x->offset < c->apart ? 0 : PART - c->apart);
		assert_true(!x->calls || x->target == ROUTINE);
		by = (int32_t)(target_of(c, x) - (uint64_t)(part + x->end));
		memcpy(part + x->offset, &by, 4);
	}
	*end = 0xe9;
	by = (int32_t)(region->way_out[0] - (end + 5));
	memcpy(end + 1, &by, 4);
}

static struct snippet_place some_place(void)
{
	static const uint8_t held[] = {3, 7, 8, 12, 13, 14, 15};
	static const uint8_t zones[] = {0, 0, 8, 20, 64, 112, 120, 127, 128, 128};
	struct snippet_place p = {
		.red_zone = zones[dice_below(&dice, 10)], .fixed = dice_below(&dice, 2)};
	uint32_t often = (uint32_t)(dice_roll(&dice) | dice_roll(&dice) | dice_roll(&dice));

	p.live = (dice_chance(&dice, 50) ? often : (uint32_t)dice_roll(&dice)) & LIVE_ALL;
	if (dice_chance(&dice, 30))
		p.live |= REGS_ALL;
	if (dice_chance(&dice, 30))
		p.live &= ~LIVE_FLAGS(FORM_FLAGS);
	unsigned first = (unsigned)dice_below(&dice, sizeof held);

	_Static_assert(sizeof held >= SNIPPET_VARIABLES, "each variable has its own");
	for (unsigned i = 0; i < SNIPPET_VARIABLES; i++) {
		p.variable[i].reg =
			dice_chance(&dice, 50) ? held[(first + i) % sizeof held] : REG_NONE;
		if (p.variable[i].reg != REG_NONE)
			p.live |= 1u << p.variable[i].reg;
		p.variable[i].slot = (int32_t)(8 * (SNIPPET_VARIABLES * dice_below(&dice, 5) + i));
	}
	return p;
}

static uint64_t in_rflags(uint32_t live)
{
	static const uint64_t bits[] = {1, 4, 0x10, 0x40, 0x80, 0x800};
	uint64_t flags = 0;

	for (unsigned i = 0; i < 6; i++)
		flags |= live & LIVE_FLAGS(1 << i) ? bits[i] : 0;
	return flags;
}

static void set_up(struct world *w, const struct snippet_place *p)
{
	for (unsigned i = 0; i < WORDS; i++) {
		w->words[i] = dice_chance(&dice, 30) ? dice_below(&dice, 3) - 1 : dice_roll(&dice);
		w->thread_words[i] = dice_roll(&dice);
	}
	for (unsigned i = 0; i < STACK; i++)
		w->stack[i] = dice_roll(&dice);
	for (unsigned i = 0; i < 16; i++)
		native_in.r[i] = dice_roll(&dice);
	native_in.flags = (dice_roll(&dice) & in_rflags(LIVE_ALL)) | 0x202;
	native_in.r[REG_RSP] = (uint64_t)&stack[STACK / 2];
	for (unsigned i = 0; i < SNIPPET_VARIABLES; i++) {
		uint64_t v = i ? dice_below(&dice, 8) : dice_roll(&dice);
		w->reg[SNIPPET_VARIABLE0 + i] = v;
		if (p->variable[i].reg != REG_NONE)
			native_in.r[p->variable[i].reg] = v;
		else
			w->stack[STACK / 2 + p->variable[i].slot / 8] = v;
	}
	memcpy(region->words, w->words, sizeof w->words);
	memcpy(thread_words, w->thread_words, sizeof w->thread_words);
	memcpy(stack, w->stack, sizeof w->stack);
}

/* Variables of the frame are compared as memory, those in registers by name. */
static const char *difference(struct world *w, const struct snippet_place *p)
{
	uint32_t must = (p->live & REGS_ALL) | 1u << REG_RSP | 1u << REG_RBP;
	size_t used = (p->red_zone + 7u) / 8, from = STACK / 2 - used;

	for (unsigned i = 0; i < SNIPPET_VARIABLES; i++) {
		uint64_t v = w->reg[SNIPPET_VARIABLE0 + i];
		if (p->variable[i].reg == REG_NONE) {
			w->stack[STACK / 2 + p->variable[i].slot / 8] = v;
			continue;
		}
		must &= ~(1u << p->variable[i].reg);
		if (native_out.r[p->variable[i].reg] != v)
			return "a variable";
	}
	for (unsigned i = 0; i < 16; i++)
		if (must & 1u << i && native_out.r[i] != native_in.r[i])
			return "a register";
	if ((native_in.flags ^ native_out.flags) & in_rflags(p->live))
		return "a flag";
	if (w->clock && region->words[CLOCK] - w->words[CLOCK] > __rdtsc() - w->words[CLOCK])
		return "the clock";
	if (w->clock)
		w->words[CLOCK] = region->words[CLOCK];
	if (memcmp(region->words, w->words, sizeof w->words))
		return "memory";
	if (memcmp(thread_words, w->thread_words, sizeof w->thread_words))
		return "the thread's memory";
	if (memcmp(stack + from, w->stack + from, (STACK - from) * 8))
		return "the stack";
	return region->left_by == w->left_by ? NULL : "the way out";
}

static void try_one(const char *text, struct snippet_code *code)
{
	const uint64_t arguments[SNIPPET_ARGUMENTS] = {(uint64_t)region->words,
		(uint64_t)thread_words - (uint64_t)__builtin_thread_pointer(),
		(uint64_t)region->way_out[1], (uint64_t)region->way_out[2],
		dice_below(&dice, 200) - 100, dice_roll(&dice), 8 * dice_below(&dice, 8), ROUTINE};
	struct snippet_place place = some_place();
	struct world w = {0};
	struct snippet *s;
	struct err e = {0};

	if (snippet_create(text, &s, &e))
		fail_msg("%s", e.text);
	assert_int_equal(snippet_lower(s, arguments, &place, code), 0);
	install(code);
	set_up(&w, &place);
	native_code = region->code;
	w.started = __rdtsc();
	native_enter();
	mean(&w, s, arguments);
	const char *what = difference(&w, &place);
	if (what)
		fail_msg("%s is wrong after \"%s\", live 0x%x, red zone %u", what, text, place.live,
			place.red_zone);
	snippet_destroy(s);
}

static void test_random(void **state)
{
	struct snippet_code code = {0};
	struct buf text = {0};

	(void)state;
	dice.state = dice_option("SEED", 1);
	region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0); /* as files at fixed addresses */
	assert_true(region != MAP_FAILED);
	make_ways_out();
	memcpy(region->routine, routine_start, (size_t)(routine_end - routine_start));
	for (uint64_t n = dice_option("TRIALS", 20000); n; n--) {
		make_text(&text);
		try_one(buf_cstr(&text), &code);
	}
	munmap(region, sizeof *region);
	buf_deinit(&text);
	snippet_code_deinit(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
