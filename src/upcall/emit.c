#include "upcall/upcall_internal.h"
#include "values/values.h"

void upcall_emit_begin(struct upcall_thread *t)
{
	t->head = atomic_load_explicit(&t->ring->head, memory_order_relaxed);
	t->count = 0;
}

void upcall_emit(
	struct upcall_thread *t, uint32_t kind, uint64_t pc, uint64_t value, uint64_t context)
{
	uint64_t at = t->head + 1 + t->count;
	uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);

	if (at - tail >= UPCALL_UNITS) {
		upcall_add(&upcall_process.shared->sums.dropped, 1);
		return;
	}
	t->ring->unit[at % UPCALL_UNITS] = (struct upcall_unit){
		.word = {pc, value, context}, .kind = kind, .mark = UPCALL_VALUE};
	t->count++;
}

void upcall_emit_end(struct upcall_thread *t)
{
	if (!t->count)
		return;
	t->ring->unit[t->head % UPCALL_UNITS] = (struct upcall_unit){
		.word = {t->time, (uint64_t)t->pid << 32 | (uint32_t)t->tid, t->cpu},
		.kind = t->count,
		.mark = UPCALL_BURST};
	atomic_store_explicit(&t->ring->head, t->head + 1 + t->count, memory_order_release);
}

static bool accesses(const struct culprit_step *s)
{
	return s->has & (CULPRIT_LOADS | CULPRIT_STORES);
}

static uint64_t address_of(const struct culprit_step *s)
{
	return s->has & CULPRIT_LOADS ? s->load : s->store;
}

/* From the last time that the burst came by the same instruction. */
static void emit_stride(struct upcall_thread *t, size_t at)
{
	const struct culprit_step *s = &t->steps.step[at];

	for (size_t i = at; i-- > 0;) {
		const struct culprit_step *before = &t->steps.step[i];

		if (before->pc == s->pc && accesses(before)) {
			upcall_emit(t, VALUE_STRIDE, s->pc, address_of(s) - address_of(before),
				s->context);
			return;
		}
	}
}

/* The arguments of a procedure that is called in this burst. */
static void emit_entry(struct upcall_thread *t, const struct culprit_step *call)
{
	static const uint8_t argument[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

	for (unsigned i = 0; i < 6; i++) {
		if (call->known >> argument[i] & 1)
			upcall_emit(t, VALUE_ENTRY0 + i, call->next, call->registers[argument[i]],
				call->pc + call->length);
	}
}

static bool is_repeated_string(const struct culprit_step *s)
{
	return s->prefix >= CULPRIT_F3 && s->known >> INTERP_RCX & 1 &&
	       ((s->opcode >= 0xa4 && s->opcode <= 0xa7) ||
		       (s->opcode >= 0xaa && s->opcode <= 0xaf));
}

static void emit_step(struct upcall_thread *t, size_t at)
{
	const struct culprit_step *s = &t->steps.step[at];

	if (s->has & CULPRIT_HAS_VALUE)
		upcall_emit(t, VALUE_RESULT, s->pc, s->value, s->context);
	if (s->has & CULPRIT_HAS_SOURCE)
		upcall_emit(t, VALUE_SOURCE, s->pc, s->source, s->context);
	if (accesses(s)) {
		upcall_emit(t, VALUE_ADDRESS, s->pc, address_of(s), s->context);
		emit_stride(t, at);
	}
	if (s->has & CULPRIT_CALL)
		emit_entry(t, s);
	if (is_repeated_string(s))
		upcall_emit(t, VALUE_LENGTH, s->pc, s->registers[INTERP_RCX], s->context);
}

void upcall_emit_values(struct upcall_thread *t)
{
	const struct upcall_orders *o = &upcall_process.shared->orders;

	for (size_t i = 0; i < t->steps.n; i++) {
		const struct culprit_step *s = &t->steps.step[i];

		if (o->values)
			emit_step(t, i);
		if (o->edges && s->has & (CULPRIT_BRANCH | CULPRIT_INDIRECT))
			upcall_emit(t, UPCALL_EDGE, s->pc, s->next, s->context);
	}
}
