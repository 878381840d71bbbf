#include "collect/shadow_percpu.h"

#include <bpf/btf.h>
#include <stddef.h>
#include <string.h>

/* A variable by its names over time: from 6.2 to 6.14 some were in a struct pcpu_hot. */
static const struct {
	const char *name;
	uint64_t inside;
	size_t member; /* of struct percpu_places */
} variables[] = {
	{"this_cpu_off", 0, offsetof(struct percpu_places, base)},
	{"current_task", 0, offsetof(struct percpu_places, task)},
	{"pcpu_hot", 0, offsetof(struct percpu_places, task)},
	{"__preempt_count", 0, offsetof(struct percpu_places, preempt)},
	{"pcpu_hot", 8, offsetof(struct percpu_places, preempt)},
};

static void note_variable(struct percpu_places *out, const char *name, uint64_t offset)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		if (!strcmp(variables[i].name, name))
			*(uint64_t *)((char *)out + variables[i].member) =
				offset + variables[i].inside;
	}
}

bool percpu_places_find(struct percpu_places *out)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int section = btf ? btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC) : -1;

	*out = (struct percpu_places){UINT64_MAX, UINT64_MAX, UINT64_MAX};
	if (section >= 0) {
		const struct btf_type *t = btf__type_by_id(btf, (unsigned)section);
		const struct btf_var_secinfo *v = btf_var_secinfos(t);

		for (unsigned i = 0; i < btf_vlen(t); i++)
			note_variable(out,
				btf__name_by_offset(btf, btf__type_by_id(btf, v[i].type)->name_off),
				v[i].offset);
	}
	btf__free(btf);
	return out->base != UINT64_MAX && out->task != UINT64_MAX && out->preempt != UINT64_MAX;
}
