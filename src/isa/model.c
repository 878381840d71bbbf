#include "isa/model_internal.h"

#include <errno.h>
#include <string.h>

/* What nothing is known of: one micro-op on any unit, with the latency of a load where it loads. */
static const struct model_class unknown_class = {
	.uops = 1, .latency = 1, .first = {1, 1}, .rax = 1, .rdx = 1, .flags = 1};
static const struct model_class unknown_load = {
	.uops = 2, .latency = 6, .first = {6, 6}, .rax = 6, .rdx = 6, .flags = 6, .late = 5};

static int compare(const struct model_form_row *r, unsigned mnemonic, uint32_t form)
{
	if (r->mnemonic != mnemonic)
		return r->mnemonic < mnemonic ? -1 : 1;
	return r->form < form ? -1 : r->form > form;
}

static const struct model_form_row *find_form(unsigned mnemonic, uint32_t form)
{
	size_t low = 0, high = model_nforms;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int c = compare(&model_forms[middle], mnemonic, form);

		if (!c)
			return &model_forms[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static const struct model_class *class_of(const struct model *m, const struct model_decoded *d)
{
	const struct model_tables *t = model_tables[m->table];
	uint32_t form = d->form & ~(MODEL_LOCKED | MODEL_REPEATED);

	for (;;) {
		const struct model_form_row *r = find_form(d->in.mnemonic, form);
		uint32_t wider = model_wider_form(form);

		if (r && model_rows[r->row][t->column] != MODEL_CLASS_NONE)
			return &t->class[model_rows[r->row][t->column]];
		if (r || wider == form)
			return NULL;
		form = wider;
	}
}

static const struct model_class *guess(const struct model_decoded *d)
{
	for (unsigned i = 0; i < d->in.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			op->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
			op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			return &unknown_load;
	}
	return &unknown_class;
}

/*
 * More micro-ops than a decoder makes come from the microcode store: more than 4 on Intel's chips,
 * more than 2 on AMD's (Intel 248966, "Decode"; AMD 56305, "Decode").
 */
static bool is_microcoded(const struct model *m, const struct model_class *c)
{
	const uint32_t amd = MODEL_CHIP_ZEN2 | MODEL_CHIP_ZEN3 | MODEL_CHIP_ZEN4 | MODEL_CHIP_ZEN5;

	return c->uops > (m->chip & amd ? 2 : 4);
}

static void take_class(const struct model *m, const struct model_class *c, struct model_insn *out)
{
	out->uops = c->uops;
	out->latency = c->latency;
	out->queues = c->queues;
	out->nuses = c->uses;
	if (c->uses)
		memcpy(out->use, model_tables[m->table]->use + c->use, c->uses * sizeof *out->use);
	if (c->is & MODEL_CLASS_ELIMINATED)
		out->flags |= MODEL_ELIMINATED;
	if (c->is & MODEL_CLASS_MOVE)
		out->flags |= MODEL_MOVE;
	if (is_microcoded(m, c))
		out->flags |= MODEL_MICROCODED;
}

int model_insn(const struct model *m, const void *code, size_t n, struct model_insn *out)
{
	const struct model_class *class;
	struct model_insn result = {0};
	struct model_decoded d;
	ZydisDecoder decoder;
	struct insn insn;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (isa_decode(code, n, 0, &insn) ||
		ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &d.in, d.ops)))
		return -EBADMSG;
	d.form = model_form(&d.in, d.ops);
	result.length = insn.length;
	result.kind = insn.kind;
	class = class_of(m, &d);
	if (!class) {
		result.flags |= MODEL_UNKNOWN;
		class = guess(&d);
	}
	take_class(m, class, &result);
	model_operands(m, &d, class, &result);
	model_correct(m, &d, &result);
	*out = result;
	return 0;
}
