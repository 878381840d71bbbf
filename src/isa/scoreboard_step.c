#include "isa/scoreboard_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- slots and schedulers ---- */

static void slots_init(struct slots *s, uint32_t size)
{
	s->size = size;
	s->when = size ? xcalloc(size, sizeof *s->when) : NULL;
}

static void slots_reset(struct slots *s)
{
	s->taken = 0;
}

/* From which cycle on n are free at once. */
static uint32_t slots_free(const struct slots *s, uint32_t n)
{
	if (n > s->size)
		n = s->size;
	if (!n || s->taken + n <= s->size)
		return 0;
	return s->when[(s->taken + n - 1) % s->size];
}

static void slots_take(struct slots *s, uint32_t n, uint32_t until)
{
	if (n > s->size)
		n = s->size;
	for (uint32_t i = 0; i < n; i++)
		s->when[s->taken++ % s->size] = until;
}

static void scheduler_drop(struct scheduler *s)
{
	uint32_t last = s->when[--s->n], at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < s->n && s->when[child + 1] < s->when[child])
			child++;
		if (child >= s->n || s->when[child] >= last)
			break;
		s->when[at] = s->when[child];
		at = child;
	}
	s->when[at] = last;
}

/* From which cycle on, not before `now`, an entry is free. */
static uint32_t scheduler_free(struct scheduler *s, uint32_t now)
{
	while (s->n && s->when[0] <= now)
		scheduler_drop(s);
	return s->n < s->size ? now : s->when[0];
}

static void scheduler_take(struct scheduler *s, uint32_t until)
{
	uint32_t at;

	if (s->n == s->size) /* the earliest leaves as this one enters */
		scheduler_drop(s);
	for (at = s->n++; at && s->when[(at - 1) / 2] > until; at = (at - 1) / 2)
		s->when[at] = s->when[(at - 1) / 2];
	s->when[at] = until;
}

/* ---- entering the window ---- */

/* A move that renaming does: what it writes is there when what it reads is. */
static bool try_eliminate(struct scoreboard *s, const struct model_insn *in)
{
	unsigned vector, limit;

	if (!(in->flags & MODEL_MOVE) || in->nreads != 1 || in->nwrites != 1)
		return false;
	vector = in->write[0].reg >= MODEL_VECTOR;
	limit = vector ? s->limits->vector_moves : s->limits->integer_moves;
	if (!limit || (!s->ideal && s->moves[vector] >= limit))
		return false;
	s->moves[vector]++;
	return true;
}

static void later(
	uint32_t *when, uint32_t other, struct scoreboard_insn *out, enum scoreboard_wait wait)
{
	if (other <= *when)
		return;
	*when = other;
	out->wait = wait;
	out->on = -1;
}

static unsigned count_writes(const struct model_insn *in, bool vector)
{
	unsigned n = 0;

	for (unsigned i = 0; i < in->nwrites; i++)
		n += (in->write[i].reg >= MODEL_VECTOR) == vector;
	return n;
}

static void count_places(const struct model_insn *in, unsigned *loads, unsigned *stores)
{
	*loads = *stores = 0;
	for (unsigned i = 0; i < in->nplaces; i++) {
		*loads |= in->place[i].loads;
		*stores |= in->place[i].stores;
	}
}

static uint32_t enter(struct scoreboard *s, const struct model_insn *in, const struct part *p,
	struct scoreboard_insn *out)
{
	uint32_t width = s->limits->width, need = p->uops < width ? p->uops : width;
	uint32_t now = s->cycle;
	unsigned loads, stores;

	count_places(in, &loads, &stores);
	if (s->room < need)
		later(&now, s->cycle + 1, out, SCOREBOARD_FRONT);
	later(&now, slots_free(&s->window, p->uops ? p->uops : 1), out, SCOREBOARD_WINDOW);
	later(&now, slots_free(&s->registers[0], count_writes(in, false)), out,
		SCOREBOARD_REGISTERS);
	later(&now, slots_free(&s->registers[1], count_writes(in, true)), out,
		SCOREBOARD_REGISTERS);
	later(&now, slots_free(&s->loads, loads), out, SCOREBOARD_MEMORY);
	later(&now, slots_free(&s->stores, stores), out, SCOREBOARD_MEMORY);
	later(&now, s->barrier, out, SCOREBOARD_ORDER);
	for (unsigned i = 0; i < s->limits->nqueues; i++)
		if (in->queues & 1u << i)
			later(&now, scheduler_free(&s->scheduler[i], now), out, SCOREBOARD_QUEUE);

	if (now > s->cycle) {
		s->moves[0] = s->moves[1] = 0;
		s->room = width;
	}
	s->cycle = now;
	if (p->uops > width) {
		s->cycle = now + 1 + (p->uops - width) / width;
		s->room = width - (p->uops - width) % width;
	} else {
		s->room -= need;
	}
	return now;
}

/* ---- memory ---- */

static struct symbol place_symbol(
	const struct scoreboard *s, const struct model_place *p, uint32_t position, uint32_t *index)
{
	struct symbol sum = {0, p->displacement};

	*index = 0;
	if (p->base < 16)
		sum = (struct symbol){s->symbol[p->base].unknown,
			(int64_t)((uint64_t)s->symbol[p->base].plus + (uint64_t)p->displacement)};
	else
		sum.plus += position; /* relative to the instruction, or absolute: never both */
	if (p->index < 16) {
		*index = s->symbol[p->index].unknown;
		sum.plus = (int64_t)((uint64_t)sum.plus +
				     (uint64_t)s->symbol[p->index].plus * p->scale);
	}
	return sum;
}

static bool overlaps(int64_t a, unsigned na, int64_t b, unsigned nb)
{
	return a < b ? (uint64_t)b - (uint64_t)a < na : (uint64_t)a - (uint64_t)b < nb;
}

/* The last store to the same place, by how both write their addresses. */
static const struct stored *find_store(
	const struct scoreboard *s, const struct model_place *p, uint32_t position)
{
	uint32_t index, n = s->nstored < SCOREBOARD_STORES ? s->nstored : SCOREBOARD_STORES;
	struct symbol at = place_symbol(s, p, position, &index);

	for (uint32_t i = 1; i <= n; i++) {
		const struct stored *w = &s->stored[(s->nstored - i) % SCOREBOARD_STORES];

		if (w->base.unknown == at.unknown && w->index == index &&
			(!index || w->scale == p->scale) && w->segment == p->segment &&
			overlaps(w->base.plus, w->size, at.plus, p->size))
			return w;
	}
	return NULL;
}

static void remember_store(struct scoreboard *s, const struct model_place *p, uint32_t position,
	uint32_t complete, int64_t number)
{
	struct stored *w = &s->stored[s->nstored++ % SCOREBOARD_STORES];

	w->base = place_symbol(s, p, position, &w->index);
	w->scale = p->scale;
	w->segment = p->segment;
	w->size = p->size;
	w->complete = complete;
	w->number = number;
}

/* Registers that it writes become something new, or what they were and a constant. */
static void follow_registers(struct scoreboard *s, const struct model_insn *in)
{
	for (unsigned i = 0; i < in->nwrites; i++) {
		uint8_t reg = in->write[i].reg;

		if (reg < 16 && reg != in->moved)
			s->symbol[reg] = (struct symbol){++s->symbols, 0};
	}
	if (in->moved < 16)
		s->symbol[in->moved].plus =
			(int64_t)((uint64_t)s->symbol[in->moved].plus + (uint64_t)in->by);
}

/* ---- operands ---- */

static void wait_for(struct scoreboard *s, uint32_t *ready, uint32_t when, int64_t writer,
	uint32_t round, enum scoreboard_wait wait, struct scoreboard_insn *out)
{
	if (when <= *ready)
		return;
	*ready = when;
	out->wait = wait;
	s->waited_for = writer;
	out->on = (int32_t)(writer % (int64_t)s->n);
	out->carried = writer / (int64_t)s->n < round;
}

static uint32_t operands(struct scoreboard *s, const struct model_insn *in, uint32_t ready,
	uint32_t round, struct scoreboard_insn *out)
{
	for (unsigned i = 0; i < in->nreads; i++) {
		uint8_t reg = in->read[i].reg;
		int64_t when = (int64_t)s->ready[reg] - in->read[i].late;

		if (s->writer[reg] >= 0 && when > 0)
			wait_for(s, &ready, (uint32_t)when, s->writer[reg], round,
				SCOREBOARD_OPERAND, out);
	}
	return ready;
}

/*
 * Whether a load does nothing but take what a store has, which some cores do when renaming. Wide
 * enough must the store be, and its address written in the same way.
 */
static bool is_renamed(const struct scoreboard *s, const struct model_insn *in,
	const struct model_place *p, uint32_t position, const struct stored *w)
{
	uint32_t index;

	return s->limits->renames_memory && in->nplaces == 1 && !p->stores && in->nwrites == 1 &&
	       in->write[0].reg < 16 && p->size == w->size &&
	       place_symbol(s, p, position, &index).plus == w->base.plus;
}

/*
 * Without corrections memory is as llvm-mca has it: stores begin in order, and after loads. A load
 * that is renamed waits for nothing; *renamed becomes when its value is there.
 */
static uint32_t memory(struct scoreboard *s, const struct model_insn *in, uint32_t position,
	uint32_t ready, uint32_t round, uint32_t *renamed, struct scoreboard_insn *out)
{
	for (unsigned i = 0; i < in->nplaces; i++) {
		const struct model_place *p = &in->place[i];

		if (s->plain) {
			if (p->stores)
				later(&ready, s->last_memory, out, SCOREBOARD_ORDER);
		} else if (p->loads) {
			const struct stored *w = find_store(s, p, position);

			if (w && is_renamed(s, in, p, position, w))
				*renamed = w->complete - 1;
			else if (w)
				wait_for(s, &ready, w->complete, w->number, round, SCOREBOARD_STORE,
					out);
		}
	}
	return ready;
}

/* ---- units ---- */

static void advance(struct scoreboard *s, uint32_t floor)
{
	if (floor > s->top)
		floor = s->top;
	for (; s->floor < floor; s->floor++)
		s->taken[s->floor % SCOREBOARD_AHEAD] = 0;
	if (s->floor == s->top)
		s->top = s->floor;
}

/* Which of the units are free for so long from then on. */
static uint32_t free_units(
	const struct scoreboard *s, uint32_t units, uint32_t from, unsigned cycles)
{
	for (unsigned i = 0; i < cycles && units && from + i < s->top; i++)
		units &= ~s->taken[(from + i) % SCOREBOARD_AHEAD];
	return units;
}

/* The unit of a group that has done least. */
static uint32_t choose(const struct scoreboard *s, uint32_t units)
{
	uint32_t best = 0, least = UINT32_MAX;

	for (; units; units &= units - 1) {
		unsigned unit = (unsigned)__builtin_ctz(units);

		if (s->work[unit] < least) {
			least = s->work[unit];
			best = 1u << unit;
		}
	}
	return best;
}

static void book(struct scoreboard *s, uint32_t from, unsigned cycles, uint32_t units)
{
	if (from + cycles > s->top)
		s->top = from + cycles;
	for (unsigned i = 0; i < cycles; i++)
		s->taken[(from + i) % SCOREBOARD_AHEAD] |= units;
	for (; units; units &= units - 1)
		s->work[__builtin_ctz(units)] += cycles;
}

/*
 * Whether all that it needs is free at `when`; chosen[] gets the units. Its own needs share a unit
 * where there are more of them than units.
 */
static bool fits(const struct scoreboard *s, const struct part *p, uint32_t when, uint32_t *chosen,
	uint8_t *lacks)
{
	uint32_t own = 0;

	for (unsigned i = 0; i < p->nuses; i++) {
		unsigned cycles = p->use[i].cycles & ~MODEL_WHOLE;
		uint32_t units = model_group(s->model, p->use[i].group).units;
		uint32_t available = free_units(s, units, when, cycles);

		if (p->use[i].cycles & MODEL_WHOLE)
			chosen[i] = available == units ? units : 0;
		else
			chosen[i] = choose(s, available & ~own ? available & ~own : available);
		if (!chosen[i] && units) {
			*lacks = p->use[i].group;
			return false;
		}
		own |= chosen[i];
	}
	return true;
}

static uint32_t issue(
	struct scoreboard *s, const struct part *p, uint32_t ready, struct scoreboard_insn *out)
{
	uint32_t chosen[MODEL_USES], when = ready;
	uint8_t lacks;

	while (!fits(s, p, when, chosen, &lacks)) {
		when++;
		out->wait = SCOREBOARD_UNIT;
		out->group = lacks;
		out->on = -1;
	}
	if (when + 256 < s->floor + SCOREBOARD_AHEAD)
		for (unsigned i = 0; i < p->nuses; i++)
			book(s, when, p->use[i].cycles & ~MODEL_WHOLE, chosen[i]);
	return when;
}

/* ---- leaving ---- */

/* One that was fused with the next leaves with it. */
static uint32_t retire(struct scoreboard *s, uint32_t complete, bool fused)
{
	if (complete > s->retired) {
		s->retired = complete;
		s->leaving = 0;
	}
	if (fused)
		return s->retired;
	if (s->limits->retire && s->leaving == s->limits->retire) {
		s->retired++;
		s->leaving = 0;
	}
	s->leaving++;
	return s->retired;
}

static void settle(struct scoreboard *s, const struct model_insn *in, const struct part *p,
	const struct scoreboard_insn *out)
{
	unsigned loads, stores;

	count_places(in, &loads, &stores);
	slots_take(&s->window, p->uops ? p->uops : 1, out->retire);
	slots_take(&s->registers[0], count_writes(in, false), out->retire);
	slots_take(&s->registers[1], count_writes(in, true), out->retire);
	slots_take(&s->loads, loads, out->retire);
	slots_take(&s->stores, stores, out->retire);
	for (unsigned i = 0; i < s->limits->nqueues && !s->ideal; i++)
		if (in->queues & 1u << i)
			scheduler_take(&s->scheduler[i], out->issue);
	if ((loads || stores) && out->issue > s->last_memory)
		s->last_memory = out->issue;
	if (out->complete > s->last_complete)
		s->last_complete = out->complete;
	if (in->flags & MODEL_SERIALISING)
		s->barrier = out->complete;
}

static void write_registers(
	struct scoreboard *s, const struct model_insn *in, uint32_t began, int64_t number)
{
	for (unsigned i = 0; i < in->nwrites; i++) {
		s->ready[in->write[i].reg] = began + in->write[i].latency;
		s->writer[in->write[i].reg] = number;
	}
}

/* ---- one instruction ---- */

static void execute(struct scoreboard *s, const struct model_insn *in, const struct part *p,
	int64_t number, struct scoreboard_insn *out)
{
	uint32_t round = (uint32_t)(number / (int64_t)s->n);
	bool pushes = in->moved < 16 && in->by < 0 && in->nplaces && in->place[0].stores;
	uint32_t renamed = 0;

	if (in->flags & MODEL_SERIALISING)
		later(&out->ready, s->last_complete, out, SCOREBOARD_ORDER);
	out->ready = operands(s, in, out->ready, round, out);
	if (pushes) /* the address is that of the new top */
		follow_registers(s, in);
	out->ready = memory(s, in, p->position, out->ready, round, &renamed, out);
	out->issue = s->ideal ? out->ready : issue(s, p, out->ready, out);
	out->complete = out->issue + (in->latency ? in->latency : 1);
	write_registers(s, in, out->issue, number);
	if (renamed)
		s->ready[in->write[0].reg] = renamed;
	for (unsigned k = 0; k < in->nplaces; k++)
		if (in->place[k].stores && !s->plain)
			remember_store(s, &in->place[k], p->position, out->complete, number);
	if (!pushes)
		follow_registers(s, in);
}

void scoreboard_step(struct scoreboard *s, size_t i, uint32_t round, struct scoreboard_insn *out)
{
	const struct model_insn *in = &s->insn[i];
	const struct part *p = &s->part[i];
	int64_t number = (int64_t)round * (int64_t)s->n + (int64_t)i;
	uint32_t before = s->retired;

	*out = (struct scoreboard_insn){.on = -1};
	s->waited_for = -1;
	if (!s->ideal) {
		out->enter = enter(s, in, p, out);
		advance(s, out->enter);
	}
	out->ready = out->issue = out->complete = out->enter + 1;
	if (try_eliminate(s, in)) {
		s->ready[in->write[0].reg] = s->ready[in->read[0].reg];
		s->writer[in->write[0].reg] = s->writer[in->read[0].reg];
		follow_registers(s, in);
	} else if (in->flags & MODEL_ELIMINATED) {
		write_registers(s, in, out->enter, number);
		follow_registers(s, in);
	} else {
		execute(s, in, p, number, out);
	}
	out->retire = retire(s, out->complete, p->fused);
	out->stall = out->retire - before;
	settle(s, in, p, out);
}

/* ---- a block ---- */

/* The compare of a fused pair takes no slot and no unit but a load's. */
static void fuse(struct part *p)
{
	unsigned widest = 0;

	p->fused = true;
	if (p->uops)
		p->uops--;
	for (unsigned i = 1; i < p->nuses; i++)
		if (p->use[i].group > p->use[widest].group)
			widest = i;
	if (p->nuses)
		p->use[widest] = p->use[--p->nuses];
}

void scoreboard_begin(struct scoreboard *s, const struct model_insn *insn, size_t n)
{
	uint32_t position = 0;

	s->insn = insn;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		struct part *p = &s->part[i];

		p->uops = insn[i].uops;
		p->nuses = insn[i].nuses;
		p->position = position;
		p->fused = false;
		memcpy(p->use, insn[i].use, sizeof p->use);
		position += insn[i].length;
		if (insn[i].flags & MODEL_FUSES && i + 1 < n && insn[i + 1].kind == INSN_BRANCH)
			fuse(p);
	}
	s->ideal = false;
	s->cycle = 0;
	s->room = s->limits->width;
	s->moves[0] = s->moves[1] = 0;
	s->retired = 1;
	s->leaving = 0;
	s->last_complete = s->barrier = s->last_memory = 0;
	slots_reset(&s->window);
	slots_reset(&s->loads);
	slots_reset(&s->stores);
	slots_reset(&s->registers[0]);
	slots_reset(&s->registers[1]);
	for (unsigned i = 0; i < s->limits->nqueues; i++)
		s->scheduler[i].n = 0;
	memset(s->ready, 0, sizeof s->ready);
	for (unsigned i = 0; i < MODEL_REGISTERS; i++)
		s->writer[i] = -1;
	for (unsigned i = 0; i < 16; i++)
		s->symbol[i] = (struct symbol){++s->symbols, 0};
	s->nstored = 0;
	advance(s, s->top);
	s->floor = s->top = 0;
	memset(s->work, 0, sizeof s->work);
}

struct scoreboard *scoreboard_create(const struct model *m)
{
	struct scoreboard *s = xcalloc(1, sizeof *s);

	s->model = m;
	s->limits = model_limits(m);
	s->plain = model_is_plain(m);
	slots_init(&s->window, s->limits->window);
	slots_init(&s->loads, s->limits->load_queue);
	slots_init(&s->stores, s->limits->store_queue);
	slots_init(&s->registers[0], s->limits->integers);
	slots_init(&s->registers[1], s->limits->vectors);
	for (unsigned i = 0; i < s->limits->nqueues; i++)
		s->scheduler[i].size = s->limits->queue[i];
	return s;
}

void scoreboard_destroy(struct scoreboard *s)
{
	if (!s)
		return;
	free(s->window.when);
	free(s->loads.when);
	free(s->stores.when);
	free(s->registers[0].when);
	free(s->registers[1].when);
	free(s);
}
