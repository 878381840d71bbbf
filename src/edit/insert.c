#include <stdlib.h>

#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "isa/form.h"
#include "isa/reference.h"

uint64_t edit_data(struct edit *e, uint64_t size, uint64_t align)
{
	uint64_t at = (e->data + e->data_size + align - 1) & ~(align - 1);

	e->data_size = at + size - e->data;
	return at;
}

static void insert(struct edit *e, struct edit_function *public, bool on_edge, uint32_t number,
	const struct snippet *snippet, const uint64_t *arguments)
{
	struct function *f = (struct function *)public;
	unsigned n = snippet_arguments(snippet);
	uint32_t order = (uint32_t)f->insertions.n;

	*vec_add(&f->insertions) = (struct insertion){.on_edge = on_edge,
		.number = number,
		.order = order,
		.arguments = (uint32_t)e->arguments.n,
		.snippet = snippet};
	for (unsigned i = 0; i < n; i++)
		*vec_add(&e->arguments) = arguments[i];
}

void edit_on_edge(struct edit *e, struct edit_function *f, uint32_t edge,
	const struct snippet *snippet, const uint64_t *arguments)
{
	insert(e, f, true, edge, snippet, arguments);
}

void edit_before(struct edit *e, struct edit_function *f, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments)
{
	insert(e, f, false, insn, snippet, arguments);
}

void edit_before_with(struct edit *e, struct edit_function *public, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments, const struct reference *memory,
	unsigned n)
{
	struct function *f = (struct function *)public;

	insert(e, public, false, insn, snippet, arguments);
	f->insertions.p[f->insertions.n - 1].memory = (uint32_t)e->memory.n + 1;
	for (unsigned i = 0; i < SNIPPET_NAMED; i++)
		*vec_add(&e->memory) = memory[i < n ? i : 0];
}

void edit_at_entry(struct edit *e, struct edit_function *f, const struct snippet *snippet,
	const uint64_t *arguments)
{
	const struct flow *flow = f->flow;

	graph_each_out (edge, &flow->graph, flow->entry_node)
		if (flow->edge_kind[*edge] == FLOW_EDGE_ENTRY)
			insert(e, f, true, *edge, snippet, arguments);
}

void edit_after_call(struct edit *e, struct edit_function *f, uint32_t insn,
	const struct snippet *snippet, const uint64_t *arguments)
{
	const struct flow *flow = f->flow;
	uint32_t block = flow_block_at(flow, flow->insns[insn].address);

	graph_each_out (edge, &flow->graph, block)
		if (flow->edge_kind[*edge] == FLOW_EDGE_FALL)
			insert(e, f, true, *edge, snippet, arguments);
}

unsigned edit_references(
	const struct edit *e, const struct edit_function *f, uint32_t insn, struct reference *out)
{
	const struct flow_insn *i = &f->flow->insns[insn];

	return isa_references(
		edit_code(e, i->address, i->length), i->length, i->address, out, NULL);
}

int edit_form(const struct edit *e, const struct edit_function *f, uint32_t insn, struct form *out)
{
	const struct flow_insn *i = &f->flow->insns[insn];

	return isa_form(edit_code(e, i->address, i->length), i->length, i->address, out);
}

/* ---- calls that go elsewhere ---- */

static void redirect(
	struct edit_function *public, uint32_t insn, const struct edit_function *to, size_t at)
{
	struct function *f = (struct function *)public;

	*vec_add(&f->redirects) =
		(struct redirect){.insn = insn, .to = (const struct function *)to, .at = at};
}

void edit_redirect_call(struct edit *e __attribute__((unused)), struct edit_function *f,
	uint32_t insn, const struct edit_function *to)
{
	redirect(f, insn, to, 0);
}

void edit_redirect_to_runtime(
	struct edit *e __attribute__((unused)), struct edit_function *f, uint32_t insn, size_t at)
{
	redirect(f, insn, NULL, at);
}

static int by_insn(const void *a, const void *b)
{
	const struct redirect *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

void redirect_sort(struct function *f)
{
	vec_sort(&f->redirects, by_insn);
}

uint64_t redirect_find(const struct edit *e, const struct function *f, uint32_t insn)
{
	const struct redirect key = {.insn = insn};
	const struct redirect *r =
		bsearch(&key, f->redirects.p, f->redirects.n, sizeof *f->redirects.p, by_insn);

	if (!r)
		return 0;
	if (!r->to)
		return e->text + r->at;
	const struct flow *flow = r->to->public.flow;
	if (!r->to->body)
		return r->to->public.procedure->start;
	return body_entered(r->to, flow_block_at(flow, flow->entry));
}

/* ---- edges ---- */

bool edit_edge_carries(const struct edit_function *f, uint32_t edge)
{
	const struct flow *flow = f->flow;

	return flow->edge_kind[edge] != FLOW_EDGE_UNSEEN ||
	       flow->graph.edge[edge].to != flow->exit_node;
}

uint32_t edit_edge_group(const struct edit_function *public, uint32_t edge)
{
	const struct function *f = (const struct function *)public;

	return f->group ? f->group[edge] : edge;
}

void edit_runtime(
	struct edit *e, const void *blob, size_t size, size_t entry, edit_fill_fn *fill, void *arg)
{
	e->runtime.n = 0;
	buf_put(&e->runtime, blob, size);
	e->runtime_entry = entry;
	e->fill = fill;
	e->fill_arg = arg;
}

void edit_describe(struct edit *e, const char *kind, const void *more, size_t size)
{
	elf_out_describe(e->out, kind, more, size);
}
