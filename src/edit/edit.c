#include "edit/edit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "edit/pad.h"
#include "edit/unwind.h"
#include "edit/variable.h"
#include "flow/lives.h"
#include "flow/program.h"
#include "image/data.h"
#include "image/eh_frame.h"
#include "image/elf_file.h"
#include "image/symbols.h"

#define ROOM_LEAST ((uint64_t)4 << 20)
#define ROOM_TIMES 16
#define ROOM_MOST  ((uint64_t)1 << 30)

/* ---- functions ---- */

void edit_refuse(struct function *f, const char *words, uint64_t at)
{
	if (f->public.refused)
		return;
	f->public.refused = words;
	f->public.refused_at = at;
}

const uint8_t *edit_code(const struct edit *e, uint64_t address, size_t n)
{
	return elf_out_bytes(e->out, address, n);
}

const struct home *edit_home(const struct edit *e, uint64_t address)
{
	size_t low = 0, high = e->homes.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (e->homes.p[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - e->homes.p[low - 1].start >= e->homes.p[low - 1].size)
		return NULL;
	return &e->homes.p[low - 1];
}

static bool is_function(const struct procedure *p)
{
	return p->source == PROCEDURE_SYMBOL || p->source == PROCEDURE_EH_FRAME;
}

static int by_start(const void *a, const void *b)
{
	const struct home *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void list_functions(struct edit *e)
{
	const struct procedure *all;
	size_t n = image_procedures(e->image, &all);

	e->functions = xcalloc(n, sizeof *e->functions);
	e->list = xcalloc(n, sizeof *e->list);
	for (size_t i = 0; i < n; i++) {
		struct function *f = NULL;
		if (is_function(&all[i])) {
			f = &e->functions[e->nfunctions];
			f->public.procedure = &all[i];
			f->public.chosen = true;
			e->list[e->nfunctions++] = &f->public;
		}
		for (uint32_t r = 0; r < all[i].nranges; r++)
			*vec_add(&e->homes) =
				(struct home){all[i].ranges[r].start, all[i].ranges[r].size, f};
	}
	vec_sort(&e->homes, by_start);
}

/* ---- what a flow alone says against moving it ---- */

static void judge_insn(struct edit *e, struct function *f, const struct flow_insn *i)
{
	if (i->end == FLOW_BAD) {
		edit_refuse(f, "bytes that are no instructions", i->address);
	} else if (i->flags & FLOW_INSN_FIXED) {
		edit_refuse(f, "an instruction bound to its address", i->address);
	} else if (i->kind == INSN_CALL && !i->relative) {
		edit_refuse(f, "code that reads its own address", i->address);
	} else if (i->kind == INSN_JUMP || i->kind == INSN_BRANCH || i->kind == INSN_CALL) {
		const uint8_t *code = edit_code(e, i->address, i->length);
		if (!code || branch_shape(code, i) == BRANCH_STRANGE)
			edit_refuse(f, "a branch of unusual form", i->address);
	}
}

static void judge_jump(struct function *f, const struct flow_jump *j)
{
	uint64_t at = f->public.flow->insns[j->insn].address;

	if (j->state == FLOW_JUMP_UNRESOLVED)
		edit_refuse(f, "a jump whose targets are not known", at);
	else if (j->state == FLOW_JUMP_UNPROVED)
		edit_refuse(f, "a jump table whose bound is not proved", at);
}

/*
 * Data that tells what lies behind calls belongs to a garbage collector which looks for return
 * addresses in it (the frame tables of OCaml): it would not know those of moved code.
 */
static void judge_returns(const struct edit *e, struct function *f)
{
	const struct flow *flow = f->public.flow;
	uint32_t calls = 0, told = 0;
	uint64_t at = 0;

	for (uint32_t k = 0; k + 1 < flow->nblocks; k++) {
		const struct flow_block *next = &flow->blocks[k + 1];
		if (flow->blocks[k].end != FLOW_CALLS)
			continue;
		calls++;
		if (next->marks & FLOW_ENTERED_POINTER &&
			image_data_has_code_slot(program_data(e->program), next->start)) {
			told++;
			at = next->start;
		}
	}
	if (told && 2 * told >= calls)
		edit_refuse(f, "return addresses that data tells", at);
}

/*
 * Calls without a frame description: whoever walks such stacks knows their return addresses by
 * tables of his own (the builtins of V8).
 */
static void judge_undescribed(struct function *f)
{
	const struct flow *flow = f->public.flow;

	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (flow->blocks[k].end == FLOW_CALLS)
			edit_refuse(f, "calls without a frame description", flow->blocks[k].start);
}

void edit_judge(struct edit *e, struct function *f)
{
	const struct flow *flow = f->public.flow;
	const struct procedure *p = f->public.procedure;

	if (!flow)
		return;
	for (uint32_t r = 0; r < p->nranges; r++) {
		const char *words = unwind_refusal(e->unwind, p->ranges[r].start);
		if (words)
			edit_refuse(f, words, p->ranges[r].start);
		if (!edit_code(e, p->ranges[r].start, p->ranges[r].size))
			edit_refuse(f, "code that is not in the file", p->ranges[r].start);
	}
	if (flow->flags & FLOW_HAS_OVERLAPS)
		edit_refuse(f, "instructions that overlap", p->start);
	judge_returns(e, f);
	if (f->undescribed)
		judge_undescribed(f);
	for (uint32_t i = 0; i < flow->njumps; i++)
		judge_jump(f, &flow->jumps[i]);
	for (uint32_t i = 0; i < flow->ninsns; i++)
		judge_insn(e, f, &flow->insns[i]);
}

void edit_make_flow(struct edit *e, struct function *f)
{
	flow_destroy(f->public.flow);
	f->public.flow = NULL;
	if (program_flow(e->program, f->public.procedure, &f->public.flow, NULL) < 0)
		edit_refuse(f, "code that is not in the file", f->public.procedure->start);
}

static int fde_by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int symbol_by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

/* Whether a symbol says that there is a function of this extent, as for hand-written code. */
static bool is_sized(const struct symbols *symbols, const struct range *r)
{
	size_t low = 0, high = symbols->list.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (symbols->list.p[middle].start < r->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < symbols->list.n && symbols->list.p[low].start == r->start; low++)
		if (symbols->list.p[low].function && symbols->list.p[low].size == r->size)
			return true;
	return false;
}

/* V8's builtins are copied to where it compiles to, which they must not notice. */
static bool has_v8(const struct symbols *symbols)
{
	static const char name[] = "v8_Default_embedded_blob_code_";

	for (size_t i = 0; i < symbols->list.n; i++)
		if (symbols->list.p[i].name_size == sizeof name - 1 &&
			!memcmp(symbols->list.p[i].name, name, sizeof name - 1))
			return true;
	return false;
}

/* Without a frame description or a symbol with a size the extent of a function is a guess. */
static void refuse_undescribed(struct edit *e, const struct elf_file *file)
{
	struct symbols symbols = {0};
	struct fdes fdes = {0};
	size_t next = 0;

	eh_frame_read(file, &fdes);
	vec_sort(&fdes.list, fde_by_start);
	symbols_read_file(&symbols, file);
	vec_sort(&symbols.list, symbol_by_start);
	bool v8 = has_v8(&symbols);
	for (size_t i = 0; i < e->nfunctions; i++) {
		const struct procedure *p = e->functions[i].public.procedure;
		while (next < fdes.list.n &&
			fdes.list.p[next].start + fdes.list.p[next].size <= p->start)
			next++;
		e->functions[i].undescribed =
			next == fdes.list.n || p->start < fdes.list.p[next].start;
		if (e->functions[i].undescribed && !is_sized(&symbols, &p->ranges[0]))
			edit_refuse(&e->functions[i], "no frame description", p->start);
		else if (e->functions[i].undescribed && v8)
			edit_refuse(&e->functions[i], "code that is copied elsewhere", p->start);
	}
	vec_deinit(&fdes.list);
	symbols_deinit(&symbols);
}

/* ---- opening ---- */

/* Without unwind tables nobody knows where functions are, and nobody could unwind through new ones.
 */
static int open_unwind(
	struct edit *e, const char *path, const struct elf_file *file, struct err *err)
{
	struct err why = {0};
	int r = unwind_create(file, &e->unwind, &why);

	if (r == -ENOENT)
		return err_set(err, -EOPNOTSUPP,
			"%s: it has no unwind tables (.eh_frame), which tell where its functions "
			"are: not edited",
			path);
	return r ? err_set(err, r, "%s: %s", path, why.text) : 0;
}

static int open_parts(struct edit *e, const char *path, int fd, struct err *err)
{
	struct elf_file file;
	int r;

	if ((r = elf_out_create(path, fd, &e->out, err)) < 0)
		return r;
	if ((r = image_open(path, fd, &e->image, err)) < 0)
		return r;
	if ((r = elf_file_open(&file, fd, path, err)) < 0)
		return r;
	elf_file_read_sections(&file);
	r = open_unwind(e, path, &file, err);
	if (r == 0) {
		list_functions(e);
		refuse_undescribed(e, &file);
	}
	elf_file_close(&file);
	return r;
}

/*
 * New data lies behind all else, for what tools map over it must not part the file's own mappings:
 * those who read them (elfutils) would take it for two files. How much code comes before it is not
 * known yet; what is left free costs nothing but addresses.
 */
static uint64_t room_for_code(const struct edit *e)
{
	const struct elf_file *f = elf_out_file(e->out);
	uint64_t code = 0;

	for (size_t i = 0; i < f->nsegments; i++)
		if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_flags & PF_X)
			code += f->segments[i].p_filesz;
	code = ROOM_LEAST + code * ROOM_TIMES;
	return (code < ROOM_MOST ? code : ROOM_MOST) & ~(uint64_t)4095;
}

int edit_open(
	const char *path, const struct edit_options *options, struct edit **out, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct edit *e;
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "%s", path);
	e = xcalloc(1, sizeof *e);
	e->options = *options;
	if ((r = open_parts(e, path, fd, err)) < 0) {
		edit_destroy(e);
		return r;
	}
	e->data = elf_out_data_at(e->out) + room_for_code(e);
	program_create(e->image, &e->program);
	for (size_t i = 0; i < e->nfunctions; i++)
		edit_make_flow(e, &e->functions[i]);
	settle_flows(e);
	for (size_t i = 0; i < e->nfunctions; i++)
		edit_judge(e, &e->functions[i]);
	refs_find(e);
	patch_plan(e);
	*out = e;
	return 0;
}

void edit_destroy(struct edit *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->nfunctions; i++) {
		struct function *f = &e->functions[i];
		body_destroy(f->body);
		flow_destroy(f->public.flow);
		vec_deinit(&f->points);
		vec_deinit(&f->insertions);
		vec_deinit(&f->redirects);
		pad_destroy(f->pad);
		variables_deinit(f);
		free(f->group);
	}
	twin_destroy_all(e);
	lives_destroy(e->lives);
	free(e->functions);
	free(e->list);
	vec_deinit(&e->homes);
	vec_deinit(&e->arguments);
	vec_deinit(&e->memory);
	vec_deinit(&e->spans);
	vec_deinit(&e->fragments);
	buf_deinit(&e->runtime);
	buf_deinit(&e->frames);
	program_destroy(e->program);
	unwind_destroy(e->unwind);
	image_destroy(e->image);
	elf_out_destroy(e->out);
	free(e);
}

struct image *edit_image(const struct edit *e)
{
	return e->image;
}

struct program *edit_program(const struct edit *e)
{
	return e->program;
}

size_t edit_functions(struct edit *e, struct edit_function ***out)
{
	*out = e->list;
	return e->nfunctions;
}

/* ---- coverage ---- */

static void note_reason(struct edit_coverage *c, const char *words, uint32_t insns)
{
	uint32_t i = 0, most = sizeof c->reasons / sizeof *c->reasons;

	while (i < c->nreasons && strcmp(c->reasons[i].words, words))
		i++;
	if (i == most)
		return;
	if (i == c->nreasons)
		c->reasons[c->nreasons++] = (struct edit_reason){.words = words};
	c->reasons[i].functions++;
	c->reasons[i].insns += insns;
}

static int by_functions(const void *a, const void *b)
{
	const struct edit_reason *x = a, *y = b;

	return x->functions > y->functions ? -1 : x->functions < y->functions;
}

void edit_coverage(const struct edit *e, struct edit_coverage *out)
{
	const struct procedure *all;
	size_t n = image_procedures(e->image, &all);

	*out = (struct edit_coverage){0};
	for (size_t i = 0; i < n; i++)
		if (all[i].source == PROCEDURE_GAP)
			out->gaps += all[i].ranges[0].size;
	for (size_t i = 0; i < e->nfunctions; i++) {
		const struct edit_function *f = e->list[i];
		uint32_t insns = f->flow ? f->flow->ninsns : 0;
		if (!f->chosen)
			continue;
		out->functions++;
		out->insns += insns;
		if (f->refused) {
			note_reason(out, f->refused, insns);
			continue;
		}
		out->moved++;
		out->moved_insns += insns;
	}
	qsort(out->reasons, out->nreasons, sizeof *out->reasons, by_functions);
}
