/*
 * Random instructions and states that suit them: every opcode of every map with all prefixes and
 * addressing modes, and registers aimed so that memory operands mostly hit NATIVE_DATA.
 */
#ifndef CULPRIT_TESTS_FORMS_H
#define CULPRIT_TESTS_FORMS_H

#include <Zydis/Zydis.h>
#include <string.h>

#include "isa/dice.h"
#include "isa/native.h"

enum { FORM_RAX, FORM_RCX, FORM_RDX, FORM_RBX, FORM_RSP, FORM_RBP, FORM_RSI, FORM_RDI };

struct form {
	uint8_t bytes[15];
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static inline bool form_decode(struct form *f, const uint8_t *bytes, size_t n)
{
	ZydisDecoder decoder;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &f->in, f->ops)))
		return false;
	memmove(f->bytes, bytes, f->in.length);
	return true;
}

/* ---- bytes ---- */

static inline size_t form_roll_prefixes(struct dice *d, uint8_t *p)
{
	static const struct {
		uint8_t byte, percent;
	} prefixes[] = {{0x66, 22}, {0x67, 6}, {0xf3, 9}, {0xf2, 7}, {0xf0, 6}, {0x64, 4},
		{0x65, 4}, {0x2e, 1}, {0x3e, 1}, {0x48, 1}};
	size_t n = 0;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		if (dice_chance(d, prefixes[i].percent))
			p[n++] = prefixes[i].byte;
	}
	if (n > 1 && dice_chance(d, 50)) {
		uint8_t first = p[0];
		p[0] = p[n - 1];
		p[n - 1] = first;
	}
	return n;
}

/* Opcodes of the 0f map that work on general registers get half of its cases. */
static inline uint8_t form_roll_0f(struct dice *d)
{
	static const uint8_t first[] = {0x40, 0x80, 0x90, 0xa0, 0xa8, 0xb0, 0xb8, 0xc0, 0xc8, 0x18};
	static const uint8_t number[] = {16, 16, 16, 6, 8, 8, 8, 8, 8, 8};
	size_t i = dice_below(d, sizeof first);
	return (uint8_t)(dice_chance(d, 50) ? first[i] + dice_below(d, number[i]) : dice_roll(d));
}

static inline bool form_is_prefix(uint8_t byte)
{
	return (byte & 0xf0) == 0x40 || (byte & 0xe7) == 0x26 || (byte & 0xfc) == 0x64 ||
	       byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
}

static inline size_t form_roll_legacy(struct dice *d, uint8_t *p)
{
	size_t n = form_roll_prefixes(d, p);
	if (dice_chance(d, 55))
		p[n++] = (uint8_t)(0x40 | dice_below(d, 16));
	unsigned map = (unsigned)dice_below(d, 100);
	if (map >= 55)
		p[n++] = 0x0f;
	if (map >= 94) {
		p[n++] = 0x3a;
	} else if (map >= 86) {
		p[n++] = 0x38;
		if (dice_chance(d, 50)) {
			p[n++] = "\xf0\xf1\xf6"[dice_below(d, 3)];
			return n;
		}
	} else if (map >= 55) {
		p[n++] = form_roll_0f(d);
		return n;
	}
	do {
		p[n] = (uint8_t)dice_roll(d);
	} while (form_is_prefix(p[n]) && dice_chance(d, 90));
	if (map < 55 && dice_chance(d, 20)) /* groups: eight instructions in an opcode */
		p[n] = (uint8_t) "\xf6\xf7\xf6\xf7\xf7\xc0\xc1\xd0\xd1\xd2\xd3\xff\xfe\x80\x81\x83"
			[dice_below(d, 16)];
	return n + 1;
}

static inline size_t form_roll_vex(struct dice *d, uint8_t *p)
{
	size_t n = 0;
	if (dice_chance(d, 10))
		p[n++] = "\x64\x65\x67"[dice_below(d, 3)];
	bool bits = dice_chance(d, 60); /* BMI */
	if (!bits && dice_chance(d, 30)) {
		p[n++] = 0xc5;
		p[n++] = (uint8_t)dice_roll(d);
		p[n++] = (uint8_t)dice_roll(d);
		return n;
	}
	unsigned map = (unsigned)(bits ? 2u + dice_chance(d, 15) : 1 + dice_below(d, 3));
	p[n++] = 0xc4;
	p[n++] = (uint8_t)(dice_below(d, 8) << 5 | map);
	p[n] = (uint8_t)(bits ? dice_roll(d) & ~4u : dice_roll(d));
	if (!bits && dice_chance(d, 50))
		p[n] |= 0x78; /* no second source */
	n++;
	p[n] = (uint8_t)dice_roll(d);
	if (bits)
		p[n] = map == 3 ? 0xf0 : (uint8_t) "\xf2\xf3\xf3\xf5\xf6\xf7"[dice_below(d, 6)];
	return n + 1;
}

/* Often without the second source, mask, broadcast and zeroing, which most instructions refuse. */
static inline size_t form_roll_evex(struct dice *d, uint8_t *p)
{
	p[0] = 0x62;
	p[1] = (uint8_t)((dice_roll(d) & 0xf0) | (1 + dice_below(d, 3)));
	p[2] = (uint8_t)(dice_roll(d) | 4 | (dice_chance(d, 50) ? 0x78 : 0));
	p[3] = (uint8_t)dice_roll(d);
	if (dice_chance(d, 75))
		p[3] = (uint8_t)((p[3] & 0x67) | 8);
	if (dice_chance(d, 40))
		p[3] &= 0xf8;
	p[4] = (uint8_t)dice_roll(d);
	return 5;
}

/* False when the roll is no instruction. */
static inline bool form_roll(struct dice *d, struct form *f)
{
	uint8_t bytes[48];
	unsigned kind = (unsigned)dice_below(d, 100);
	size_t n = kind < 78   ? form_roll_legacy(d, bytes)
		   : kind < 91 ? form_roll_vex(d, bytes)
			       : form_roll_evex(d, bytes);
	for (size_t i = n; i < n + 15; i++) {
		bytes[i] = (uint8_t)dice_roll(d);
		if (i > n && dice_chance(d, 30))
			bytes[i] = (uint8_t) "\x00\x01\xff\x80\x7f\x1f\x20\x21"[dice_below(d, 8)];
	}
	if (dice_chance(d, 25))
		bytes[n] |= 0xc0; /* more registers */
	return form_decode(f, bytes, 15);
}

/* ---- what can run ---- */

static inline bool form_is_far(const struct form *f)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	default:
		return f->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}

static inline bool form_jumps(const struct form *f)
{
	switch (f->in.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
		return f->in.mnemonic != ZYDIS_MNEMONIC_XABORT;
	default:
		return false;
	}
}

static inline bool form_repeats(const struct form *f)
{
	return f->in.attributes &
	       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* A REX in front of another prefix is ignored; compilers do not write that. */
static inline bool form_has_lost_rex(const struct form *f)
{
	for (int i = 0; i + 1 < f->in.raw.prefix_count; i++) {
		if ((f->in.raw.prefixes[i].value & 0xf0) == 0x40)
			return true;
	}
	return false;
}

static inline bool form_loads_segment(const struct form *f)
{
	for (int i = 0; i < f->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_SEGMENT &&
			op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	}
	return false;
}

/* What leaves the case, or changes what the oracle stands on. */
static inline bool form_is_unsafe(const struct form *f)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMMCALL:
	case ZYDIS_MNEMONIC_VMFUNC:
	case ZYDIS_MNEMONIC_GETSEC:
	case ZYDIS_MNEMONIC_ENCLS:
	case ZYDIS_MNEMONIC_ENCLU:
	case ZYDIS_MNEMONIC_ENCLV:
	case ZYDIS_MNEMONIC_TDCALL:
	case ZYDIS_MNEMONIC_SEAMCALL:
	case ZYDIS_MNEMONIC_WRFSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
	case ZYDIS_MNEMONIC_WRPKRU:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_MWAITX:
	case ZYDIS_MNEMONIC_SENDUIPI:
	case ZYDIS_MNEMONIC_STUI:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_XSUSLDTRK:
		return true;
	default:
		return form_is_far(f) || form_loads_segment(f);
	}
}

/* Where the extension is missing, the prefix is ignored and another instruction runs. */
static inline bool form_is_other_here(const struct form *f)
{
	if (f->in.mnemonic == ZYDIS_MNEMONIC_TZCNT)
		return !__builtin_cpu_supports("bmi");
	return f->in.mnemonic == ZYDIS_MNEMONIC_LZCNT && !__builtin_cpu_supports("lzcnt");
}

/* ---- registers and memory ---- */

/* So that an operand mostly lies across it. */
static inline uint64_t dice_edge(struct dice *d)
{
	uint64_t edge = NATIVE_DATA + dice_below(d, NATIVE_PAGES + 1) * NATIVE_PAGE;
	return edge - dice_below(d, dice_chance(d, 80) ? 18 : 66);
}

static inline uint64_t dice_pointer(struct dice *d)
{
	if (d->edges && dice_chance(d, d->edges))
		return dice_edge(d);
	static const uint8_t align[] = {0, 0, 0, 3, 3, 4, 6, 6};
	uint64_t at = NATIVE_DATA + 64 + dice_below(d, NATIVE_DATA_SIZE - 640);
	at &= ~0ull << align[dice_below(d, sizeof align)];
	unsigned where = (unsigned)dice_below(d, 100);
	if (where < 3)
		return NATIVE_DATA - dice_below(d, 40);
	if (where < 7)
		return NATIVE_DATA + NATIVE_DATA_SIZE - dice_below(d, 40);
	return where < 9 ? NATIVE_CODE + dice_below(d, NATIVE_CODE_SIZE) : at;
}

static inline uint64_t dice_value(struct dice *d)
{
	static const uint8_t edges[] = {7, 8, 15, 16, 31, 32, 62, 63};
	unsigned kind = (unsigned)dice_below(d, 100);
	if (kind < 8)
		return 0;
	if (kind < 12)
		return 1;
	if (kind < 17)
		return ~0ull;
	if (kind < 32)
		return dice_below(d, 131);
	if (kind < 44)
		return (1ull << edges[dice_below(d, 8)]) + dice_below(d, 3) - 1;
	if (kind < 58)
		return dice_pointer(d);
	if (kind < 68)
		return (uint32_t)dice_roll(d);
	if (kind < 76)
		return -dice_below(d, 70000);
	if (kind < 80)
		return (uint64_t)((int64_t)(dice_roll(d) << 16) >> 16); /* canonical */
	if (kind < 84)
		return 0x0101010101010101 * dice_below(d, 256);
	return dice_roll(d);
}

static inline void state_roll(struct dice *d, struct native_state *s)
{
	for (int i = 0; i < 16; i++)
		s->r[i] = i && dice_chance(d, 6) ? s->r[i - 1] : dice_value(d);
	for (int i = 0; i < 32; i++)
		s->xmm[i / 2][i % 2] = dice_value(d);
	s->flags = 0x202 | (dice_roll(d) & 0x8d5);
	if (dice_chance(d, 12))
		s->flags |= 0x400;
	if (dice_chance(d, 97))
		s->r[FORM_RSP] = dice_pointer(d) & ~7ull;
}

static inline void data_roll(struct dice *d, uint64_t data[NATIVE_WORDS])
{
	for (size_t i = 0; i < NATIVE_WORDS; i++)
		data[i] = i && dice_chance(d, 25) ? data[i - 1] : dice_value(d);
}

static inline int form_register(ZydisRegister r)
{
	switch (ZydisRegisterGetClass(r)) {
	case ZYDIS_REGCLASS_GPR64:
	case ZYDIS_REGCLASS_GPR32:
		return ZydisRegisterGetId(r);
	default:
		return -1;
	}
}

static inline uint64_t form_segment(const ZydisDecodedOperand *op)
{
	return op->mem.segment == ZYDIS_REGISTER_FS   ? NATIVE_FS
	       : op->mem.segment == ZYDIS_REGISTER_GS ? NATIVE_GS
						      : 0;
}

static inline bool form_is_relative(const ZydisDecodedOperand *op)
{
	return op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP;
}

/* The effective address of a memory operand (without the index of a vector). */
static inline uint64_t form_address(const struct form *f, const ZydisDecodedOperand *op,
	const struct native_state *s, uint64_t ip)
{
	int base = form_register(op->mem.base), index = form_register(op->mem.index);
	uint64_t a = (uint64_t)op->mem.disp.value;
	if (form_is_relative(op))
		a += ip + f->in.length;
	if (base >= 0)
		a += s->r[base];
	if (index >= 0)
		a += s->r[index] * op->mem.scale;
	if (op->mem.index == ZYDIS_REGISTER_AL)
		a += s->r[FORM_RAX] & 0xff;
	return (f->in.address_width == 32 ? (uint32_t)a : a) + form_segment(op);
}

static inline void form_aim(struct form *f, const ZydisDecodedOperand *op, struct native_state *s,
	uint64_t ip, uint64_t target)
{
	int base = form_register(op->mem.base), index = form_register(op->mem.index);
	uint64_t miss = target - form_address(f, op, s, ip);
	if (base >= 0 && base != index) {
		s->r[base] += miss;
	} else if (index >= 0) {
		s->r[index] += miss / (op->mem.scale + (base == index));
	} else if (f->in.raw.disp.size >= 32) {
		uint64_t displacement = (uint64_t)op->mem.disp.value + miss;
		memcpy(f->bytes + f->in.raw.disp.offset, &displacement, f->in.raw.disp.size / 8);
		form_decode(f, f->bytes, f->in.length);
	}
}

static inline const ZydisDecodedOperand *form_memory(const struct form *f)
{
	for (int i = 0; i < f->in.operand_count_visible; i++) {
		if (f->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &f->ops[i];
	}
	return NULL;
}

static inline uint64_t data_at(const uint64_t data[NATIVE_WORDS], uint64_t address)
{
	uint64_t word = 0, offset = address - NATIVE_DATA;
	if (offset <= NATIVE_DATA_SIZE - 8)
		memcpy(&word, (const uint8_t *)data + offset, sizeof word);
	return word;
}

/* Lets compare-and-exchange find what it compares with. */
static inline void form_prepare_exchange(const struct form *f, struct native_state *s,
	const uint64_t data[NATIVE_WORDS], uint64_t ip)
{
	const ZydisDecodedOperand *memory = form_memory(f);
	uint64_t at = memory ? form_address(f, memory, s, ip) : 0;
	if (memory)
		s->r[FORM_RAX] = data_at(data, at);
	else if (form_register(f->ops[0].reg.value) >= 0)
		s->r[FORM_RAX] = s->r[form_register(f->ops[0].reg.value)];
	if (f->in.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B)
		s->r[FORM_RDX] = data_at(data, at + 8);
	if (f->in.mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B)
		s->r[FORM_RDX] = s->r[FORM_RAX] >> 32;
}

/* Makes the interesting case likely where random registers would hardly ever meet it. */
static inline void form_prepare(struct dice *d, struct form *f, struct native_state *s,
	const uint64_t data[NATIVE_WORDS], uint64_t ip)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		if (dice_chance(d, 70))
			s->r[FORM_RDX] = dice_chance(d, 50) ? 0 : -(s->r[FORM_RAX] >> 63);
		if (dice_chance(d, 30))
			s->r[FORM_RAX] &= 0x7ff;
		break;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		if (f->ops[1].encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG && dice_chance(d, 90))
			s->r[ZydisRegisterGetId(f->ops[1].reg.value) & 15] =
				dice_below(d, 40000) - 20000;
		break;
	case ZYDIS_MNEMONIC_ENTER:
		if (dice_chance(d, 80)) /* a small frame */
			f->bytes[f->in.raw.imm[0].offset + 1] = 0;
		/* fall through */
	case ZYDIS_MNEMONIC_LEAVE:
		s->r[FORM_RBP] = dice_pointer(d);
		break;
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		if (f->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && dice_chance(d, 60))
			s->r[ZydisRegisterGetId(f->ops[0].reg.value) & 15] = dice_pointer(d);
		break;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		if (dice_chance(d, 50))
			s->r[FORM_RCX] = dice_below(d, 3) | (dice_roll(d) & 1) << 32;
		break;
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
		if (dice_chance(d, 50))
			form_prepare_exchange(f, s, data, ip);
		break;
	default:
		break;
	}
	if (form_repeats(f) && dice_chance(d, 95))
		s->r[FORM_RCX] = dice_below(d, dice_chance(d, 70) ? 20 : 131);
	if (f->in.meta.category == ZYDIS_CATEGORY_SHIFT && dice_chance(d, 50))
		s->r[FORM_RCX] = (s->r[FORM_RCX] & ~0xffull) | dice_below(d, 131);
}

/* Hidden operands (the stack, strings) first: what the instruction names wins. */
static inline void form_aim_all(struct dice *d, struct form *f, struct native_state *s, uint64_t ip)
{
	if (dice_chance(d, 3))
		return;
	for (int i = f->in.operand_count; i-- > 0;) {
		const ZydisDecodedOperand op = f->ops[i];
		if (op.type == ZYDIS_OPERAND_TYPE_MEMORY && op.mem.type != ZYDIS_MEMOP_TYPE_AGEN)
			form_aim(f, &op, s, ip, dice_pointer(d));
	}
}

/* ---- cases ---- */

static inline void case_append(struct native_case *c, const struct form *f)
{
	memcpy(c->code + c->size, f->bytes, f->in.length);
	c->size = (uint8_t)(c->size + f->in.length);
}

static inline void form_roll_safe(struct dice *d, struct form *f)
{
	do {
	} while (!form_roll(d, f) || form_is_unsafe(f) || form_is_other_here(f));
}

/* One instruction; sometimes it is the last of its page. */
static inline void case_roll_single(
	struct dice *d, struct native_case *c, const uint64_t data[NATIVE_WORDS])
{
	struct form f;
	uint64_t room = NATIVE_CODE_SIZE - 16;
	*c = (struct native_case){0};
	form_roll_safe(d, &f);
	state_roll(d, &c->before);
	c->before.ip = NATIVE_CODE + dice_below(d, room);
	if (dice_chance(d, 10))
		c->before.ip = NATIVE_CODE + NATIVE_CODE_SIZE - 1 - f.in.length;
	form_aim_all(d, &f, &c->before, c->before.ip);
	form_prepare(d, &f, &c->before, data, c->before.ip);
	c->steps = form_jumps(&f);
	case_append(c, &f);
}

/*
 * System flags that popf may change (TF, AC) are in the way of what follows, and enter has stored
 * some of what it stores when it faults.
 */
static inline bool form_is_alone(const struct form *f)
{
	return form_jumps(f) || form_repeats(f) || f->in.mnemonic == ZYDIS_MNEMONIC_POPF ||
	       f->in.mnemonic == ZYDIS_MNEMONIC_POPFQ || f->in.mnemonic == ZYDIS_MNEMONIC_ENTER;
}

/* A few in a row, none of which jumps: flags and registers pass from one to the next. */
static inline void case_roll_row(
	struct dice *d, struct native_case *c, const uint64_t data[NATIVE_WORDS])
{
	unsigned n = 2 + (unsigned)dice_below(d, 5);
	*c = (struct native_case){0};
	state_roll(d, &c->before);
	c->before.ip = NATIVE_CODE + dice_below(d, NATIVE_CODE_SIZE - sizeof c->code - 1);
	while (n) {
		struct form f;
		form_roll_safe(d, &f);
		if (form_is_alone(&f))
			continue;
		form_aim_all(d, &f, &c->before, c->before.ip + c->size);
		form_prepare(d, &f, &c->before, data, c->before.ip + c->size);
		case_append(c, &f);
		n--;
	}
}

#endif
