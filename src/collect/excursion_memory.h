/*
 * Memory as the walk of an excursion sees it: copies of the program's pages, read when they are
 * first needed, and the caches that they would go through.
 *
 * For excursion_run.c alone, and compiled as that is: the program's vector registers are in the
 * chip.
 */
#ifndef CULPRIT_COLLECT_EXCURSION_MEMORY_H
#define CULPRIT_COLLECT_EXCURSION_MEMORY_H

#include "collect/excursion_internal.h"

#define PAGE 4096u

/* ---- vectors in and out ---- */

/* x87, SSE, AVX, and the three of AVX-512: not what the kernel keeps there as well (PKRU). */
#define VECTORS 0xe7u

static inline void take_vectors(const uint8_t *area)
{
	__asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(VECTORS), "d"(0) : "memory");
}

static inline void keep_vectors(uint8_t *area)
{
	__asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(VECTORS), "d"(0) : "memory");
}

/* ---- strangers ---- */

static void to_strangers(struct excursion *x)
{
	keep_vectors(x->vectors);
	take_vectors(x->own);
}

static void from_strangers(struct excursion *x)
{
	take_vectors(x->vectors);
}

static bool read_page(struct excursion *x, struct excursion_page *p)
{
	int rc;

	to_strangers(x);
	rc = x->read(x->arg, p->number * PAGE, p->data, PAGE);
	from_strangers(x);
	return rc >= 0;
}

/* ---- memory ---- */

static uint64_t scatter(uint64_t n)
{
	return n * 0x9e3779b97f4a7c15u >> 40;
}

static uint8_t *add_page(struct excursion *x, struct excursion_page *p, uint64_t number)
{
	if (x->npages == EXCURSION_PAGES) {
		x->end = EXCURSION_ROOM;
		return 0;
	}
	*p = (struct excursion_page){number, x->epoch, x->memory + x->npages * PAGE};
	if (!read_page(x, p)) {
		p->epoch = 0;
		x->end = EXCURSION_FAULT;
		return 0;
	}
	x->npages++;
	return p->data;
}

/* Where a byte of the program's is here; NULL: nowhere, and the excursion ends. */
static inline uint8_t *place_of(struct excursion *x, uint64_t address)
{
	uint64_t number = address / PAGE;
	struct excursion_page *p = &x->pages[scatter(number) % EXCURSION_PLACES];

	while (p->epoch == x->epoch && p->number != number)
		if (++p == x->pages + EXCURSION_PLACES)
			p = x->pages;
	if (p->epoch == x->epoch)
		return p->data + address % PAGE;
	uint8_t *data = add_page(x, p, number);
	return data ? data + address % PAGE : data;
}

/* Eight bytes wherever they stand. */
typedef uint64_t __attribute__((aligned(1), may_alias)) word;

static inline void copy_bytes(uint8_t *to, const uint8_t *from, unsigned n)
{
	for (; n >= 8; n -= 8, to += 8, from += 8)
		*(volatile word *)to = *(const volatile word *)from;
	for (; n; n--, to++, from++)
		*(volatile uint8_t *)to = *from;
}

/* ---- caches ---- */

static void count_stay(struct excursion *x, uint64_t at, bool code, bool gone)
{
	uint64_t key = at << 1 | code;
	struct excursion_stay_place *p = &x->stay_places[scatter(key) % EXCURSION_STAYS];

	while (p->epoch == x->forgotten && p->key != key)
		if (++p == x->stay_places + EXCURSION_STAYS)
			p = x->stay_places;
	if (p->epoch != x->forgotten) {
		if (x->nstays == EXCURSION_STAYS / 4 * 3)
			return;
		x->stays_found[x->nstays++] = (uint32_t)(p - x->stay_places);
		p->epoch = x->forgotten;
		p->key = key;
		p->stay.at = at;
		p->stay.is_code = code;
		p->stay.kept = p->stay.gone = 0;
	}
	p->stay.kept += !gone;
	p->stay.gone += gone;
}

/* What lies in two lines is gone if one of them is. */
static inline bool touch_data(struct excursion *x, uint64_t address, unsigned n)
{
	uint64_t first = address / EXCURSION_LINE, last = (address + n - 1) / EXCURSION_LINE;
	bool gone = excursion_touch(&x->data, first);

	return last == first ? gone : excursion_touch(&x->data, last) || gone;
}

static inline void load_line(struct excursion *x, uint64_t address, unsigned n)
{
	bool gone = touch_data(x, address, n);

	if (x->counts)
		count_stay(x, x->at, false, gone);
}

/* What string operations do at once. */
static void touch_lines(struct excursion *x, uint64_t address, uint64_t n, bool loads)
{
	uint64_t first = address / EXCURSION_LINE, last = (address + n - 1) / EXCURSION_LINE;

	for (uint64_t line = first; line <= last; line++)
		if (loads)
			load_line(x, line * EXCURSION_LINE, 1);
		else
			touch_data(x, line * EXCURSION_LINE, 1);
}

static inline void fetch_lines(struct excursion *x, const struct excursion_copy *c)
{
	uint64_t last = (c->ip + c->nbytes - 1) / EXCURSION_LINE;

	for (uint64_t line = c->ip / EXCURSION_LINE; line <= last; line++) {
		bool gone;

		if (line == x->line)
			continue;
		x->line = line;
		gone = excursion_touch(&x->code, line);
		if (x->counts)
			count_stay(x, line * EXCURSION_LINE, true, gone);
	}
}

/* ---- what is loaded and stored ---- */

static bool get_over(struct excursion *x, uint64_t address, void *to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = place_of(x, address + i);

		if (!p)
			return false;
		((volatile uint8_t *)to)[i] = *p;
	}
	return true;
}

static inline bool get(struct excursion *x, uint64_t address, void *to, unsigned n)
{
	const uint8_t *p;

	load_line(x, address, n);
	if (address % PAGE + n > PAGE)
		return get_over(x, address, to, n);
	p = place_of(x, address);
	if (p)
		copy_bytes(to, p, n);
	return p;
}

static bool put_over(struct excursion *x, uint64_t address, const void *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *p = place_of(x, address + i);

		if (!p)
			return false;
		*p = ((const volatile uint8_t *)from)[i];
	}
	return true;
}

static inline bool put(struct excursion *x, uint64_t address, const void *from, unsigned n)
{
	uint8_t *p;

	touch_data(x, address, n);
	if (address % PAGE + n > PAGE)
		return put_over(x, address, from, n);
	p = place_of(x, address);
	if (p)
		copy_bytes(p, from, n);
	return p;
}

#endif
