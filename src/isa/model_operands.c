#include "isa/model_internal.h"

/* MODEL_* of a register, or MODEL_NO_REGISTER for those that are not followed. */
static uint8_t register_of(ZydisRegister reg)
{
	ZydisRegister whole;
	uint8_t id;

	if (reg == ZYDIS_REGISTER_NONE)
		return MODEL_NO_REGISTER;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (whole == ZYDIS_REGISTER_NONE)
		whole = reg;
	id = (uint8_t)ZydisRegisterGetId(whole);
	switch (ZydisRegisterGetClass(whole)) {
	case ZYDIS_REGCLASS_GPR64:
		return id & 15;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return MODEL_VECTOR + (id & 31);
	case ZYDIS_REGCLASS_MASK:
		return MODEL_MASK + (id & 7);
	case ZYDIS_REGCLASS_MMX:
		return MODEL_MMX + (id & 7);
	case ZYDIS_REGCLASS_X87:
		return MODEL_X87 + (id & 7);
	default:
		return MODEL_NO_REGISTER;
	}
}

/* ---- lists ---- */

static void add_read(struct model_insn *out, uint8_t reg, int late)
{
	if (reg == MODEL_NO_REGISTER)
		return;
	for (unsigned i = 0; i < out->nreads; i++) {
		if (out->read[i].reg != reg)
			continue;
		if (late < out->read[i].late)
			out->read[i].late = (int8_t)late;
		return;
	}
	if (out->nreads < MODEL_READS)
		out->read[out->nreads++] = (struct model_read){reg, (int8_t)late};
}

static void add_write(struct model_insn *out, uint8_t reg, unsigned latency)
{
	if (reg == MODEL_NO_REGISTER || out->nwrites == MODEL_WRITES)
		return;
	out->write[out->nwrites++] = (struct model_write){reg, (uint16_t)latency};
}

/* ---- what Zydis leaves open ---- */

/* Comparisons into a mask register clear what is masked. */
static bool is_evex_merging(const struct model_decoded *d)
{
	return ZydisRegisterGetClass(d->ops[0].reg.value) != ZYDIS_REGCLASS_MASK &&
	       d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && d->in.raw.evex.aaa &&
	       !d->in.raw.evex.z;
}

/* k0 as a mask stands for none. */
static bool is_no_mask(const ZydisDecodedOperand *op)
{
	return op->encoding == ZYDIS_OPERAND_ENCODING_MASK && op->reg.value == ZYDIS_REGISTER_K0;
}

/* Narrow general registers keep the rest; scalar operations of SSE keep the upper part. */
static bool keeps_rest(const struct model_decoded *d, const ZydisDecodedOperand *op)
{
	switch (ZydisRegisterGetClass(op->reg.value)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
		return true;
	case ZYDIS_REGCLASS_XMM:
		break;
	default:
		return false;
	}
	if (d->in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || op->id != 0)
		return false;
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_CVTSD2SS:
	case ZYDIS_MNEMONIC_CVTSS2SD:
	case ZYDIS_MNEMONIC_SQRTSD:
	case ZYDIS_MNEMONIC_SQRTSS:
	case ZYDIS_MNEMONIC_RCPSS:
	case ZYDIS_MNEMONIC_RSQRTSS:
	case ZYDIS_MNEMONIC_ROUNDSD:
	case ZYDIS_MNEMONIC_ROUNDSS:
	case ZYDIS_MNEMONIC_PINSRB:
	case ZYDIS_MNEMONIC_PINSRW:
	case ZYDIS_MNEMONIC_PINSRD:
	case ZYDIS_MNEMONIC_PINSRQ:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
		return true;
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
		return d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	default:
		return false;
	}
}

static bool writes_at_all(const ZydisDecodedOperand *op)
{
	return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static bool reads_at_all(const struct model_decoded *d, const ZydisDecodedOperand *op)
{
	if (op->actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE))
		return true;
	return writes_at_all(op) && op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (keeps_rest(d, op) || (op->id == 0 && is_evex_merging(d)));
}

/* ---- operands ---- */

static unsigned hidden_latency(const struct model_class *c, uint8_t reg)
{
	return reg == MODEL_RAX ? c->rax : reg == MODEL_RDX ? c->rdx : c->latency;
}

static void take_register(const struct model_decoded *d, const ZydisDecodedOperand *op,
	const struct model_class *c, unsigned *visible, struct model_insn *out)
{
	bool hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
	bool ignored = c->is & MODEL_CLASS_INDEPENDENT && !hidden;
	uint8_t reg = register_of(op->reg.value);

	if (is_no_mask(op))
		return;
	if (reads_at_all(d, op) && !ignored)
		add_read(out, reg, hidden ? c->late_hidden : c->late);
	if (!writes_at_all(op))
		return;
	if (hidden)
		add_write(out, reg, hidden_latency(c, reg));
	else
		add_write(out, reg, *visible < 2 ? c->first[*visible] : c->latency);
	*visible += !hidden;
}

static void take_memory(const ZydisDecodedOperand *op, struct model_insn *out)
{
	struct model_place *p = &out->place[out->nplaces];

	add_read(out, register_of(op->mem.base), 0);
	add_read(out, register_of(op->mem.index), 0);
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || out->nplaces == MODEL_PLACES)
		return;
	p->loads = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
	p->stores = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	if (!p->loads && !p->stores)
		return;
	p->base = register_of(op->mem.base);
	p->index = register_of(op->mem.index);
	p->scale = op->mem.scale;
	p->size = op->size / 8;
	p->displacement = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		p->displacement += out->length;
	p->segment = op->mem.segment == ZYDIS_REGISTER_FS   ? 1
		     : op->mem.segment == ZYDIS_REGISTER_GS ? 2
							    : 0;
	out->nplaces++;
}

#define OTHER_FLAGS                                                                  \
	(ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | \
		ZYDIS_CPUFLAG_OF)

/* LLVM has one register of flags; chips rename the carry apart. */
static void take_flags(const struct model *m, const struct model_decoded *d,
	const struct model_class *c, struct model_insn *out)
{
	const ZydisAccessedFlags *f = d->in.cpu_flags;
	ZydisAccessedFlagsMask written, other = OTHER_FLAGS;

	if (!f)
		return;
	written = f->modified | f->set_0 | f->set_1 | f->undefined;
	if (m->plain) {
		if (f->tested & (OTHER_FLAGS | ZYDIS_CPUFLAG_CF))
			add_read(out, MODEL_FLAGS, c->late_hidden);
		if (written & (OTHER_FLAGS | ZYDIS_CPUFLAG_CF))
			add_write(out, MODEL_FLAGS, c->flags);
		return;
	}
	if (f->tested & ZYDIS_CPUFLAG_CF)
		add_read(out, MODEL_CARRY, c->late_hidden);
	if (f->tested & other)
		add_read(out, MODEL_FLAGS, c->late_hidden);
	if (written & ZYDIS_CPUFLAG_CF)
		add_write(out, MODEL_CARRY, c->flags);
	if (written & other)
		add_write(out, MODEL_FLAGS, c->flags);
}

/* ---- the stack and other constants ---- */

static int64_t signed_immediate(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? op->imm.value.s : 0;
}

/* Registers that move by a constant keep addresses that are written with them comparable. */
static void find_move(const struct model_decoded *d, struct model_insn *out)
{
	const ZydisDecodedOperand *to = &d->ops[0], *by = &d->ops[1];
	bool wide = d->in.operand_count_visible && to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetClass(to->reg.value) == ZYDIS_REGCLASS_GPR64;

	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_CALL:
		out->moved = MODEL_RSP;
		out->by = d->in.operand_width == 16 ? -2 : -8;
		return;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_RET:
		out->moved = MODEL_RSP;
		out->by = d->in.operand_width == 16 ? 2 : 8;
		return;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		out->by = d->in.mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return;
		out->by = signed_immediate(by);
		if (d->in.mnemonic == ZYDIS_MNEMONIC_SUB)
			out->by = (int64_t)(0 - (uint64_t)out->by);
		break;
	default:
		return;
	}
	if (wide)
		out->moved = register_of(to->reg.value);
}

void model_operands(const struct model *m, const struct model_decoded *d,
	const struct model_class *c, struct model_insn *out)
{
	unsigned visible = 0;

	out->moved = MODEL_NO_REGISTER;
	for (unsigned i = 0; i < d->in.operand_count; i++) {
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			take_register(d, &d->ops[i], c, &visible, out);
		else if (d->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			take_memory(&d->ops[i], out);
	}
	take_flags(m, d, c, out);
	find_move(d, out);
}
