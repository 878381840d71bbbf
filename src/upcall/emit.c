#include "upcall/upcall_internal.h"

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
