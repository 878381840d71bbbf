/*
 * The interpreter built for BPF does what the one built for user space does, on thousands of random
 * cases: all of its state is compared, also what it calls unknown and what it stored.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/shadow_vectors.h"
#include "isa/forms.h"

#include "tests/collect/shadow_vectors.skel.h"

_Static_assert(VECTORS_CODE == NATIVE_CODE && VECTORS_CODE_WORDS * 8 == NATIVE_CODE_SIZE, "code");
_Static_assert(VECTORS_DATA == NATIVE_DATA && VECTORS_DATA_WORDS == NATIVE_WORDS, "data");

/* The part of struct interp that both builds have. */
#define COMMON (offsetof(struct interp, xmm) + sizeof(((struct interp *)0)->xmm))

static struct {
	struct shadow_vectors_bpf *bpf;
	struct interp *machine; /* of the kernel: COMMON bytes of it are as here */
	struct vectors *memory;
	u64 data[NATIVE_WORDS];
	unsigned long stops[INTERP_STOPS], stored, unknown;
} rig;

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
	return 0;
}

static void *map_of(const struct bpf_map *map)
{
	size_t size = (bpf_map__value_size(map) + 4095u) & ~4095u;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

static int open_rig(void **state)
{
	(void)state;
	if (geteuid() != 0)
		libbpf_set_print(quiet);
	rig.bpf = shadow_vectors_bpf__open_and_load();
	if (!rig.bpf)
		return geteuid() == 0 ? -1 : 0;
	rig.machine = map_of(rig.bpf->maps.machine);
	rig.memory = map_of(rig.bpf->maps.memory);
	return rig.machine && rig.memory ? 0 : -1;
}

static int close_rig(void **state)
{
	(void)state;
	shadow_vectors_bpf__destroy(rig.bpf);
	return 0;
}

static void need_bpf(void)
{
	if (!rig.bpf) {
		print_message("needs root: BPF programs cannot be loaded\n");
		skip();
	}
}

/* ---- the same memory on this side ---- */

static int read_word(void *arg, u64 address, u64 *word)
{
	struct vectors *v = arg;
	u64 code = (address - VECTORS_CODE) / 8, data = (address - VECTORS_DATA) / 8;

	*word = 0;
	if (v->missing >> (address >> 6 & 63) & 1)
		return -EFAULT;
	if (code < VECTORS_CODE_WORDS)
		*word = v->code[code];
	else if (data < VECTORS_DATA_WORDS)
		*word = v->data[data];
	else
		return -EFAULT;
	return 0;
}

static u32 run_here(struct interp *m, const struct vectors *v, u32 *done)
{
	enum interp_stop stop = INTERP_GOES_ON;

	for (*done = 0; *done < v->steps; ++*done) {
		stop = interp_step(m);
		if (stop != INTERP_GOES_ON)
			break;
	}
	return stop;
}

/* ---- cases ---- */

static void set_state(struct interp *m, const struct native_state *s, struct vectors *v)
{
	interp_begin(m, read_word, v);
	memcpy(m->r, s->r, sizeof m->r);
	memcpy(m->xmm, s->xmm, sizeof m->xmm);
	m->ip = s->ip;
	m->base[0] = NATIVE_FS;
	m->base[1] = NATIVE_GS;
	interp_set_flags(m, s->flags);
	m->known_xmm = 0xffff;
}

/* Some registers and flags nobody knows, some memory is not there. */
static void lose_some(struct dice *d, struct interp *m, struct vectors *v)
{
	v->missing = 0;
	if (dice_chance(d, 40))
		return;
	m->unknown = (u32)(dice_roll(d) & dice_roll(d) & dice_roll(d) & 0xffff);
	m->unknown_low = (u32)(dice_roll(d) & dice_roll(d) & dice_roll(d) & 0xffff);
	m->unknown_flags = (u32)(dice_roll(d) & dice_roll(d) & INTERP_FLAGS);
	m->known_xmm = (u32)dice_roll(d) & 0xffff;
	m->kernel = dice_chance(d, 20);
	v->missing = dice_roll(d) & dice_roll(d) & dice_roll(d);
	v->missing &= ~(3ull << (m->ip >> 6 & 63)); /* not the code */
}

/* One instruction of those that the processor can be asked about, a row of them, or any bytes. */
static void roll_case(struct dice *d, struct native_case *c)
{
	if (dice_chance(d, 40))
		case_roll_single(d, c, rig.data);
	else
		case_roll_row(d, c, rig.data);
	if (dice_chance(d, 10)) {
		for (size_t i = 0; i < sizeof c->code; i++)
			c->code[i] = (uint8_t)dice_roll(d);
		c->size = 15;
	}
}

static void put_code(struct vectors *v, const struct native_case *c)
{
	memset(v->code, NATIVE_INT3, sizeof v->code);
	memcpy((uint8_t *)v->code + (c->before.ip - NATIVE_CODE), c->code, c->size);
}

static void say_difference(uint64_t number, const struct native_case *c, const struct interp *here)
{
	const uint8_t *a = (const uint8_t *)here, *b = (const uint8_t *)rig.machine;

	print_message("case %lu, code", number);
	for (int i = 0; i < c->size; i++)
		print_message(" %02x", c->code[i]);
	print_message("\n");
	for (size_t i = 0, said = 0; i < COMMON && said < 8; i += 8) {
		u64 x, y;
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y) {
			print_message("  at %zu: %lx here, %lx in the kernel\n", i, x, y);
			said++;
		}
	}
}

/* Whether both came to the same end. */
static bool agree(uint64_t number, const struct native_case *c, struct interp *here)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct vectors *v = rig.memory;
	u32 stop, done;

	memcpy(rig.machine, here, COMMON);
	stop = run_here(here, v, &done);
	if (bpf_prog_test_run_opts(bpf_program__fd(rig.bpf->progs.run_vector), &run)) {
		print_message("case %lu: it cannot be run: %s\n", number, strerror(errno));
		return false;
	}
	rig.stops[stop]++;
	rig.stored += here->stored;
	rig.unknown += here->failed;
	if (v->direct) { /* the lines are left alone then */
		memcpy(rig.machine->line, here->line, sizeof here->line);
		memcpy(rig.machine->code, here->code, sizeof here->code);
		rig.machine->available = here->available;
		rig.machine->direct = here->direct;
	}
	if (v->stop == stop && v->done == done && !memcmp(rig.machine, here, COMMON))
		return true;
	print_message("stop %s after %u here, %s after %u in the kernel\n", interp_stop_name(stop),
		done, interp_stop_name((enum interp_stop)v->stop), v->done);
	say_difference(number, c, here);
	return false;
}

static void test_same_as_here(void **state)
{
	(void)state;
	need_bpf();
	static struct interp m;
	uint64_t cases = dice_option("VECTORS", 12000), wrong = 0;
	struct dice d = {.state = dice_option("SEED", 1)};
	struct native_case c;

	data_roll(&d, rig.data);
	memcpy(rig.memory->data, rig.data, sizeof rig.data);
	for (uint64_t i = 0; i < cases && wrong < 5; i++) {
		roll_case(&d, &c);
		put_code(rig.memory, &c);
		set_state(&m, &c.before, rig.memory);
		lose_some(&d, &m, rig.memory);
		rig.memory->steps = c.size == 15 ? 8 : 24;
		rig.memory->direct = dice_chance(&d, 50);
		wrong += !agree(i, &c, &m);
	}
	assert_int_equal(wrong, 0);
	/* The cases have been somewhere. */
	assert_true(rig.stored > cases / 20);
	assert_true(rig.unknown > cases / 20);
	assert_true(rig.stops[INTERP_CONTROL] && rig.stops[INTERP_STORE] &&
		    rig.stops[INTERP_FAULT] && rig.stops[INTERP_FETCH] &&
		    rig.stops[INTERP_SYSTEM] && rig.stops[INTERP_INSTRUCTION]);
}

/* Loops, calls and returns for hundreds of steps: caches, a full overlay, strings. */
static const struct {
	const char *name;
	uint8_t code[48];
	uint8_t size;
	enum interp_stop stop;
} programs[] = {
	/* 1: mov %rcx,(%rdi,%rcx,8); add (%rdi,%rcx,4),%rax; inc %rcx; cmp $64,%rcx; jb 1b */
	{"stores and loads",
		{0x48, 0x89, 0x0c, 0xcf, 0x48, 0x03, 0x04, 0x8f, 0x48, 0xff, 0xc1, 0x48, 0x83, 0xf9,
			0x40, 0x72, 0xef, 0xcc},
		18, INTERP_SYSTEM},
	/* 1: mov %rcx,(%rdi); add $24,%rdi; inc %rcx; jmp 1b */
	{"a full overlay", {0x48, 0x89, 0x0f, 0x48, 0x83, 0xc7, 0x18, 0x48, 0xff, 0xc1, 0xeb, 0xf4},
		12, INTERP_ROOM},
	/* 1: call 2f; dec %ebx; jnz 1b; int3; 2: push %rbx; pop %rdx; imul %rdx,%rax; ret */
	{"calls",
		{0xe8, 5, 0, 0, 0, 0xff, 0xcb, 0x75, 0xf7, 0xcc, 0x53, 0x5a, 0x48, 0x0f, 0xaf, 0xc2,
			0xc3},
		17, INTERP_SYSTEM},
	/* lea 3(%rdi),%rsi; mov $100,%ecx; rep movsb; std; mov $9,%ecx; repe cmpsw; int3 */
	{"strings",
		{0x48, 0x8d, 0x77, 3, 0xb9, 100, 0, 0, 0, 0xf3, 0xa4, 0xfd, 0xb9, 9, 0, 0, 0, 0xf3,
			0x66, 0xa7, 0xcc},
		21, INTERP_SYSTEM},
	/* movdqu (%rdi),%xmm1; pxor %xmm2,%xmm2; pcmpeqb %xmm1,%xmm2; pmovmskb %xmm2,%eax; jmp . */
	{"vectors",
		{0xf3, 0x0f, 0x6f, 0x0f, 0x66, 0x0f, 0xef, 0xd2, 0x66, 0x0f, 0x74, 0xd1, 0x66, 0x0f,
			0xd7, 0xc2, 0xeb, 0xfe},
		18, INTERP_GOES_ON},
};

static void test_programs(void **state)
{
	(void)state;
	need_bpf();
	static struct interp m;
	struct dice d = {.state = 7};

	data_roll(&d, rig.data);
	memcpy(rig.memory->data, rig.data, sizeof rig.data);
	rig.memory->missing = 0;
	rig.memory->steps = 1000;
	for (size_t k = 0; k < 2 * (sizeof programs / sizeof *programs); k++) {
		size_t i = k / 2;
		struct native_case c = {.size = programs[i].size};

		memcpy(c.code, programs[i].code, c.size);
		c.before = (struct native_state){.ip = NATIVE_CODE + 27, .flags = 0x202};
		c.before.r[FORM_RDI] = NATIVE_DATA + 40;
		c.before.r[FORM_RSP] = NATIVE_DATA + NATIVE_DATA_SIZE / 2;
		c.before.r[FORM_RBX] = 90;
		put_code(rig.memory, &c);
		set_state(&m, &c.before, rig.memory);
		rig.memory->direct = k & 1;
		if (!agree(i, &c, &m))
			fail_msg("%s", programs[i].name);
		if (rig.memory->stop != programs[i].stop)
			fail_msg("%s: %s", programs[i].name,
				interp_stop_name((enum interp_stop)rig.memory->stop));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_here),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, open_rig, close_rig);
}
