#include "flow/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "flow/noreturn.h"
#include "image/data.h"
#include "isa/form.h"
#include "isa/registers.h"

/* What is known of a called address. */
struct callee {
	uint64_t address;
	bool noreturn;
	int8_t thunk; /* register, -1: it is no retpoline */
	bool measured;
	uint16_t clobbers; /* if measured */
};

struct program {
	struct image *image;
	struct image_data *data;  /* NULL: there is none */
	VEC(uint64_t) entered;    /* by address: landing pads, and what others noted */
	VEC(uint64_t) references; /* by address: what code refers to */
	struct hmap callees;
	struct buf code;
};

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void find_entered(struct program *p)
{
	const uint64_t *pads;
	size_t n = image_data_landing_pads(p->data, &pads);

	for (size_t i = 0; i < n; i++)
		*vec_add(&p->entered) = pads[i];
}

void program_create(struct image *im, struct program **out)
{
	struct program *p = xcalloc(1, sizeof *p);

	p->image = im;
	if (image_data_open(im, &p->data))
		p->data = NULL;
	if (p->data)
		find_entered(p);
	hmap_init(&p->callees, sizeof(struct callee), offsetof(struct callee, noreturn));
	*out = p;
}

void program_destroy(struct program *p)
{
	if (!p)
		return;
	image_data_destroy(p->data);
	vec_deinit(&p->entered);
	vec_deinit(&p->references);
	hmap_deinit(&p->callees);
	buf_deinit(&p->code);
	free(p);
}

struct image *program_image(const struct program *p)
{
	return p->image;
}

/* ---- callees ---- */

/* __x86_indirect_thunk_rax (gcc, the kernel), __llvm_retpoline_r11 (clang). */
static int thunk_register(const char *name)
{
	static const char *const starts[] = {"__x86_indirect_thunk_", "__llvm_retpoline_"};

	for (size_t i = 0; name && i < sizeof starts / sizeof *starts; i++) {
		size_t n = strlen(starts[i]);
		if (!strncmp(name, starts[i], n))
			return isa_register_find(name + n, strlen(name + n));
	}
	return -1;
}

static struct callee *callee_at(struct program *p, uint64_t address)
{
	bool fresh;
	struct callee *c = hmap_put(&p->callees, &address, &fresh);

	if (!fresh)
		return c;
	const struct procedure *called = image_procedure_at(p->image, address);
	const char *name = called && called->start == address ? called->name : NULL;
	c->noreturn = noreturn_name(name);
	c->thunk = (int8_t)thunk_register(name);
	return c;
}

bool program_returns(struct program *p, uint64_t address)
{
	return !callee_at(p, address)->noreturn;
}

void program_note_noreturn(struct program *p, uint64_t entry)
{
	callee_at(p, entry)->noreturn = true;
}

void program_note_entered(struct program *p, const uint64_t *addresses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*vec_add(&p->entered) = addresses[i];
	vec_sort(&p->entered, by_address);
}

void program_note_data(struct program *p, const uint64_t *addresses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*vec_add(&p->references) = addresses[i];
	vec_sort(&p->references, by_address);
}

const struct image_data *program_data(const struct program *p)
{
	return p->data;
}

/* ---- what callees change ---- */

/* Callees that are larger, or call others that deep, are taken to change all. */
enum { CLOBBERS_BYTES = 4096, CLOBBERS_DEPTH = 8 };

static uint16_t clobbers_at(struct program *p, uint64_t address, unsigned depth);

static bool is_inside(const struct procedure *q, uint64_t address)
{
	for (uint32_t i = 0; i < q->nranges; i++)
		if (address - q->ranges[i].start < q->ranges[i].size)
			return true;
	return false;
}

static uint16_t clobbers_of_insn(
	struct program *p, const struct procedure *q, const struct insn *i, unsigned depth)
{
	switch (i->kind) {
	case INSN_JUMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		return REGS_ALL;
	case INSN_JUMP:
	case INSN_BRANCH:
		return is_inside(q, i->target) ? 0 : clobbers_at(p, i->target, depth);
	case INSN_CALL:
		return clobbers_at(p, i->target, depth);
	default:
		return 0;
	}
}

static uint16_t clobbers_of_code(
	struct program *p, const struct procedure *q, const struct range *r, unsigned depth)
{
	struct buf code = {0};
	uint16_t all = image_code(p->image, r, &code) ? REGS_ALL : 0;
	struct insn insn;
	struct form f;

	for (size_t at = 0; at < code.n && all != REGS_ALL; at += f.length) {
		uint64_t address = r->start + at;
		if (isa_decode(code.p + at, code.n - at, address, &insn) ||
			isa_form(code.p + at, code.n - at, address, &f))
			all = REGS_ALL;
		else
			all |= f.writes | clobbers_of_insn(p, q, &insn, depth);
	}
	buf_deinit(&code);
	return all;
}

/* One that calls itself is met while it is measured, and changes all. */
static uint16_t clobbers_at(struct program *p, uint64_t address, unsigned depth)
{
	const struct procedure *q = image_procedure_at(p->image, address);
	uint16_t all = 0;
	uint64_t size = 0;

	if (!q || q->start != address || depth > CLOBBERS_DEPTH || q->source == PROCEDURE_PLT ||
		q->source == PROCEDURE_GAP)
		return REGS_ALL;
	struct callee *c = callee_at(p, address);
	if (c->measured)
		return c->clobbers;
	c->measured = true;
	c->clobbers = REGS_ALL;
	for (uint32_t i = 0; i < q->nranges; i++)
		size += q->ranges[i].size;
	for (uint32_t i = 0; i < q->nranges && size <= CLOBBERS_BYTES; i++)
		all |= clobbers_of_code(p, q, &q->ranges[i], depth + 1);
	if (size <= CLOBBERS_BYTES)
		callee_at(p, address)->clobbers = all;
	return callee_at(p, address)->clobbers;
}

/* ---- flows ---- */

static int read_data(void *arg, uint64_t address, void *out, size_t size)
{
	const struct program *p = arg;

	return image_data_read(p->data, address, out, size);
}

static uint64_t next_data(void *arg, uint64_t address)
{
	const struct program *p = arg;
	size_t low = 0, high = p->references.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (p->references.p[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->references.n ? p->references.p[low] : UINT64_MAX;
}

static bool starts(void *arg, uint64_t address)
{
	const struct program *p = arg;
	const struct procedure *at = image_procedure_at(p->image, address);

	return at && at->start == address;
}

static bool returns(void *arg, uint64_t target)
{
	return program_returns(arg, target);
}

static uint16_t clobbers(void *arg, uint64_t target)
{
	return clobbers_at(arg, target, 0);
}

static int thunk(void *arg, uint64_t target)
{
	return callee_at(arg, target)->thunk;
}

int program_code(
	struct program *p, const struct procedure *procedure, const uint8_t **out, struct err *e)
{
	p->code.n = 0;
	for (uint32_t i = 0; i < procedure->nranges; i++) {
		int r = image_code(p->image, &procedure->ranges[i], &p->code);
		if (r < 0)
			return err_errno(e, r, "%s: no code at 0x%llx", image_path(p->image),
				(unsigned long long)procedure->ranges[i].start);
	}
	*out = p->code.p;
	return 0;
}

int program_flow(
	struct program *p, const struct procedure *procedure, struct flow **out, struct err *e)
{
	enum image_kind kind = image_kind(p->image);
	struct flow_source source = {.ranges = procedure->ranges,
		.nranges = procedure->nranges,
		.entry = procedure->start,
		.kernel = kind == IMAGE_KERNEL || kind == IMAGE_MODULE,
		.starts = starts,
		.returns = returns,
		.clobbers = clobbers,
		.thunk = thunk,
		.arg = p};

	int r = program_code(p, procedure, &source.code, e);
	if (r)
		return r;
	if (p->data) {
		source.entered = p->entered.p;
		source.nentered = p->entered.n;
		source.nslots = image_data_code_slots(p->data, &source.slots);
		source.absolute = image_data_is_fixed(p->data);
		source.read = read_data;
		source.next_data = p->references.n ? next_data : NULL;
	}
	return flow_create(&source, out, e);
}
