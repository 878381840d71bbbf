/*
 * Jump tables against the compilers' own assembly: every table that stands in it must be found,
 * with its address, its length and its targets. CULPRIT_ALL_LEVELS in the environment makes it all
 * levels.
 */
#include <ctype.h>

#include "base/buf.h"
#include "base/vec.h"
#include "flow/assembled.h"
#include "flow/switches.h"

struct label {
	char name[64];
	uint64_t address;
};

/* A table as the assembly has it. */
struct truth {
	uint64_t address;
	VEC(uint64_t) targets;
};

static VEC(struct label) labels;
static VEC(struct truth) truths;

static void read_labels(void)
{
	char line[512];
	FILE *f = fopen(in_workshop("nm.txt"), "r");
	assert_non_null(f);
	labels.n = 0;
	while (fgets(line, sizeof line, f)) {
		struct label l;
		unsigned long long address;
		if (sscanf(line, "%llx %*c %63s", &address, l.name) != 2)
			continue;
		l.address = address;
		*vec_add(&labels) = l;
	}
	fclose(f);
}

static uint64_t address_of(const char *name, size_t n)
{
	vec_each (l, &labels) {
		if (strlen(l->name) == n && !memcmp(l->name, name, n))
			return l->address;
	}
	return 0;
}

static void drop_truths(void)
{
	vec_each (t, &truths)
		vec_deinit(&t->targets);
	truths.n = 0;
}

/* Entries are ".long .L5-.L3" or ".quad .L5", below the label of the table. */
static void read_truths(void)
{
	char line[512], label[128] = "";
	bool open = false;
	FILE *f = fopen(in_workshop("code.s"), "r");
	assert_non_null(f);
	drop_truths();
	while (fgets(line, sizeof line, f)) {
		char directive[16], entry[128];
		if (line[0] == '.' && strchr(line, ':')) {
			snprintf(label, sizeof label, "%.*s", (int)strcspn(line, ":"), line);
			open = false;
		} else if (sscanf(line, " %15s %127s", directive, entry) == 2 &&
			   (!strcmp(directive, ".long") || !strcmp(directive, ".quad")) &&
			   (!strncmp(entry, ".L", 2)) && label[0]) {
			if (!strncmp(entry, ".LF", 3) || !strncmp(label, ".LL", 3) ||
				!strncmp(label, ".LF", 3) || !strncmp(label, ".LEF", 4))
				continue;
			if (!open)
				*vec_add(&truths) =
					(struct truth){.address = address_of(label, strlen(label))};
			open = true;
			*vec_add(&truths.p[truths.n - 1].targets) =
				address_of(entry, strcspn(entry, "-+ \t"));
		} else if (isspace((unsigned char)line[0]) && line[1] != '.') {
			label[0] = 0; /* code */
		}
	}
	fclose(f);
}

static void build(const char *compiler, const char *level, bool pic, const char *text)
{
	write_text("code.c", text);
	shell("%s %s %s -w -fno-asynchronous-unwind-tables -S -o code.s code.c", compiler, level,
		pic ? "-fPIC" : "-fno-pic -fno-pie");
	shell("sed -i /addrsig/d code.s && as -L -o code.o code.s"); /* clang's own */
	shell("%s -o code.so code.o -Wl,--discard-none -Wl,--unresolved-symbols=ignore-all "
	      "-nostdlib -nostartfiles -Wl,-e,0 -Wl,-z,noexecstack 2>/dev/null",
		pic ? "gcc -shared" : "gcc -no-pie -static");
	shell("nm code.so > nm.txt");
	read_labels();
	read_truths();
	open_built("code.so");
}

/* The first entries may be missing: a check before may have ruled them out. */
static bool is_of(const struct flow_jump *j, const struct truth *t)
{
	return j->state == FLOW_JUMP_PROVED && j->table >= t->address &&
	       j->table - t->address < t->targets.n * j->width;
}

static bool same_targets(const struct flow *f, const struct flow_jump *j, const struct truth *t)
{
	uint64_t skipped = (j->table - t->address) / j->width;
	uint32_t hit = 0;

	for (uint32_t i = 0; i < j->targets; i++) {
		uint64_t start = f->blocks[f->targets[j->first_target + i]].start;
		bool found = false;
		vec_each (a, &t->targets)
			found |= *a == start;
		hit += found;
	}
	for (size_t i = skipped; i < t->targets.n; i++) {
		uint64_t target = t->targets.p[i];
		uint32_t k = flow_block_at(f, target);
		if (k == GRAPH_NONE || f->blocks[k].start != target ||
			edge_between(f, j->block, k) != FLOW_EDGE_TABLE)
			return false;
	}
	return hit == j->targets && j->entries + skipped == t->targets.n;
}

/* How many tables of the assembly were found and proved, in any of the procedures. */
static uint32_t count_proved(uint32_t *jumps, uint32_t *unresolved)
{
	const struct procedure *ps;
	size_t n = image_procedures(built, &ps);
	VEC(uint64_t) seen = {0};

	*jumps = *unresolved = 0;
	for (size_t i = 0; i < n; i++) {
		struct flow *f;
		assert_int_equal(program_flow(program, &ps[i], &f, NULL), 0);
		for (uint32_t k = 0; k < f->njumps; k++) {
			const struct flow_jump *j = &f->jumps[k];
			bool counted = false;
			*jumps += j->state != FLOW_JUMP_TAIL;
			*unresolved += j->state == FLOW_JUMP_UNRESOLVED;
			vec_each (t, &truths) {
				if (!is_of(j, t))
					continue;
				if (!same_targets(f, j, t))
					fail_msg("%s: table at 0x%llx is not as compiled",
						ps[i].name, (unsigned long long)j->table);
				vec_each (s, &seen)
					counted |= *s == t->address;
				if (!counted)
					*vec_add(&seen) = t->address;
			}
		}
		flow_destroy(f);
	}
	uint32_t proved = (uint32_t)seen.n;
	vec_deinit(&seen);
	return proved;
}

static const char *const compilers[] = {"gcc", "clang"};
static const char *const levels[] = {"-O0", "-O2", "-O1", "-O3", "-Os"};

static void test_switches(void **state)
{
	(void)state;
	int n = getenv("CULPRIT_ALL_LEVELS") ? 5 : 2;
	for (int i = 0; i < 4 * n; i++) {
		const char *compiler = compilers[i & 1], *level = levels[i / 4];
		uint32_t jumps, unresolved;
		build(compiler, level, i & 2, switches);
		uint32_t proved = count_proved(&jumps, &unresolved);
		if (getenv("CULPRIT_ALL_LEVELS"))
			print_message("%s %s %s: %u tables, %u jumps, %u proved\n", compiler, level,
				i & 2 ? "PIC" : "fixed", (unsigned)truths.n, jumps, proved);
		if (truths.n < 5 || proved != truths.n || unresolved)
			fail_msg("%s %s pic %d: %u of %u tables proved, %u jumps unresolved",
				compiler, level, (i & 2) != 0, proved, (unsigned)truths.n,
				unresolved);
	}
}

/*
 * A masked index may be proved, unless labels that others might know keep it from being; one
 * without bound is found, but not proved.
 */
static void test_gotos(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		const char *compiler = compilers[i & 1];
		static const struct {
			const char *name;
			enum flow_jump_state state;
		} expected[] = {{"threaded", FLOW_JUMP_PROVED}, {"differences", FLOW_JUMP_PROVED},
			{"open", FLOW_JUMP_PROVED}};
		build(compiler, levels[i >> 2], i & 2, gotos);
		for (size_t k = 0; k < 3; k++) {
			struct flow *f = flow_of(expected[k].name);
			assert_true(f->njumps > 0);
			for (uint32_t j = 0; j < f->njumps; j++)
				if ((f->jumps[j].state != expected[k].state &&
					    f->jumps[j].state != FLOW_JUMP_UNPROVED) ||
					f->jumps[j].targets != 4)
					fail_msg("%s %s pic %d: %s is in state %d, %u targets",
						compiler, levels[i >> 2], (i & 2) != 0,
						expected[k].name, f->jumps[j].state,
						f->jumps[j].targets);
			flow_destroy(f);
		}
	}
}

/* Without the data there are no tables, and it shows. */
static void test_vanished(void **state)
{
	(void)state;
	build("gcc", "-O2", true, switches);
	const struct procedure *p = find_procedure("plain");
	struct buf code = {0};
	assert_int_equal(image_code(built, &p->ranges[0], &code), 0);
	struct flow_source source = {
		.ranges = p->ranges, .nranges = 1, .entry = p->start, .code = code.p};
	struct flow *f;
	assert_int_equal(flow_create(&source, &f, NULL), 0);
	assert_int_equal(f->njumps, 1);
	assert_int_not_equal(f->jumps[0].state, FLOW_JUMP_PROVED);
	assert_true(f->flags & FLOW_HAS_UNSEEN);
	flow_destroy(f);
	buf_deinit(&code);
}

#define FUNCTION(name, body)                                                                     \
	".globl " name "\n.type " name ", @function\n" name ":\n" body ".size " name ", .-" name \
	"\n"
#define TABLE(label)                                                                          \
	".section .rodata\n.balign 4\n" label ": .long 1f-" label ", 2f-" label ", 3f-" label \
	"\n.text\n"
#define TARGETS "1: mov $1, %eax\n ret\n2: mov $2, %eax\n ret\n3: mov $3, %eax\n ret\n9: ret\n"
#define DISPATCH(label) \
	"lea " label "(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n jmp *%rax\n"

static void expect_jump(const char *name, enum flow_jump_state jump_state)
{
	struct flow *f = flow_of(name);
	assert_int_equal(f->njumps, 1);
	if (f->jumps[0].state != jump_state)
		fail_msg("%s is in state %d", name, f->jumps[0].state);
	flow_destroy(f);
}

/* A bound on one path only is no proof, and neither is one on a value that was changed since. */
static void test_near_misses(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("good",
		TABLE("T0") "mov %edi, %eax\n cmp $2, %eax\n ja 9f\n" DISPATCH("T0")
			TARGETS) FUNCTION("one_path",
		TABLE("T1") "mov %edi, %eax\n test %esi, %esi\n"
			    " je 8f\n cmp $2, %eax\n ja 9f\n8: " DISPATCH("T1") TARGETS)
			FUNCTION("changed", TABLE("T2") "mov %edi, %eax\n cmp $2, %eax\n"
							" ja 9f\n add %esi, %eax\n" DISPATCH("T2")
								TARGETS) FUNCTION("wrong_way",
				TABLE("T3") "mov %edi, %eax\n cmp $2, %eax\n"
					    " jb 9f\n" DISPATCH("T3") TARGETS) FUNCTION("wide",
				TABLE("T4") "mov %rdi, %rax\n"
					    " cmp $2, %eax\n ja 9f\n" DISPATCH("T4") TARGETS)
				FUNCTION("too_far", TABLE("T5") "mov %edi, %eax\n cmp $9, %eax\n"
								" ja 9f\n" DISPATCH("T5") TARGETS));
	expect_jump("good", FLOW_JUMP_PROVED);
	expect_jump("one_path", FLOW_JUMP_UNPROVED);
	expect_jump("changed", FLOW_JUMP_UNPROVED);
	expect_jump("wrong_way", FLOW_JUMP_UNPROVED);
	expect_jump("wide", FLOW_JUMP_UNPROVED);
	expect_jump("too_far", FLOW_JUMP_UNPROVED);
}

/* A frame slot survives a call unless its address got out. */
static void test_spills(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("kept",
		TABLE("T0") "sub $24, %rsp\n lea T0(%rip), %rdx\n mov %rdx, 8(%rsp)\n call "
			    "work\n"
			    " cmp $2, %eax\n ja 9f\n mov %eax, %eax\n mov 8(%rsp), %rdx\n"
			    " movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n jmp "
			    "*%rax\n" TARGETS) FUNCTION("escaped",
		TABLE("T1") "sub $24, %rsp\n lea T1(%rip), %rdx\n mov %rdx, 8(%rsp)\n"
			    " lea 8(%rsp), %rdi\n call work\n"
			    " cmp $2, %eax\n ja 9f\n mov %eax, %eax\n mov 8(%rsp), %rdx\n"
			    " movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n jmp *%rax\n" TARGETS)
			FUNCTION("work", "ret\n"));
	expect_jump("kept", FLOW_JUMP_PROVED);
	expect_jump("escaped", FLOW_JUMP_UNRESOLVED);
}

/* A half of the function that nothing else shows is no other function, though the stack says so. */
static void test_leaving(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("partly",
		".section .rodata\n.balign 4\nT0: .long 7f-T0, 1f-T0, 2f-T0\n.text\n"
		"mov %edi, %eax\n cmp $2, %eax\n ja 9f\n" DISPATCH("T0") TARGETS) FUNCTION("wholly",
		".section .rodata\n.balign 4\nT1: .long 7f-T1, 8f-T1\n.text\n"
		"mov %edi, %eax\n cmp $1, %eax\n ja 9f\n" DISPATCH("T1") "9: ret\n")
			FUNCTION("work", "7: ret\n") FUNCTION("more", "8: ret\n"));
	expect_jump("partly", FLOW_JUMP_UNRESOLVED);
	expect_jump("wholly", FLOW_JUMP_TAIL);
}

#define OVER_CALL(table, callee)                                               \
	TABLE(table)                                                           \
	"lea " table "(%rip), %rsi\n call " callee "\n cmp $2, %eax\n ja 9f\n" \
	" mov %eax, %eax\n movslq (%rsi,%rax,4), %rax\n add %rsi, %rax\n jmp *%rax\n" TARGETS
#define LOCAL(name, body) \
	".type " name ", @function\n" name ":\n" body ".size " name ", .-" name "\n"

/* A register that the ABI would not keep survives a call of what leaves it alone (-fipa-ra); where
 * that is not known, the jump is no tail call either. */
static void test_known_callees(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("known", OVER_CALL("T0", "plain")) FUNCTION(
		"changed", OVER_CALL("T1", "changing")) FUNCTION("unknown", OVER_CALL("T2", "wild"))
			LOCAL("plain", "push %rsi\n mov $1, %eax\n pop %rdx\n jmp leaf\n")
				LOCAL("leaf", "xor %ecx, %ecx\n ret\n")
					LOCAL("changing", "mov %rdi, %rsi\n ret\n")
						LOCAL("wild", "call *%rax\n ret\n"));
	expect_jump("known", FLOW_JUMP_PROVED);
	expect_jump("changed", FLOW_JUMP_UNRESOLVED);
	expect_jump("unknown", FLOW_JUMP_UNRESOLVED);
}

/* What cannot be is sent to where the code ends. */
static void test_unreachable(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f",
		".section .rodata\n.balign 4\nT0: .long 1f-T0, 7f-T0, 2f-T0\n.text\n"
		"mov %edi, %eax\n cmp $2, %eax\n ja 9f\n" DISPATCH("T0") TARGETS "7:\n")
			FUNCTION("g", "ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->njumps, 1);
	assert_int_equal(f->jumps[0].state, FLOW_JUMP_PROVED);
	assert_int_equal(f->jumps[0].entries, 3);
	assert_int_equal(f->jumps[0].targets, 2);
	flow_destroy(f);
}

static void test_retpoline(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f",
		TABLE("T0") "push %rbx\n mov %edi, %eax\n cmp $2, %eax\n ja 9f\n"
			    " lea T0(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n"
			    " jmp __x86_indirect_thunk_rax\n" TARGETS)
			FUNCTION("__x86_indirect_thunk_rax", "jmp *%rax\n"));
	expect_jump("f", FLOW_JUMP_PROVED);
}

static int close_all(void **state)
{
	forget_built();
	drop_truths();
	vec_deinit(&truths);
	vec_deinit(&labels);
	return close_workshop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_gotos),
		cmocka_unit_test(test_vanished),
		cmocka_unit_test(test_near_misses),
		cmocka_unit_test(test_spills),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_known_callees),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_retpoline),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_all);
}
