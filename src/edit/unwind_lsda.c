/*
 * The data of exceptions for new code: call sites as the new code has them, actions byte for byte,
 * types with pointers that lead to where the old ones led.
 */
#include "edit/unwind_internal.h"
#include "image/eh_pointer.h"

/* No function has that many steps through actions; a damaged table may go round for ever. */
enum { STEPS_MAX = 1 << 20 };

/* What of the tables behind the call sites is in use. */
struct tables {
	size_t actions_size;
	size_t types; /* number of */
	size_t specifications_size;
};

struct sites {
	VEC(struct lsda_site) list; /* by start */
};

/* ---- reading ---- */

static bool open_lsda(const struct unwind *u, const struct unwind_frame *f, struct lsda *out)
{
	vec_each (a, &u->lsdas) {
		uint64_t into = f->fde.lsda - a->vaddr;
		if (into < a->bytes.n)
			return !lsda_open(a->bytes.p + into, a->bytes.n - into, f->fde.lsda,
				f->fde.start, out);
	}
	return false;
}

static void use_type(struct tables *t, uint64_t type)
{
	if (type > t->types)
		t->types = type;
}

/* An exception specification: the types that may pass, and a 0. */
static void use_specification(const struct lsda *l, uint64_t at, struct tables *t, bool *failed)
{
	struct cursor c = l->bytes;
	uint64_t type;

	if (at > cursor_left(&c) || l->types_end > cursor_left(&c) - at) {
		*failed = true;
		return;
	}
	cursor_seek(&c, l->types_end + at);
	do {
		type = cursor_uleb(&c);
		use_type(t, type);
	} while (type && !c.failed);
	*failed |= c.failed;
	size_t size = cursor_offset(&c) - l->types_end;
	t->specifications_size = size > t->specifications_size ? size : t->specifications_size;
}

/* Follows the actions of one call site. */
static bool use_actions(const struct lsda *l, uint64_t action, struct tables *t, size_t *steps)
{
	struct cursor c = l->bytes;
	bool failed = false;
	int64_t next = (int64_t)(action - 1);

	while (!failed && ++*steps < STEPS_MAX) {
		if (next < 0 || (uint64_t)next > cursor_left(&l->bytes) - l->actions)
			return false;
		cursor_seek(&c, l->actions + (uint64_t)next);
		int64_t filter = cursor_sleb(&c);
		size_t place = cursor_offset(&c) - l->actions;
		int64_t distance = cursor_sleb(&c);
		size_t end = cursor_offset(&c) - l->actions;
		t->actions_size = end > t->actions_size ? end : t->actions_size;
		if (filter > 0)
			use_type(t, (uint64_t)filter);
		else if (filter < 0)
			use_specification(l, (uint64_t)(-1 - filter), t, &failed);
		failed |= c.failed || (filter && !l->types_end) || distance != (int32_t)distance;
		if (!distance)
			return !failed;
		next = (int64_t)place + distance;
	}
	return false;
}

static size_t type_size(uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_UDATA4:
	case PE_SDATA4:
		return 4;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return 8;
	}
	return 0;
}

/* The types lie between the actions and their end, and must be there. */
static bool types_fit(const struct lsda *l, const struct tables *t)
{
	size_t size = type_size(l->types), room;

	if (!t->types)
		return true;
	if (!size || l->types_end < l->actions + t->actions_size)
		return false;
	room = l->types_end - l->actions - t->actions_size;
	return t->types <= room / size;
}

static bool read_sites(struct lsda *l, struct sites *sites, struct tables *tables)
{
	struct lsda_site s;
	uint64_t last = 0;
	size_t steps = 0;

	while (lsda_next(l, &s)) {
		bool ascending =
			!sites->list.n || s.start >= sites->list.p[sites->list.n - 1].start;
		if (!ascending || s.start + s.size < s.start)
			return false;
		if (s.action && s.action != last && !use_actions(l, s.action, tables, &steps))
			return false;
		last = s.action;
		*vec_add(&sites->list) = s;
	}
	return !l->sites.failed && types_fit(l, tables);
}

/* One of the types, counted from 1: where it leads. */
static bool read_type(const struct unwind *u, const struct unwind_frame *f, const struct lsda *l,
	size_t type, uint8_t *encoding, uint64_t *target)
{
	struct cursor c = l->bytes;
	size_t offset = l->types_end - type * type_size(l->types);

	cursor_seek(&c, offset);
	uint64_t raw = eh_format_read(&c, l->types);
	return unwind_pointer(l->types, raw, f->fde.lsda + offset, u->fixed, encoding, target);
}

const char *unwind_check_lsda(const struct unwind *u, const struct unwind_frame *f)
{
	struct sites sites = {0};
	struct tables tables = {0};
	struct lsda l;
	uint8_t encoding;
	uint64_t target;

	bool good = open_lsda(u, f, &l) && read_sites(&l, &sites, &tables);
	for (size_t i = 1; good && i <= tables.types; i++)
		good = read_type(u, f, &l, i, &encoding, &target);
	vec_deinit(&sites.list);
	return good ? NULL : "exception data of an unknown kind";
}

/* ---- call sites ---- */

/* A site of the new code, sites of which the next may continue. */
struct site_writer {
	struct sites out;
	edit_moved_fn *moved;
	void *arg;
	bool twin;
};

static void add_site(struct site_writer *w, uint64_t start, uint64_t end, const struct lsda_site *s)
{
	struct lsda_site *last = w->out.list.n ? &w->out.list.p[w->out.list.n - 1] : NULL;
	uint64_t pad = s->pad ? w->moved(w->arg, s->pad, w->twin) : 0;

	if (s->pad && !pad)
		pad = s->pad; /* it stays where it was */
	if (last && last->start + last->size == start && last->pad == pad &&
		last->action == s->action) {
		last->size += end - start;
		return;
	}
	*vec_add(&w->out.list) = (struct lsda_site){
		.start = start, .size = end - start, .pad = pad, .action = s->action};
}

/* The first site that ends behind an address. */
static size_t find_site(const struct sites *sites, uint64_t address)
{
	size_t low = 0, high = sites->list.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct lsda_site *s = &sites->list.p[middle];
		if (s->start + s->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Code in no site stays in none: an exception that comes through there ends the program. */
static void map_span(struct site_writer *w, const struct sites *old, const struct edit_span *s)
{
	uint64_t end = s->old + (s->copied ? s->size : 1);

	for (size_t i = find_site(old, s->old); i < old->list.n; i++) {
		const struct lsda_site *site = &old->list.p[i];
		uint64_t to = site->start + site->size;
		if (site->start >= end)
			return;
		if (!s->copied) {
			add_site(w, s->at, s->at + s->size, site);
			return;
		}
		uint64_t from = site->start > s->old ? site->start : s->old;
		to = to < end ? to : end;
		add_site(w, s->at + (from - s->old), s->at + (to - s->old), site);
	}
}

/* ---- writing ---- */

/*
 * Landing pads are unsigned distances, and 0 means none. They count from the piece's start, unless
 * one of them lies before it: in the hot half of a cold one, or in code that was not moved.
 */
static uint64_t choose_pads(const struct sites *sites, uint64_t start)
{
	uint64_t lowest = UINT64_MAX;

	vec_each (s, &sites->list) {
		if (s->pad && s->pad < lowest)
			lowest = s->pad;
	}
	return lowest > start ? start : lowest - 1;
}

static void put_sites(struct buf *out, const struct sites *sites, uint64_t start, uint64_t pads)
{
	vec_each (s, &sites->list) {
		buf_uleb(out, s->start - start);
		buf_uleb(out, s->size);
		buf_uleb(out, s->pad ? s->pad - pads : 0);
		buf_uleb(out, s->action);
	}
}

static size_t uleb_size(uint64_t n)
{
	size_t size = 1;

	while (n >>= 7)
		size++;
	return size;
}

static bool put_types(const struct unwind *u, const struct unwind_frame *f, const struct lsda *l,
	const struct tables *t, uint64_t address, struct buf *out)
{
	bool near = true;
	uint8_t encoding;

	for (size_t i = t->types; near && i > 0; i--) {
		uint64_t target;
		near = read_type(u, f, l, i, &encoding, &target) &&
		       unwind_put_relative(out, address, target);
		address += 4;
	}
	buf_put(out, l->bytes.start + l->types_end, t->specifications_size);
	return near;
}

static bool put_all(const struct unwind *u, const struct unwind_piece *piece, const struct lsda *l,
	const struct tables *t, const struct sites *sites, uint64_t address, struct buf *out)
{
	const struct unwind_frame *f = &u->frames.p[piece->frame];
	uint64_t pads = choose_pads(sites, piece->start), target;
	uint8_t encoding = PE_PCREL | PE_SDATA4;
	size_t start = out->n;
	bool near = true;
	struct buf b = {0};

	put_sites(&b, sites, piece->start, pads);
	if (t->types)
		near = read_type(u, f, l, 1, &encoding, &target);
	buf_u8(out, pads == piece->start ? PE_OMIT : PE_PCREL | PE_SDATA4);
	if (pads != piece->start)
		near &= unwind_put_relative(out, address + 1, pads);
	buf_u8(out, l->types_end ? encoding : PE_OMIT);
	if (l->types_end)
		buf_uleb(out, 1 + uleb_size(b.n) + b.n + t->actions_size + 4 * t->types);
	buf_u8(out, PE_ULEB128);
	buf_uleb(out, b.n);
	buf_put(out, b.p, b.n);
	buf_put(out, l->bytes.start + l->actions, t->actions_size);
	near = near && put_types(u, f, l, t, address + (out->n - start), out);
	buf_deinit(&b);
	return near;
}

bool unwind_put_lsda(const struct unwind *u, const struct unwind_piece *piece, edit_moved_fn *moved,
	void *arg, uint64_t address, struct buf *out)
{
	struct site_writer w = {.moved = moved, .arg = arg, .twin = piece->twin};
	struct sites old = {0};
	struct tables tables = {0};
	struct lsda l;

	bool good = open_lsda(u, &u->frames.p[piece->frame], &l) && read_sites(&l, &old, &tables);
	for (size_t i = 0; good && i < piece->nspans; i++) {
		struct edit_span s = unwind_clip(piece, &piece->spans[i]);
		map_span(&w, &old, &s);
	}
	good = good && put_all(u, piece, &l, &tables, &w.out, address, out);
	vec_deinit(&old.list);
	vec_deinit(&w.out.list);
	return good;
}
