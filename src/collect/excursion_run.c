/*
 * The program's vector registers are in the chip while this runs: nothing here may use them, nor
 * call what does. Only what stands under "strangers" (excursion_memory.h) may, with vectors out.
 */
#pragma GCC target("general-regs-only")
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#include "collect/excursion_memory.h"

/* As form.h numbers them, which is not included for what it includes. */
enum { RAX, RCX, RSP = 4, RBP, RSI, RDI, NONE = 0xff };

/* What string operations of an excursion may do, in bytes, and in what one by itself takes of it:
 * the thread is held for that long. */
#define STRING_MOST  (1u << 20)
#define ELEMENT_COST 16

/* ---- copies ---- */

static inline uint64_t address_of(const struct excursion *x, const struct transplant *t)
{
	const uint64_t *r = x->chip.state->r;
	uint64_t address = t->displacement;

	if (t->base != NONE)
		address += r[t->base];
	if (t->index != NONE)
		address += r[t->index] * t->scale;
	if (t->narrow)
		address = (uint32_t)address;
	if (t->segment)
		address += x->base[t->segment - 1];
	return address;
}

static inline bool run_copy(struct excursion *x, const struct excursion_copy *c)
{
	struct chip_state *s = x->chip.state;

	s->copy = c->place;
	x->chip.enter();
	if (!s->trapped)
		return true;
	x->end = EXCURSION_FAULT;
	return false;
}

static inline bool run_with_memory(struct excursion *x, const struct excursion_copy *c)
{
	const struct transplant *t = &c->t;
	uint64_t address = address_of(x, t);

	if (t->loads && !get(x, address, x->chip.state->operand, t->size))
		return false;
	return run_copy(x, c) && (!t->stores || put(x, address, x->chip.state->operand, t->size));
}

/* Bytes of an instruction may have changed since it was learnt. */
static bool is_as_learnt(struct excursion *x, const struct excursion_copy *c)
{
	for (unsigned i = 0; i < c->nbytes; i++) {
		const uint8_t *p = place_of(x, c->ip + i);

		if (!p || *p != c->bytes[i])
			return false;
	}
	return true;
}

/* What is readable of the code at an address. */
static unsigned read_code(struct excursion *x, uint64_t ip, uint8_t *to, unsigned most)
{
	unsigned n = 0;

	for (; n < most; n++) {
		const uint8_t *p = place_of(x, ip + n);

		if (!p)
			break;
		((volatile uint8_t *)to)[n] = *p;
	}
	return n;
}

static bool learn(struct excursion *x, struct excursion_copy *c, uint64_t ip)
{
	uint8_t code[EXCURSION_BYTES];
	unsigned n = read_code(x, ip, code, sizeof code);
	bool known;

	to_strangers(x);
	known = excursion_learn(x, c, ip, code, n);
	from_strangers(x);
	return known;
}

static inline const struct excursion_copy *copy_at(struct excursion *x, uint64_t ip)
{
	struct excursion_copy *c = &x->copies[scatter(ip) % EXCURSION_COPIES];

	if (c->ip == ip && c->epoch == x->epoch)
		return c;
	if (!(c->ip == ip && c->n && is_as_learnt(x, c)) && !learn(x, c, ip)) {
		c->n = 0;
		return 0;
	}
	c->epoch = x->epoch;
	return c;
}

/* ---- where it goes ---- */

static bool add_edge(struct excursion *x, uint64_t from, uint64_t to)
{
	struct excursion_place *p = &x->places[scatter(from ^ to << 1) % EXCURSION_EDGES];

	while (p->epoch == x->part && (p->edge.from != from || p->edge.to != to))
		if (++p == x->places + EXCURSION_EDGES)
			p = x->places;
	if (p->epoch != x->part) {
		if (x->nedges == EXCURSION_EDGES / 2) {
			x->end = EXCURSION_ROOM;
			return false;
		}
		x->found[x->nedges++] = (uint32_t)(p - x->places);
		p->epoch = x->part;
		p->edge.from = from;
		p->edge.to = to;
		p->edge.count = 0;
	}
	p->edge.count++;
	return true;
}

static inline bool is_true(const struct chip_state *s, unsigned condition)
{
	uint64_t f = s->flags;
	bool is, less = !(f & CHIP_SF) != !(f & CHIP_OF);

	switch (condition >> 1) {
	case 0:
		is = f & CHIP_OF;
		break;
	case 1:
		is = f & CHIP_CF;
		break;
	case 2:
		is = f & CHIP_ZF;
		break;
	case 3:
		is = f & (CHIP_CF | CHIP_ZF);
		break;
	case 4:
		is = f & CHIP_SF;
		break;
	case 5:
		is = f & CHIP_PF;
		break;
	case 6:
		is = less;
		break;
	default:
		is = less || f & CHIP_ZF;
		break;
	}
	return is != (condition & 1);
}

static bool is_taken(struct chip_state *s, unsigned condition)
{
	bool zero = s->flags & CHIP_ZF;

	if (condition < TRANSPLANT_LOOPNE)
		return is_true(s, condition);
	if (condition == TRANSPLANT_RCXZ)
		return !s->r[RCX];
	s->r[RCX]--;
	return s->r[RCX] &&
	       (condition == TRANSPLANT_LOOP || zero == (condition == TRANSPLANT_LOOPE));
}

static bool push(struct excursion *x, uint64_t value)
{
	uint64_t *sp = &x->chip.state->r[RSP];

	if (!put(x, *sp - 8, &value, 8))
		return false;
	*sp -= 8;
	return true;
}

static bool pop(struct excursion *x, uint64_t *value)
{
	uint64_t *sp = &x->chip.state->r[RSP];

	if (!get(x, *sp, value, 8))
		return false;
	*sp += 8;
	return true;
}

/* Of a transfer, a push: a register or memory. */
static bool value_of(struct excursion *x, const struct transplant *t, uint64_t *value)
{
	if (t->size)
		return get(x, address_of(x, t), value, 8);
	*value = t->reg == NONE ? t->target : x->chip.state->r[t->reg];
	return true;
}

static bool go_indirect(struct excursion *x, const struct transplant *t, uint64_t next)
{
	bool call = t->kind == TRANSPLANT_CALL_INDIRECT;
	uint64_t to;

	if (!value_of(x, t, &to) || (call && !push(x, next)))
		return false;
	x->ip = to;
	if (add_edge(x, next - t->length, to))
		return true;
	x->chip.state->r[RSP] += call ? 8 : 0;
	return false;
}

static bool go_back(struct excursion *x, const struct transplant *t, uint64_t next)
{
	uint64_t *sp = &x->chip.state->r[RSP], to;

	if (!get(x, *sp, &to, 8) || !add_edge(x, next - t->length, to))
		return false;
	*sp += 8 + t->target;
	x->ip = to;
	return true;
}

static bool go_on(struct excursion *x, const struct transplant *t, uint64_t next)
{
	uint64_t *count = &x->chip.state->r[RCX], before = *count;

	x->ip = is_taken(x->chip.state, t->condition) ? t->target : next;
	if (add_edge(x, next - t->length, x->ip))
		return true;
	*count = before;
	return false;
}

/* pop computes its address with the stack pointer that it leaves. */
static bool pop_to(struct excursion *x, const struct transplant *t)
{
	uint64_t value;

	if (!pop(x, &value))
		return false;
	if (!t->size) {
		x->chip.state->r[t->reg] = value;
		return true;
	}
	if (put(x, address_of(x, t), &value, 8))
		return true;
	x->chip.state->r[RSP] -= 8;
	return false;
}

static bool leave(struct excursion *x)
{
	uint64_t *r = x->chip.state->r, value;

	if (!get(x, r[RBP], &value, 8))
		return false;
	r[RSP] = r[RBP] + 8;
	r[RBP] = value;
	return true;
}

/* ---- string operations ---- */

static void compare(struct chip_state *s, uint64_t a, uint64_t b, unsigned size)
{
	unsigned shift = 64 - 8 * size;
	uint64_t left = a << shift, right = b << shift, d = left - right;
	uint64_t flags = 0;

	flags |= left < right ? CHIP_CF : 0;
	flags |= d ? 0 : CHIP_ZF;
	flags |= d >> 63 ? CHIP_SF : 0;
	flags |= ((left ^ right) & (left ^ d)) >> 63 ? CHIP_OF : 0;
	flags |= __builtin_parityll((a - b) & 0xff) ? 0 : CHIP_PF;
	flags |= (a ^ b ^ (a - b)) & 0x10 ? 0x1000 : 0; /* AF */
	s->flags = flags;
}

static bool string_element(struct excursion *x, const struct transplant *t, int64_t step)
{
	struct chip_state *s = x->chip.state;
	bool from = t->kind == TRANSPLANT_MOVS || t->kind == TRANSPLANT_LODS ||
		    t->kind == TRANSPLANT_CMPS;
	bool to = t->kind != TRANSPLANT_LODS;
	uint64_t a = from ? 0 : s->r[RAX], b = 0;

	if (from && !get(x, s->r[RSI], &a, t->size))
		return false;
	if (t->kind == TRANSPLANT_MOVS || t->kind == TRANSPLANT_STOS) {
		if (!put(x, s->r[RDI], &a, t->size))
			return false;
	} else if (to) {
		if (!get(x, s->r[RDI], &b, t->size))
			return false;
		compare(s, a, b, t->size);
	} else {
		uint64_t mask = t->size == 8 ? ~0ull : (1ull << 8 * t->size) - 1;

		s->r[RAX] = t->size == 4 ? a : (s->r[RAX] & ~mask) | (a & mask);
	}
	s->r[RSI] += from ? (uint64_t)step : 0;
	s->r[RDI] += to ? (uint64_t)step : 0;
	return true;
}

/* Elements at the front that lie in one page, or two, and may be done together. */
static uint64_t string_front(const struct excursion *x, const struct transplant *t)
{
	const uint64_t *r = x->chip.state->r;
	uint64_t room = PAGE - r[RDI] % PAGE, n;

	if (x->down || (t->kind != TRANSPLANT_STOS && t->kind != TRANSPLANT_MOVS))
		return 0;
	if (t->kind == TRANSPLANT_MOVS && r[RDI] - r[RSI] < 8)
		return 0; /* what is stored is loaded again */
	if (t->kind == TRANSPLANT_MOVS && room > PAGE - r[RSI] % PAGE)
		room = PAGE - r[RSI] % PAGE;
	n = room / t->size;
	return n < r[RCX] ? n : r[RCX];
}

static void fill_bytes(uint8_t *to, uint64_t element, unsigned size, unsigned n)
{
	for (unsigned i = size; i < 8; i *= 2)
		element = element << 8 * i | (element & ((1ull << 8 * i) - 1));
	for (; n >= 8; n -= 8, to += 8)
		*(volatile word *)to = element;
	for (; n; n--, to++, element >>= 8)
		*(volatile uint8_t *)to = (uint8_t)element;
}

/* How many are done; 0: the next one is to be done by itself, or cannot be. */
static uint64_t string_together(struct excursion *x, const struct transplant *t)
{
	uint64_t *r = x->chip.state->r, n = string_front(x, t);
	uint8_t *to = n ? place_of(x, r[RDI]) : 0;
	const uint8_t *from = to && t->kind == TRANSPLANT_MOVS ? place_of(x, r[RSI]) : to;

	if (!from)
		return 0;
	touch_lines(x, r[RDI], n * t->size, false);
	if (from != to)
		touch_lines(x, r[RSI], n * t->size, true);
	if (t->kind == TRANSPLANT_MOVS)
		copy_bytes(to, from, (unsigned)n * t->size);
	else
		fill_bytes(to, r[RAX], t->size, (unsigned)n * t->size);
	r[RDI] += n * t->size;
	r[RSI] += t->kind == TRANSPLANT_MOVS ? n * t->size : 0;
	r[RCX] -= n;
	x->strung += n * t->size;
	return n;
}

static bool string(struct excursion *x, const struct transplant *t)
{
	struct chip_state *s = x->chip.state;
	int64_t step = x->down ? -(int64_t)t->size : (int64_t)t->size;
	bool compares = t->kind == TRANSPLANT_SCAS || t->kind == TRANSPLANT_CMPS;

	if (t->repeat == TRANSPLANT_ONCE)
		return string_element(x, t, step);
	while (s->r[RCX]) {
		if (x->strung >= STRING_MOST || (!compares && s->r[RCX] > STRING_MOST)) {
			x->end = EXCURSION_ROOM;
			return false;
		}
		if (string_together(x, t))
			continue;
		if (!string_element(x, t, step))
			return false;
		s->r[RCX]--;
		x->strung += ELEMENT_COST;
		if (compares && !(s->flags & CHIP_ZF) != (t->repeat == TRANSPLANT_REPEAT_NOT))
			break;
	}
	return true;
}

/* ---- the walk ---- */

static bool step(struct excursion *x, const struct excursion_copy *c)
{
	const struct transplant *t = &c->t;
	uint64_t next = x->ip + c->nbytes, value;

	switch (t->kind) {
	case TRANSPLANT_COPY:
		x->ip = next;
		return t->size ? run_with_memory(x, c) : run_copy(x, c);
	case TRANSPLANT_BRANCH:
		return go_on(x, t, next);
	case TRANSPLANT_CALL:
		if (!push(x, next))
			return false;
		x->ip = t->target;
		return true;
	case TRANSPLANT_JUMP:
		x->ip = t->target;
		return true;
	case TRANSPLANT_CALL_INDIRECT:
	case TRANSPLANT_JUMP_INDIRECT:
		return go_indirect(x, t, next);
	case TRANSPLANT_RETURN:
		return go_back(x, t, next);
	default:
		break;
	}
	x->ip = next;
	switch (t->kind) {
	case TRANSPLANT_SKIP:
		return true;
	case TRANSPLANT_ADDRESS:
		value = address_of(x, t);
		x->chip.state->r[t->reg] = t->reg_size == 4 ? (uint32_t)value : value;
		return true;
	case TRANSPLANT_DIRECTION:
		x->down = t->target;
		return true;
	case TRANSPLANT_PUSH:
		return value_of(x, t, &value) && push(x, value);
	case TRANSPLANT_POP:
		return pop_to(x, t);
	case TRANSPLANT_LEAVE:
		return leave(x);
	case TRANSPLANT_STOP:
		x->end = EXCURSION_STOPPED;
		return false;
	default:
		return string(x, t);
	}
}

/* Of a row that trapped what stands in front is done: such copies are as long as the program's. */
static void pass_some(struct excursion *x, const struct excursion_copy *c)
{
	uint64_t passed = x->chip.state->trapped - c->place;

	x->ip += passed;
	to_strangers(x);
	x->done += excursion_count(c, passed);
	from_strangers(x);
}

/* An instruction that cannot be done is not counted, and is where the walk stands. */
static void walk(struct excursion *x, uint64_t instructions)
{
	while (x->done < instructions) {
		const struct excursion_copy *c = copy_at(x, x->ip);

		x->at = x->ip;
		if (c)
			fetch_lines(x, c);
		if (!c || !step(x, c)) {
			x->ip = x->at;
			if (x->chip.state->trapped)
				pass_some(x, c);
			return;
		}
		x->done += c->n;
	}
	x->end = EXCURSION_DONE;
}

/* With the program's vectors from here to the end of the walk. */
void excursion_walk(struct excursion *x, const void *vectors, uint64_t instructions)
{
	keep_vectors(x->own);
	take_vectors(vectors);
	walk(x, instructions);
	keep_vectors(x->vectors);
	take_vectors(x->own);
}
