/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the interpreter in the sampling interrupt reads memory. Included by shadow.bpf.c only.
 *
 * User memory is read through the page tables and the kernel's direct map of RAM. That is several
 * times as quick as the helper for reading user memory, cannot fault, and never touches a device:
 * their pages are special, and refused. The kernel's own memory is read only in the direct map, in
 * its image and on the interrupted task's stack.
 */
#ifndef CULPRIT_COLLECT_SHADOW_MEMORY_H
#define CULPRIT_COLLECT_SHADOW_MEMORY_H

/* Stands for any two words of memory. */
struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym;

const volatile u64 direct_map, direct_map_size; /* where RAM is mapped */
const volatile u64 image_start, image_end;      /* the kernel's text and read-only data */
const volatile u64 frame_mask;                  /* of a page table entry: the physical address */
const volatile u64 device_mark;                 /* the bit of one that is a device's */
const volatile u32 levels;                      /* of page tables: 4 or 5 */
const volatile u32 stack_size;                  /* of a task in the kernel */

#define PRESENT  0x001
#define USER     0x004
#define UNCACHED 0x010
#define HUGE     0x080
#define SPECIAL  0x200 /* no ordinary page: a device, or one that the kernel keeps for itself */

/* Reads kernel memory; an address that is not mapped reads as 0. */
static __always_inline u64 peek(u64 address)
{
	struct timespec64 *two =
		bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct timespec64));
	u64 word = (u64)two->tv_sec;

	barrier_var(word); /* or one load is made of two pointers' */
	return word;
}

#define REGION (1ull << 21) /* what a table of the last level maps */

static __always_inline u32 may_be_read(u64 entry)
{
	return (entry & (PRESENT | USER)) == (PRESENT | USER);
}

static __always_inline u32 is_device(u64 entry)
{
	return (entry & (SPECIAL | UNCACHED | device_mark)) != 0;
}

/*
 * The table of the last level on the way to a user address, in the direct map that begins at base;
 * or with bit 0 set the address's region itself, of a larger page, whose entry goes to *entry.
 * 0: there is nothing.
 */
static __always_inline u64 walk(u64 base, u64 pgd, u64 address, u64 *entry)
{
	u32 shift = levels == 5 ? 48 : 39;
	u64 table = pgd, e;

	INTERP_ROLLED
	for (u32 level = 0; level < 4; level++) {
		e = peek(table + (address >> (shift & 63) & 511) * 8);
		if (!may_be_read(e))
			return 0;
		if (shift <= 30 && e & HUGE) {
			u64 inside = (1ull << (shift & 63)) - 1;

			*entry = e;
			return (base + (e & frame_mask & ~inside) + (address & inside & -REGION)) |
			       1;
		}
		table = base + (e & frame_mask);
		if (shift == 21)
			return table;
		shift -= 9;
	}
	return 0;
}

/* The page of an address in what walk has found; 0: none. The entry goes to *entry. */
static __always_inline u64 page_in(u64 base, u64 table, u64 address, u64 *entry)
{
	u64 e;

	if (table & 1)
		return table - 1 + (address & (REGION - 4096));
	e = peek(table + (address >> 12 & 511) * 8);
	*entry = e;
	return may_be_read(e) ? base + (e & frame_mask) : 0;
}

/*
 * The page of an address that the program may read, unless it is a device's; 0: none. Most of those
 * that are not remembered have neighbours that were: of four steps to them one is left then.
 */
static __always_inline u64 user_place(struct interp *m, u64 address)
{
	struct interp_page *region = &m->region[(address / REGION) % INTERP_REGIONS];
	u64 tag = (address & -REGION) | m->mapping, table = region->place, entry = 0, place;

	if (region->tag != tag) {
		table = m->pgd ? walk(direct_map, m->pgd, address, &entry) : 0;
		if (!table || is_device(entry))
			return 0;
		region->tag = tag;
		region->place = table;
	}
	place = page_in(direct_map, table, address, &entry);
	return is_device(entry) ? 0 : place;
}

static __always_inline u64 kernel_place(const struct interp *m, u64 address)
{
	if (address - direct_map < direct_map_size || address - m->stack < stack_size ||
		(address >= image_start && address < image_end))
		return address & ~4095ull;
	return 0;
}

/* Looks the page of an address up; 0: cannot be read. */
__attribute__((noinline)) u64 find_page(struct interp *m, u64 address)
{
	struct interp_page *p;
	u64 place = 0;

	if (!m)
		return 0;
	if ((s64)address < 0)
		place = m->kernel ? kernel_place(m, address) : 0;
	else if (!(address >> (levels == 5 ? 56 : 47)))
		place = user_place(m, address);
	if (place) { /* what is not there may come at any time */
		p = &m->page[(address >> 12) % INTERP_PAGES];
		p->tag = (address & ~4095ull) | m->mapping;
		p->place = place;
	}
	return place;
}

/* The page of an address, remembered as long as the mapping is the same. */
static __always_inline u64 place_of(struct interp *m, u64 address)
{
	struct interp_page *p = &m->page[(address >> 12) % INTERP_PAGES];

	return p->tag == ((address & ~4095ull) | m->mapping) ? p->place : find_page(m, address);
}

/* An input that cannot be read is kept as the word that says so, with its number in the order. */
static __attribute__((always_inline)) int interp_memory(struct interp *m, u64 address, u64 *word)
{
	u64 place, value = 0;
	u32 n;

	place = place_of(m, address);
	n = m->ninputs;

	if (place)
		value = peek(place + (address & 4095));
	if (m->keeps) {
		m->input[n % INTERP_INPUTS] = value;
		if (!place)
			m->lost[n / 64 % (INTERP_INPUTS / 64)] |= 1ull << (n & 63);
		m->ninputs = n + 1;
	}
	*word = value;
	return place ? 0 : -1;
}

/* Into line n. */
__attribute__((noinline)) int interp_memory_line(struct interp *m, u64 address, u32 n)
{
	u64 *word, place;

	if (!m)
		return -1;
	word = m->line[n % INTERP_LINES].code;
	place = place_of(m, address);

	if (!place) { /* as one word that cannot be read */
		if (m->keeps) {
			u32 k = m->ninputs++;

			m->lost[k / 64 % (INTERP_INPUTS / 64)] |= 1ull << (k & 63);
		}
		return -1;
	}
	place += address & 4095;
	word[0] = peek(place);
	word[1] = peek(place + 8);
	word[2] = peek(place + 16);
	word[3] = peek(place + 24);
	if (m->keeps) {
		u32 k = m->ninputs;

		for (u32 i = 0; i < 4; i++)
			m->input[(k + i) % INTERP_INPUTS] = word[i];
		m->ninputs = k + 4;
	}
	return 0;
}

/* What is read for running again is read by lines. */
static __always_inline int interp_memory_code(struct interp *m, u64 address, u64 *code)
{
	if (address - m->code_page > 4096 - 8) { /* another page than the last time */
		u64 place = 0;

		if (!m->keeps && (address & 4095) <= 4096 - 8)
			place = place_of(m, address);
		if (!place)
			return -1;
		m->code_page = address & ~4095ull;
		m->code_place = place - m->code_page;
	}
	*code = peek(m->code_place + address);
	return 0;
}

#endif
