#include "image/plt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/elf_file.h"
#include "image/part.h"
#include "image/symbols.h"
#include "isa/decode.h"

enum {
	STUB_SIZE = 16,
	STUBS_MAX = 1 << 18,
	RELOCATIONS_MAX = 1 << 20,
};

/* A slot of the global offset table that is filled with the address of a function. */
struct slot {
	uint64_t vaddr;
	uint32_t symbol;   /* in .dynsym, 0: none */
	uint64_t resolver; /* of an IRELATIVE relocation */
};

struct plt {
	const struct elf_file *f;
	const struct symbols *symbols;
	struct arena *names;
	VEC(struct slot) slots;      /* by vaddr */
	VEC(struct slot) lazy;       /* those of .rela.plt, in its order */
	struct bytes table, strings; /* .dynsym and its names */
	size_t nrelocations, nstubs; /* looked at, in all sections */
};

bool plt_is_section(const char *name)
{
	return !strcmp(name, ".plt") || !strncmp(name, ".plt.", 5) || !strcmp(name, ".iplt");
}

/* ---- relocations ---- */

static void read_relocations(struct plt *plt, const Elf64_Shdr *s)
{
	_cleanup_(bytes_deinit) struct bytes b = {0};
	if (plt->nrelocations > RELOCATIONS_MAX || elf_file_read_section(plt->f, s, &b) < 0)
		return;
	bool lazy = !strcmp(elf_file_section_name(plt->f, s), ".rela.plt");
	struct cursor c = cursor_over(b.p, b.n);
	while (cursor_left(&c) >= sizeof(Elf64_Rela) && plt->nrelocations++ < RELOCATIONS_MAX) {
		uint64_t vaddr = cursor_u64(&c), info = cursor_u64(&c), addend = cursor_u64(&c);
		uint32_t type = ELF64_R_TYPE(info);
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
			type != R_X86_64_IRELATIVE)
			continue;
		bool named = type != R_X86_64_IRELATIVE;
		struct slot slot = {.vaddr = vaddr,
			.symbol = named ? (uint32_t)ELF64_R_SYM(info) : 0,
			.resolver = named ? 0 : addend};
		*vec_add(&plt->slots) = slot;
		if (lazy)
			*vec_add(&plt->lazy) = slot;
	}
}

static int compare_slots(const void *x, const void *y)
{
	const struct slot *a = x, *b = y;
	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static void read_dynsym(struct plt *plt)
{
	const struct elf_file *f = plt->f;
	const Elf64_Shdr *s = elf_file_section(f, ".dynsym");
	if (s && s->sh_link < f->nsections && elf_file_read_section(f, s, &plt->table) == 0)
		elf_file_read_section(f, &f->sections[s->sh_link], &plt->strings);
}

static void plt_init(struct plt *plt)
{
	for (size_t i = 1; i < plt->f->nsections; i++) {
		if (plt->f->sections[i].sh_type == SHT_RELA)
			read_relocations(plt, &plt->f->sections[i]);
	}
	vec_sort(&plt->slots, compare_slots);
	read_dynsym(plt);
}

static void plt_deinit(struct plt *plt)
{
	vec_deinit(&plt->slots);
	vec_deinit(&plt->lazy);
	bytes_deinit(&plt->table);
	bytes_deinit(&plt->strings);
}

/* ---- names ---- */

static const char *dynsym_name(const struct plt *plt, uint32_t symbol, uint16_t *size)
{
	struct cursor c = cursor_over(plt->table.p, plt->table.n);
	cursor_seek(&c, (size_t)symbol * sizeof(Elf64_Sym));
	uint32_t name = cursor_u32(&c);
	return symbol_name(&plt->strings, c.failed ? UINT64_MAX : name, size);
}

static const struct symbol *resolver_symbol(const struct plt *plt, uint64_t start)
{
	size_t low = 0, high = plt->symbols->list.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct symbol *s = &plt->symbols->list.p[middle];
		if (s->start == start)
			return s;
		if (s->start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* "puts@plt"; a resolver without a name is written as objdump does. */
static void name_stub(const struct plt *plt, const struct slot *slot, struct part *stub)
{
	char absolute[40];
	uint16_t n;
	const char *name;
	const struct symbol *resolver = slot->symbol ? NULL : resolver_symbol(plt, slot->resolver);
	if (slot->symbol) {
		name = dynsym_name(plt, slot->symbol, &n);
	} else if (resolver) {
		name = resolver->name;
		n = resolver->name_size;
	} else {
		name = absolute;
		n = (uint16_t)snprintf(absolute, sizeof absolute, "*ABS*+0x%llx",
			(unsigned long long)slot->resolver);
	}
	if (!n)
		return;
	char *text = arena_alloc(plt->names, n + sizeof "@plt");
	memcpy(text, name, n);
	memcpy(text + n, "@plt", sizeof "@plt");
	stub->name = text;
	stub->name_size = (uint16_t)(n + strlen("@plt"));
}

/* ---- stubs ---- */

/*
 * A stub jumps through its slot. Where branches are tracked (IBT), the lazy half in .plt only
 * pushes the number of its relocation and goes on to the head of the table.
 */
static const struct slot *stub_slot(
	const struct plt *plt, const uint8_t *p, size_t n, uint64_t vaddr)
{
	struct insn insn;
	for (size_t at = 0; at < n && isa_decode(p + at, n - at, vaddr + at, &insn) == 0;
		at += insn.length) {
		if (insn.kind == INSN_JUMP_INDIRECT) {
			struct slot key = {.vaddr = insn.memory};
			return plt->slots.n ? bsearch(&key, plt->slots.p, plt->slots.n, sizeof key,
						      compare_slots)
					    : NULL;
		}
		uint32_t number;
		if (p[at] == 0x68 && insn.length == 5) { /* push imm32 */
			memcpy(&number, p + at + 1, sizeof number);
			return number < plt->lazy.n ? &plt->lazy.p[number] : NULL;
		}
	}
	return NULL;
}

/* The head of a lazy table pushes the link map: push through rip. */
static bool is_head(const uint8_t *p, size_t n)
{
	return n >= 2 && p[0] == 0xff && p[1] == 0x35;
}

static void read_stubs(struct plt *plt, const Elf64_Shdr *s, struct parts *ps)
{
	_cleanup_(bytes_deinit) struct bytes code = {0};
	if (elf_file_read_section(plt->f, s, &code) < 0)
		return;
	size_t step = s->sh_entsize == 8 ? 8 : STUB_SIZE;
	for (size_t at = 0; at < code.n && plt->nstubs < STUBS_MAX; at += step, plt->nstubs++) {
		struct part stub = {.start = s->sh_addr + at,
			.size = code.n - at < step ? code.n - at : step,
			.order = PART_NONE,
			.owner = PART_NONE,
			.source = PROCEDURE_PLT};
		const struct slot *slot = stub_slot(plt, code.p + at, stub.size, stub.start);
		if (slot) {
			name_stub(plt, slot, &stub);
		} else if (is_head(code.p + at, stub.size)) {
			stub.name = ".plt";
			stub.name_size = strlen(".plt");
		}
		if (stub.name)
			*vec_add(&ps->list) = stub;
	}
}

void plt_read(const struct elf_file *f, const struct symbols *symbols, struct arena *names,
	struct parts *ps)
{
	struct plt plt = {.f = f, .symbols = symbols, .names = names};
	bool ready = false;
	for (size_t i = 1; i < f->nsections; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		if (!(s->sh_flags & SHF_EXECINSTR) || !plt_is_section(elf_file_section_name(f, s)))
			continue;
		if (!ready)
			plt_init(&plt);
		ready = true;
		if (plt.nstubs < STUBS_MAX)
			read_stubs(&plt, s, ps);
	}
	plt_deinit(&plt);
}
