/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs that user space runs once, before the first sample, to find where the kernel maps memory
 * and what is the CPU's own. Included by shadow.bpf.c only.
 */
#ifndef CULPRIT_COLLECT_SHADOW_FIND_H
#define CULPRIT_COLLECT_SHADOW_FIND_H

/* ---- finding the direct map ---- */

/* User space asks for its own word at an address that it knows; only the right base finds it. */
u64 sought_address, sought_word, found_base, found_entry;

struct search {
	u64 pgd, top;
};

/* The page table itself lies in the direct map, which begins at some gigabyte below it. */
static long try_base(u32 i, struct search *f)
{
	u64 base = f->top - ((u64)i << 30), entry = 0;
	u64 table = walk(base, f->pgd, sought_address, &entry);
	u64 place = table ? page_in(base, table, sought_address, &entry) : 0;

	if (place && peek(place + (sought_address & 4095)) == sought_word) {
		found_base = base;
		found_entry = entry;
		return 1;
	}
	return 0;
}

SEC("raw_tp")
int find_direct_map(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	struct search f = {0};

	(void)ctx;
	if (!mm)
		return 0;
	f.pgd = peek((u64)mm + bpf_core_field_offset(struct mm_struct, pgd));
	f.top = f.pgd & ~0x3fffffffull;
	bpf_loop(1 << 17, try_base, &f, 0);
	return 0;
}

/* ---- finding what is the CPU's own ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} own SEC(".maps");

/* Places in the per-CPU section; user space sets them. What is found: bases of gs and section. */
u64 place_of_base, place_of_task, found_gs, found_section;

u64 own_map, own_value; /* addresses, which go through memory to become numbers */

struct own_search {
	u64 task;
};

/* The section is somewhere behind the kernel's text, or at 0 in older kernels. */
static long try_section(u32 i, struct own_search *f)
{
	u64 section = i ? image_start + (u64)(i - 1) * 4096 : 0;

	if (peek(section + place_of_base + found_gs) != found_gs ||
		peek(section + place_of_task + found_gs) != f->task)
		return 0;
	found_section = section;
	return 1;
}

/*
 * This CPU's copy of a per-CPU array lies as far from the array's per-CPU address as all that is
 * per CPU: that is the base of gs. Its own word then shows where the section is.
 */
SEC("raw_tp")
int find_own(void *ctx)
{
	struct own_search f = {.task = (u64)bpf_get_current_task()};
	u32 first = 0;

	(void)ctx;
	own_map = (u64)&own;
	own_value = (u64)bpf_map_lookup_elem(&own, &first);
	barrier();
	found_section = ~0ull;
	found_gs = own_value - peek(own_map + bpf_core_field_offset(struct bpf_array, pptrs));
	bpf_loop(1 << 15, try_section, &f, 0);
	return 0;
}

#endif
