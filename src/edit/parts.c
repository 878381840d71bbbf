#include "edit/edit_internal.h"

/* From one part a jump leads to the other, whose offsets count from its own start. */
static void keep_fixups(struct body *b, const struct snippet_code *c, size_t from, size_t to)
{
	vec_each (x, &c->fixups) {
		if (x->offset < from || x->offset >= to)
			continue;
		struct snippet_fixup *kept = vec_add(&b->fixups);
		*kept = *x;
		kept->offset -= (uint32_t)from;
		kept->end -= (uint32_t)from;
		kept->target -= x->across && !from ? to : 0;
	}
}

static void keep_shifts(struct body *b, const struct snippet_code *c, size_t from, size_t to)
{
	vec_each (s, &c->shifts)
		if (s->offset >= from && s->offset < to)
			*vec_add(&b->shifts) =
				(struct snippet_shift){s->offset - (uint32_t)from, s->pushed};
}

uint32_t body_keep_code(struct body *b, const struct snippet_code *c, size_t from, size_t to)
{
	struct code kept = {.offset = (uint32_t)b->bytes.n,
		.size = (uint32_t)(to - from),
		.first_fixup = (uint32_t)b->fixups.n,
		.first_shift = (uint32_t)b->shifts.n};

	buf_put(&b->bytes, c->bytes.p + from, to - from);
	keep_fixups(b, c, from, to);
	keep_shifts(b, c, from, to);
	kept.fixups = (uint32_t)b->fixups.n - kept.first_fixup;
	kept.shifts = (uint32_t)b->shifts.n - kept.first_shift;
	*vec_add(&b->codes) = kept;
	return (uint32_t)b->codes.n - 1;
}
