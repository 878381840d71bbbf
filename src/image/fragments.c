#include "image/fragments.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/elf_file.h"
#include "image/part.h"
#include "image/symbols.h"
#include "isa/decode.h"

enum {
	CHUNK = 1 << 18,
	SLACK = 32,             /* bytes after a chunk that may be looked at */
	BLOCK_SHIFT = 4,        /* the map of candidates has a bit for each 16 bytes */
	MAP_SPAN = 1 << 30,     /* of code, at most */
	SCAN_MAX = 512 << 20,   /* of code */
	CONFIRM_MAX = 16 << 20, /* of code that is decoded to confirm jumps */
};

/* ---- by name ---- */

struct cold_names {
	struct hmap bases; /* struct base */
};

struct base {
	uint64_t hash; /* of the name without .cold */
	uint64_t start;
	bool found, ambiguous;
};

/* The length of the name in front of ".cold", ".cold.7" or ".unlikely"; 0 when it is a whole. */
static size_t base_size(const char *name, size_t n)
{
	static const char *const suffixes[] = {".cold", ".unlikely"};
	size_t end = n;
	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end < n && end && name[end - 1] == '.')
		n = end - 1;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t suffix = strlen(suffixes[i]);
		if (n > suffix && !memcmp(name + n - suffix, suffixes[i], suffix))
			return n - suffix;
	}
	return 0;
}

static uint64_t base_hash(const char *name, size_t name_size)
{
	size_t n = base_size(name, name_size);
	return n ? hash_bytes(name, n) : 0;
}

struct cold_names *cold_names_create(const struct symbols *all)
{
	struct cold_names *names = xcalloc(1, sizeof *names);
	hmap_init(&names->bases, sizeof(struct base), offsetof(struct base, start));
	vec_each (s, &all->list) {
		uint64_t hash = base_hash(s->name, s->name_size);
		if (hash)
			hmap_put(&names->bases, &hash, NULL);
	}
	if (!names->bases.n)
		return names;
	vec_each (s, &all->list) {
		uint64_t hash = hash_bytes(s->name, s->name_size);
		struct base *b = hmap_get(&names->bases, &hash);
		if (!b)
			continue;
		b->ambiguous = b->ambiguous || (b->found && b->start != s->start);
		b->found = true;
		b->start = s->start;
	}
	return names;
}

void cold_names_destroy(struct cold_names *names)
{
	if (names)
		hmap_deinit(&names->bases);
	free(names);
}

void fragments_join_names(struct parts *ps, const struct cold_names *names)
{
	vec_each (p, &ps->list) {
		uint64_t hash = p->name ? base_hash(p->name, p->name_size) : 0;
		struct base *b = hash ? hmap_get(&names->bases, &hash) : NULL;
		uint32_t owner =
			b && b->found && !b->ambiguous ? parts_at(ps, b->start) : PART_NONE;
		if (owner != PART_NONE && &ps->list.p[owner] != p)
			p->owner = owner;
	}
}

/* ---- by the code ---- */

struct candidate {
	uint32_t part;
	uint32_t neighbour; /* the function before it in .eh_frame, or PART_NONE */
	uint32_t jumper;    /* another part that jumps into it, or PART_NONE */
	uint64_t jump;      /* where the jumper does */
	bool certain;       /* it is a half for sure; only whose is the question */
	bool from_neighbour, many_jumpers, referenced;
};

struct search {
	struct parts *ps;
	VEC(struct candidate) list;   /* by start */
	uint64_t low, high;           /* all candidates lie between */
	uint8_t *map;                 /* of the blocks that candidates touch */
	uint64_t to_scan, to_confirm; /* bytes of code that may still be looked at */
};

static bool is_certain(const struct part *p)
{
	return p->name ? base_hash(p->name, p->name_size) : p->midframe;
}

/* Linkers place halves (.text.unlikely) in front of the functions, whose FDEs they follow. */
static bool is_displaced(const struct parts *ps, uint32_t part, uint32_t neighbour)
{
	return neighbour != PART_NONE && ps->list.p[part].start < ps->list.p[neighbour].start;
}

/* Parts by the order of their FDEs; PART_NONE where an FDE became no part. */
static uint32_t *parts_by_order(const struct parts *ps, size_t *n)
{
	*n = 0;
	vec_each (p, &ps->list) {
		if (p->order != PART_NONE && p->order >= *n)
			*n = p->order + 1;
	}
	uint32_t *by_order = xmalloc(*n * sizeof *by_order);
	memset(by_order, 0xff, *n * sizeof *by_order);
	for (size_t i = 0; i < ps->list.n; i++) {
		if (ps->list.p[i].order != PART_NONE)
			by_order[ps->list.p[i].order] = (uint32_t)i;
	}
	return by_order;
}

static int compare_candidates(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	return a->part < b->part ? -1 : a->part > b->part;
}

static void find_candidates(struct search *s)
{
	size_t n;
	_cleanup_free_ uint32_t *by_order = parts_by_order(s->ps, &n);
	uint32_t neighbour = PART_NONE;
	for (size_t i = 0; i < n; i++) {
		if (by_order[i] == PART_NONE)
			continue;
		const struct part *p = &s->ps->list.p[by_order[i]];
		if (p->owner != PART_NONE || p->source == PROCEDURE_PLT)
			continue;
		bool certain = is_certain(p);
		if (certain || (!p->name && is_displaced(s->ps, by_order[i], neighbour)))
			*vec_add(&s->list) = (struct candidate){.part = by_order[i],
				.neighbour = neighbour,
				.jumper = PART_NONE,
				.certain = certain};
		if (!certain)
			neighbour = by_order[i];
	}
	vec_sort(&s->list, compare_candidates);
}

static bool make_map(struct search *s)
{
	const struct part *parts = s->ps->list.p;
	const struct part *last = &parts[s->list.p[s->list.n - 1].part];
	s->low = parts[s->list.p[0].part].start;
	s->high = last->start + last->size;
	if (s->high - s->low > MAP_SPAN)
		return false;
	s->map = xcalloc(((s->high - s->low) >> (BLOCK_SHIFT + 3)) + 1, 1);
	vec_each (c, &s->list) {
		uint64_t first = (parts[c->part].start - s->low) >> BLOCK_SHIFT;
		uint64_t end =
			(parts[c->part].start + parts[c->part].size - 1 - s->low) >> BLOCK_SHIFT;
		for (uint64_t b = first; b <= end; b++)
			s->map[b >> 3] |= (uint8_t)(1 << (b & 7));
	}
	return true;
}

static struct candidate *candidate_at(struct search *s, uint64_t target)
{
	uint64_t block = (target - s->low) >> BLOCK_SHIFT;
	if (!(s->map[block >> 3] >> (block & 7) & 1))
		return NULL;
	size_t low = 0, high = s->list.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->ps->list.p[s->list.p[middle].part].start <= target)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	struct candidate *c = &s->list.p[low - 1];
	const struct part *p = &s->ps->list.p[c->part];
	return target - p->start < p->size ? c : NULL;
}

/* Whether the part is another half of what may be the candidate's function. */
static bool is_sibling(struct search *s, uint32_t part, const struct candidate *c)
{
	uint64_t start = s->ps->list.p[part].start;
	if (start < s->low || start >= s->high)
		return false;
	const struct candidate *other = candidate_at(s, start);
	return other && other->part == part && other->neighbour == c->neighbour;
}

/* A jump at `from` goes into the candidate. */
static void note_jump(struct search *s, struct candidate *c, uint64_t from)
{
	uint32_t part = parts_at(s->ps, from);
	if (part == PART_NONE || part == c->part)
		return;
	if (part == c->neighbour) {
		c->from_neighbour = true;
	} else if (is_sibling(s, part, c)) {
		return;
	} else if (c->jumper == PART_NONE) {
		c->jumper = part;
		c->jump = from;
	} else if (c->jumper != part) {
		c->many_jumpers = true;
	}
}

/* Bit i is set where p[i] may be the last opcode byte before a displacement from the next
 * instruction: jmp, call, a rip-relative operand, or jcc with its 0f in front. */
static inline unsigned opcodes_16(const uint8_t *p)
{
	__m128i b = _mm_loadu_si128((const __m128i *)p);
	__m128i before = _mm_loadu_si128((const __m128i *)(p - 1));
	__m128i jump = _mm_cmpeq_epi8(_mm_or_si128(b, _mm_set1_epi8(1)), _mm_set1_epi8((char)0xe9));
	__m128i rip =
		_mm_cmpeq_epi8(_mm_and_si128(b, _mm_set1_epi8((char)0xc7)), _mm_set1_epi8(0x05));
	__m128i jcc = _mm_and_si128(_mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f)),
		_mm_cmpeq_epi8(
			_mm_and_si128(b, _mm_set1_epi8((char)0xf0)), _mm_set1_epi8((char)0x80)));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(jump, _mm_or_si128(rip, jcc)));
}

/* The opcode at p is followed by a displacement, if it is one: of random bytes next to none point
 * to a candidate. */
static inline void scan_at(struct search *s, const uint8_t *p, uint64_t vaddr)
{
	int32_t displacement;
	memcpy(&displacement, p + 1, sizeof displacement);
	uint64_t target = vaddr + 5 + (uint64_t)(int64_t)displacement;
	if (__builtin_expect(target - s->low >= s->high - s->low, 1))
		return;
	struct candidate *c = candidate_at(s, target);
	if (!c)
		return;
	if (*p == 0xe9)
		note_jump(s, c, vaddr);
	else if ((*p & 0xf0) == 0x80)
		note_jump(s, c, vaddr - 1);
	else if (target == s->ps->list.p[c->part].start)
		c->referenced = true;
}

static void scan_chunk(struct search *s, const uint8_t *chunk, size_t n, uint64_t vaddr)
{
	for (size_t i = 1; i + 5 <= n; i += 16) {
		unsigned opcodes =
			opcodes_16(chunk + i); /* may look past the end, where zeros are */
		for (; opcodes; opcodes &= opcodes - 1) {
			size_t at = i + (size_t)__builtin_ctz(opcodes);
			if (at + 5 <= n)
				scan_at(s, chunk + at, vaddr + at);
		}
	}
}

/* The first byte of a chunk is the one before what it looks at; chunks overlap by what an
 * instruction across the seam needs. */
static void scan_segment(
	struct search *s, const struct elf_file *f, const Elf64_Phdr *p, uint8_t *chunk)
{
	uint64_t size = p->p_offset < f->size ? f->size - p->p_offset : 0;
	size = size < p->p_filesz ? size : p->p_filesz;
	size = size < s->to_scan ? size : s->to_scan;
	s->to_scan -= size;
	chunk[0] = 0;
	size_t n = size < CHUNK ? size : CHUNK;
	if (n < 5 || io_pread_full(f->fd, chunk + 1, n, p->p_offset) < 0)
		return;
	scan_chunk(s, chunk, n + 1, p->p_vaddr - 1);
	for (uint64_t at = n - 5; at + 5 < size; at += n - 5) {
		n = size - at < CHUNK ? size - at : CHUNK;
		if (io_pread_full(f->fd, chunk, n, p->p_offset + at) < 0)
			return;
		scan_chunk(s, chunk, n, p->p_vaddr + at);
		if (n < CHUNK)
			return;
	}
}

/* Whether an instruction of the part begins at vaddr, and not merely its bytes. */
static bool is_instruction(
	struct search *s, const struct elf_file *f, const struct part *p, uint64_t vaddr)
{
	_cleanup_(bytes_deinit) struct bytes code = {0};
	uint64_t offset, left;
	if (p->size > s->to_confirm || !elf_file_offset(f, p->start, &offset, &left) ||
		p->size > left || elf_file_read(f, offset, p->size, &code) < 0)
		return false;
	s->to_confirm -= p->size;
	struct insn insn;
	for (uint64_t at = 0; at < code.n && p->start + at <= vaddr; at += insn.length) {
		if (p->start + at == vaddr)
			return true;
		if (isa_decode(code.p + at, code.n - at, p->start + at, &insn) < 0)
			return false;
	}
	return false;
}

/*
 * The .eh_frame order and a jump together are enough. A lone jump is looked at closely. Without any
 * jump the order decides: the half is reached through a jump table.
 */
static uint32_t choose_owner(struct search *s, const struct candidate *c, const struct elf_file *f)
{
	if (!c->certain)
		return c->from_neighbour && c->jumper == PART_NONE && !c->referenced ? c->neighbour
										     : PART_NONE;
	if (c->from_neighbour)
		return c->neighbour;
	if (c->jumper == PART_NONE)
		return is_displaced(s->ps, c->part, c->neighbour) ? c->neighbour : PART_NONE;
	if (!c->many_jumpers && is_instruction(s, f, &s->ps->list.p[c->jumper], c->jump))
		return c->jumper;
	return PART_NONE;
}

void fragments_join_jumps(struct parts *ps, const struct elf_file *f)
{
	struct search s = {.ps = ps, .to_scan = SCAN_MAX, .to_confirm = CONFIRM_MAX};
	find_candidates(&s);
	if (s.list.n && make_map(&s)) {
		_cleanup_free_ uint8_t *chunk = xcalloc(CHUNK + SLACK, 1);
		for (size_t i = 0; i < f->nsegments; i++) {
			const Elf64_Phdr *p = &f->segments[i];
			if (p->p_type == PT_LOAD && p->p_flags & PF_X)
				scan_segment(&s, f, p, chunk);
		}
		vec_each (c, &s.list)
			ps->list.p[c->part].owner = choose_owner(&s, c, f);
	}
	free(s.map);
	vec_deinit(&s.list);
}
