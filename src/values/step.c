#include "values/step.h"

#include "isa/interp_ops.h"

#include <string.h>

#define BIT(n) ((uint16_t)(1u << ((n)&15)))
enum {
	RAX = 1 << INTERP_RAX,
	RCX = 1 << INTERP_RCX,
	RDX = 1 << INTERP_RDX,
	RBX = 1 << INTERP_RBX,
	RSP = 1 << INTERP_RSP,
	RBP = 1 << INTERP_RBP,
	RSI = 1 << INTERP_RSI,
	RDI = 1 << INTERP_RDI,
};

/* ---- encoding ---- */

static bool is_legacy_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 ||
	       (b & 0xe7) == 0x26 || (b & 0xfe) == 0x64;
}

/* What follows 0f, 0f38 and 0f3a; returns where the opcode ends. */
static unsigned read_map(struct culprit_step *s, unsigned at)
{
	unsigned map = 0;

	if (s->code[at] == 0x0f) {
		map = 1;
		at++;
		if (s->code[at] == 0x38 || s->code[at] == 0x3a)
			map = s->code[at++] == 0x38 ? 2 : 3;
	}
	s->opcode = (uint16_t)(map << 8 | s->code[at]);
	return at + 1;
}

/* The same for VEX and EVEX; rex gets the bits that REX would have. */
static unsigned read_vex(struct culprit_step *s, unsigned at, unsigned *rex)
{
	uint8_t first = s->code[at], b1 = s->code[at + 1], b2 = s->code[at + 2];

	s->encoding = first == 0x62 ? CULPRIT_EVEX : CULPRIT_VEX;
	if (first == 0xc5) {
		*rex = ~b1 >> 5 & 4;
		s->prefix = b1 & 3;
		s->opcode = (uint16_t)(0x100 | b2);
		return at + 3;
	}
	*rex = (~b1 >> 5 & 7) | (b2 >> 4 & 8);
	s->prefix = b2 & 3;
	at += first == 0x62 ? 4 : 3;
	s->opcode = (uint16_t)((b1 & (first == 0x62 ? 7 : 31)) << 8 | s->code[at]);
	return at + 1;
}

/* Opcode and prefix; the general registers of the memory operand. */
static void read_encoding(struct culprit_step *s, const struct interp_insn *i)
{
	unsigned at = 0, rex = 0, sib, index;

	while (at < 12 && is_legacy_prefix(s->code[at])) {
		uint8_t b = s->code[at++];

		if (b == 0xf2 || b == 0xf3)
			s->prefix = b == 0xf3 ? CULPRIT_F3 : CULPRIT_F2;
		else if (b == 0x66 && s->prefix == CULPRIT_NONE)
			s->prefix = CULPRIT_66;
	}
	if ((s->code[at] & 0xf0) == 0x40)
		rex = s->code[at++];
	if (i->prefix & (INTERP_P_VEX | INTERP_P_EVEX))
		at = read_vex(s, at, &rex);
	else
		at = read_map(s, at);
	s->modrm = (uint8_t)i->modrm;
	if (!i->memory || !(i->entry & INTERP_E_MODRM))
		return;
	if (i->base < 16)
		s->address |= BIT(i->base);
	if ((i->modrm & 7) != 4 || at + 1 >= sizeof s->code)
		return;
	sib = s->code[at + 1];
	index = (sib >> 3 & 7) | (rex & 2) << 2;
	if (index != 4)
		s->address |= BIT(index);
}

/* ---- registers ---- */

/* Instructions that do not look at what their destination held. */
static bool replaces(uint32_t op, const struct interp_insn *i)
{
	if (i->size < 4 && op != INTERP_OP_LEA)
		return false; /* the rest of the register stays */
	return (op >= INTERP_OP_MOV && op <= INTERP_OP_LEA) || op == INTERP_OP_SETCC ||
	       op == INTERP_OP_MOVBE || op == INTERP_OP_IMUL3 ||
	       (op >= INTERP_OP_TZCNT && op <= INTERP_OP_PEXT) || op >= INTERP_OP_RORX;
}

static void two_operands(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	uint16_t rm = i->memory ? 0 : BIT(i->rm), to = 0, from = 0;

	switch (INTERP_E_FORM(i->entry)) {
	case INTERP_F_RM_R:
	case INTERP_F_RM_R_I:
		to = rm;
		from = BIT(i->reg);
		break;
	case INTERP_F_R_RM:
	case INTERP_F_R_RM_I:
		to = BIT(i->reg);
		from = rm;
		break;
	case INTERP_F_R_V_RM:
	case INTERP_F_R_RM_V:
		to = BIT(i->reg);
		from = rm | BIT(i->vvvv);
		break;
	case INTERP_F_V_RM:
		to = BIT(i->vvvv);
		from = rm;
		break;
	case INTERP_F_RM_CL:
		to = rm;
		from = RCX;
		break;
	case INTERP_F_A_I:
		to = RAX;
		break;
	case INTERP_F_O:
	case INTERP_F_O_I:
		to = BIT(i->rm);
		break;
	default:
		to = rm;
		break;
	}
	if (op == INTERP_OP_SHLD || op == INTERP_OP_SHRD)
		from |= RCX;
	s->reads |= from | (replaces(op, i) ? 0 : to);
	s->writes |= op == INTERP_OP_CMP || op == INTERP_OP_TEST || op == INTERP_OP_BT ? 0 : to;
}

static void two_results(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	uint16_t rm = i->memory ? 0 : BIT(i->rm), reg = BIT(i->reg);

	switch (op) {
	case INTERP_OP_XCHG:
		if (INTERP_E_FORM(i->entry) == INTERP_F_O)
			reg = RAX;
		/* fall through */
	case INTERP_OP_XADD:
		s->reads |= rm | reg;
		s->writes |= rm | reg;
		break;
	case INTERP_OP_CMPXCHG:
		s->reads |= rm | reg | RAX;
		s->writes |= rm | RAX;
		break;
	case INTERP_OP_CMPXCHG8B:
		s->reads |= RAX | RBX | RCX | RDX;
		s->writes |= RAX | RDX;
		break;
	case INTERP_OP_MULX:
		s->reads |= rm | RDX;
		s->writes |= reg | BIT(i->vvvv);
		break;
	default: /* mul, div */
		s->reads |= rm | RAX | (op == INTERP_OP_DIV || op == INTERP_OP_IDIV ? RDX : 0);
		s->writes |= RAX | (i->size > 1 ? RDX : 0);
		break;
	}
}

static void stack_or_control(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	uint16_t rm = i->memory ? 0 : BIT(i->rm);
	uint32_t form = INTERP_E_FORM(i->entry);
	bool operand = form == INTERP_F_RM || form == INTERP_F_O;

	switch (op) {
	case INTERP_OP_PUSH:
		s->reads |= operand ? rm : 0;
		break;
	case INTERP_OP_POP:
		s->writes |= rm;
		break;
	case INTERP_OP_LEAVE:
		s->address |= RBP;
		s->writes |= RSP | RBP;
		return;
	case INTERP_OP_ENTER:
		s->reads |= RBP;
		s->writes |= RBP;
		break;
	case INTERP_OP_JMPI:
		s->reads |= rm;
		return;
	case INTERP_OP_CALLI:
		s->reads |= rm;
		break;
	case INTERP_OP_JMP:
	case INTERP_OP_JCC:
		return;
	case INTERP_OP_LOOP:
	case INTERP_OP_LOOPE:
	case INTERP_OP_LOOPNE:
		s->writes |= RCX;
		/* fall through */
	case INTERP_OP_JRCXZ:
		s->reads |= RCX;
		return;
	}
	s->address |= RSP;
	s->writes |= RSP;
}

static void strings(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	uint16_t used = op == INTERP_OP_LODS ? RSI : RDI;

	if (op == INTERP_OP_MOVS || op == INTERP_OP_CMPS)
		used |= RSI;
	s->address |= used;
	s->writes |= used;
	if (op == INTERP_OP_STOS || op == INTERP_OP_SCAS)
		s->reads |= RAX;
	if (op == INTERP_OP_LODS)
		s->writes |= RAX;
	if (i->prefix & (INTERP_P_REP | INTERP_P_REPNE)) {
		s->reads |= RCX;
		s->writes |= RCX;
	}
}

static void vectors_and_rest(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	switch (op) {
	case INTERP_OP_CBW:
	case INTERP_OP_LAHF:
		s->reads |= RAX;
		s->writes |= RAX;
		break;
	case INTERP_OP_CWD:
		s->reads |= RAX;
		s->writes |= RDX;
		break;
	case INTERP_OP_SAHF:
		s->reads |= RAX;
		break;
	case INTERP_OP_XLAT:
		s->address |= RAX | RBX;
		s->writes |= RAX;
		break;
	case INTERP_OP_RDBASE:
		s->writes |= BIT(i->rm);
		break;
	case INTERP_OP_XFROM:
		s->reads |= i->memory ? 0 : BIT(i->rm);
		break;
	case INTERP_OP_XTO:
		s->writes |= i->memory ? 0 : BIT(i->rm);
		break;
	case INTERP_OP_XMASK8:
	case INTERP_OP_XMASK32:
	case INTERP_OP_XMASK64:
		s->writes |= BIT(i->reg);
		break;
	case INTERP_OP_RESULT:
		s->writes |= (i->entry & INTERP_E_REG ? BIT(i->reg) : 0) |
			     (i->entry & INTERP_E_RM && !i->memory ? BIT(i->rm) : 0) |
			     (i->entry & INTERP_E_V ? BIT(i->vvvv) : 0) |
			     (uint16_t)(i->entry >> 51 & 15);
		break;
	}
}

static void read_registers(struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	if (op < INTERP_OP_XCHG)
		two_operands(s, i, op);
	else if (op < INTERP_OP_PUSH)
		two_results(s, i, op);
	else if (op < INTERP_OP_MOVS)
		stack_or_control(s, i, op);
	else if (op < INTERP_OP_NOP)
		strings(s, i, op);
	else
		vectors_and_rest(s, i, op);
	s->reads |= s->address;
}

/* ---- memory ---- */

/* Operands of vector instructions whose results are unknown: arithmetic of map 0f only. */
static unsigned arithmetic_bytes(const struct culprit_step *s, const struct interp_insn *i)
{
	bool compares = s->opcode == 0x12e || s->opcode == 0x12f; /* with EVEX */

	if (compares)
		return s->prefix == CULPRIT_66 ? 8 : 4;
	if (s->opcode != 0x1c2 && (s->opcode < 0x151 || s->opcode > 0x15f))
		return 0;
	if (s->opcode == 0x15b || (s->opcode == 0x15a && s->prefix < CULPRIT_F3))
		return 0; /* conversions between widths */
	return s->prefix == CULPRIT_F3 ? 4 : s->prefix == CULPRIT_F2 ? 8 : INTERP_P_VL(i->prefix);
}

static unsigned vector_bytes(const struct interp_insn *i, uint32_t op)
{
	switch (op) {
	case INTERP_OP_XMOVQ:
	case INTERP_OP_XLOW:
	case INTERP_OP_XHIGH:
	case INTERP_OP_XSTOREHIGH:
	case INTERP_OP_XCOMPARE64:
		return 8;
	case INTERP_OP_XCOMPARE32:
	case INTERP_OP_XWIDEN:
		return 4;
	case INTERP_OP_XMOVS:
	case INTERP_OP_XSTOREQ:
		return INTERP_E_SIZE(i->entry) == INTERP_S_32 ? 4 : 8;
	case INTERP_OP_XFROM:
	case INTERP_OP_XTO:
		return i->size;
	default:
		return INTERP_P_VL(i->prefix);
	}
}

static unsigned load_bytes(const struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	switch (op) {
	case INTERP_OP_MOVZX8:
	case INTERP_OP_MOVSX8:
		return 1;
	case INTERP_OP_MOVZX16:
	case INTERP_OP_MOVSX16:
		return 2;
	case INTERP_OP_MOVSX32:
		return 4;
	case INTERP_OP_RET:
	case INTERP_OP_JMPI:
	case INTERP_OP_CALLI:
		return 8;
	case INTERP_OP_XLAT:
		return 1;
	case INTERP_OP_CMPXCHG8B:
		return i->prefix & INTERP_P_W ? 16 : 8;
	case INTERP_OP_RESULT:
		return arithmetic_bytes(s, i);
	}
	return op >= INTERP_OP_XMOV && op < INTERP_OP_RESULT ? vector_bytes(i, op) : i->size;
}

static unsigned store_bytes(const struct interp_insn *i, uint32_t op)
{
	uint32_t code = INTERP_E_STORE(i->entry);

	if (op == INTERP_OP_CALL || op == INTERP_OP_CALLI)
		return 8;
	if (op == INTERP_OP_RESULT)
		return code == INTERP_E_STORE_VL            ? INTERP_P_VL(i->prefix)
		       : code && code != INTERP_E_STORE_ANY ? 1u << (code - 1)
							    : 0;
	if (op == INTERP_OP_CMPXCHG8B)
		return i->prefix & INTERP_P_W ? 16 : 8;
	return op >= INTERP_OP_XMOV && op < INTERP_OP_RESULT ? vector_bytes(i, op) : i->size;
}

/* Elements that a string instruction went through; they lie one behind the other. */
static unsigned elements(const struct culprit_step *s, const struct interp *m)
{
	uint64_t n = 1;

	if (m->insn.prefix & (INTERP_P_REP | INTERP_P_REPNE))
		n = s->registers[INTERP_RCX] - m->r[INTERP_RCX];
	return n < 1024 ? (unsigned)n : 0;
}

/* Strings that run upwards; of others only the place is kept. */
static void read_string(struct culprit_step *s, const struct interp *m, uint32_t op)
{
	unsigned bytes = m->direction & 1 || !s->known ? 0 : elements(s, m) * m->insn.size;

	s->load_size = s->store_size = (uint16_t)bytes;
	if (!bytes || m->insn.prefix & (INTERP_P_FS | INTERP_P_GS))
		return;
	s->load = s->registers[op == INTERP_OP_SCAS ? INTERP_RDI : INTERP_RSI];
	s->store = s->registers[INTERP_RDI];
}

static void read_memory(struct culprit_step *s, const struct interp *m, uint32_t op)
{
	const struct interp_insn *i = &m->insn;
	uint32_t had = m->effect.has;

	if (!(had & INTERP_HAS_ADDRESS))
		return;
	s->load = s->store = m->effect.address;
	s->has |= (had & INTERP_LOADS ? CULPRIT_LOADS : 0) |
		  (had & INTERP_STORES ? CULPRIT_STORES : 0);
	s->load_size = (uint16_t)load_bytes(s, i, op);
	s->store_size = (uint16_t)store_bytes(i, op);
	if (op >= INTERP_OP_MOVS && op < INTERP_OP_NOP)
		read_string(s, m, op);
	else if (op == INTERP_OP_PUSH || op == INTERP_OP_CALLI)
		s->store = m->r[INTERP_RSP]; /* the address is that of the operand */
	else if (op == INTERP_OP_POP && i->memory)
		s->store_size = 0;
}

/* The first operand of VEX is vvvv, else modrm.reg; the second is rm. */
static void read_vectors(struct culprit_step *s, const struct steps *all, const struct interp *m)
{
	const struct interp_insn *i = &m->insn;
	uint32_t first = s->encoding == CULPRIT_LEGACY || s->opcode == 0x12e || s->opcode == 0x12f
				 ? i->reg & 15
				 : i->vvvv & 15;

	if (s->encoding == CULPRIT_EVEX)
		return; /* registers 16 to 31 are not told apart */
	if (all->known_xmm >> first & 1) {
		memcpy(s->vector[0], all->xmm[first], sizeof s->vector[0]);
		s->has |= CULPRIT_HAS_VECTOR0;
	}
	if (!i->memory && all->known_xmm >> (i->rm & 15) & 1) {
		memcpy(s->vector[1], all->xmm[i->rm & 15], sizeof s->vector[1]);
		s->has |= CULPRIT_HAS_VECTOR1;
	}
}

static bool drains(const struct culprit_step *s, const struct interp_insn *i, uint32_t op)
{
	return i->prefix & INTERP_P_LOCK || (op == INTERP_OP_XCHG && i->memory) ||
	       s->opcode == 0x1a2 || /* cpuid */
	       (s->opcode == 0x1ae && s->prefix == CULPRIT_NONE && s->modrm >= 0xf0 &&
		       s->modrm < 0xf8); /* mfence */
}

static uint32_t translate(uint32_t had)
{
	static const struct {
		uint32_t ours, theirs;
	} bits[] = {
		{INTERP_HAS_VALUE, CULPRIT_HAS_VALUE},
		{INTERP_HAS_SOURCE, CULPRIT_HAS_SOURCE},
		{INTERP_BRANCH, CULPRIT_BRANCH},
		{INTERP_INDIRECT, CULPRIT_INDIRECT},
		{INTERP_CALL, CULPRIT_CALL},
		{INTERP_RETURN, CULPRIT_RETURN},
		{INTERP_JUMP, CULPRIT_JUMP},
	};
	uint32_t has = 0;

	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		has |= had & bits[i].ours ? bits[i].theirs : 0;
	return has;
}

/* ---- bursts ---- */

void steps_begin(struct steps *s)
{
	s->n = 0;
	s->position = 0;
	s->seen = false;
}

void steps_look(struct steps *s, const struct interp *m)
{
	memcpy(s->registers, m->r, sizeof s->registers);
	memcpy(s->xmm, m->xmm, sizeof s->xmm);
	s->unknown = m->unknown | m->unknown_low;
	s->known_xmm = m->known_xmm;
	s->seen = true;
}

struct culprit_step *steps_add(struct steps *s, const struct interp *m)
{
	struct culprit_step *to = s->n < STEPS_MAX ? &s->step[s->n++] : NULL;
	const struct interp_effect *e = &m->effect;
	uint64_t position = s->position++;

	if (!to)
		return NULL;
	memset(to, 0, sizeof *to);
	to->pc = e->ip;
	to->next = e->next;
	to->value = e->value;
	to->source = e->source;
	to->size = e->size;
	to->index = (uint16_t)position;
	to->length = e->length <= 15 ? e->length : 15;
	memcpy(to->code, m->code, to->length);
	to->has = translate(e->has);
	if (s->seen) {
		memcpy(to->registers, s->registers, sizeof to->registers);
		to->known = (uint16_t)~s->unknown;
	}
	read_encoding(to, &m->insn);
	read_registers(to, &m->insn, e->op);
	read_memory(to, m, e->op);
	if (s->seen && e->op >= INTERP_OP_XMOV && e->op <= INTERP_OP_RESULT)
		read_vectors(to, s, m);
	if (drains(to, &m->insn, e->op))
		to->has |= CULPRIT_DRAINS;
	steps_look(s, m);
	return to;
}

/* A return tells where all were that ran at its depth since the last call there. */
static void spread_back(struct steps *s, size_t at, uint64_t target)
{
	int depth = 0;

	for (size_t i = at + 1; i-- > 0;) {
		struct culprit_step *step = &s->step[i];

		if (i != at && step->has & CULPRIT_RETURN)
			depth++;
		else if (step->has & CULPRIT_CALL)
			depth--;
		if (depth < 0)
			return; /* that call came here from outside, or its context is known */
		if (depth == 0 && !step->context)
			step->context = target;
	}
}

void steps_contexts(struct steps *s)
{
	uint64_t stack[STEPS_MAX];
	size_t depth = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct culprit_step *step = &s->step[i];

		step->context = depth ? stack[depth - 1] : 0;
		if (step->has & CULPRIT_CALL)
			stack[depth++] = step->pc + step->length;
		else if (step->has & CULPRIT_RETURN && depth)
			depth--;
		else if (step->has & CULPRIT_RETURN)
			spread_back(s, i, step->next);
	}
}
