/* Source lines with the functions that were inlined there. */
#include "image/lines_internal.h"

#include "image/demangle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

/* Of call sites; an extension that elfutils does not name. */
#define AT_GNU_DISCRIMINATOR 0x2136

/* What no sound file has: deeper nests and longer lists are cut off. */
#define DEPTH_MOST  64
#define RANGES_MOST 100000

/* As it is in symbol tables. */
static const char *linkage_of(struct lines *l, Dwarf_Die *die)
{
	static const unsigned linkage[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	const char *name = NULL;

	for (size_t i = 0; i < 2 && !name; i++) {
		Dwarf_Attribute at;

		name = dwarf_formstring(dwarf_attr_integrate(die, linkage[i], &at));
	}
	if (!name)
		name = dwarf_diename(die);
	return name ? lines_file(l, NULL, name) : NULL;
}

static const char *readable_name(struct lines *l, const char *linkage)
{
	_cleanup_free_ char *readable = linkage ? demangle(linkage) : NULL;

	return readable ? lines_file(l, NULL, readable) : linkage;
}

static int number_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute at;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, attribute, &at), &value) || value > INT32_MAX)
		return 0;
	return (int)value;
}

static const char *call_file(struct lines *l, Dwarf_Die *cu, Dwarf_Die *die)
{
	Dwarf_Files *files;
	Dwarf_Attribute at;
	size_t n;
	int number = number_of(die, DW_AT_call_file);
	const char *file = dwarf_getsrcfiles(cu, &files, &n) || (size_t)number >= n
				   ? NULL
				   : dwarf_filesrc(files, (size_t)number, NULL, NULL);

	return file ? lines_file(l, dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &at)), file)
		    : NULL;
}

static void add_inlined(struct lines *l, Dwarf_Die *cu, Dwarf_Die *die, uint32_t depth)
{
	const char *linkage = linkage_of(l, die);
	struct inline_range r = {.depth = depth,
		.function = readable_name(l, linkage),
		.linkage = linkage,
		.declared = number_of(die, DW_AT_decl_line),
		.call_file = call_file(l, cu, die),
		.call_line = number_of(die, DW_AT_call_line),
		.call_discriminator = (unsigned)number_of(die, AT_GNU_DISCRIMINATOR)};
	Dwarf_Addr base, start, end;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		if (l->function.ranges.n >= RANGES_MOST)
			return;
		r.start = start;
		r.end = end;
		*vec_add(&l->function.ranges) = r;
	}
}

/* Functions inside of functions are others; blocks are not. */
static void add_children(
	struct lines *l, Dwarf_Die *cu, Dwarf_Die *parent, uint32_t depth, uint32_t level)
{
	Dwarf_Die die;

	if (level > DEPTH_MOST || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_inlined_subroutine)
			add_inlined(l, cu, &die, depth);
		if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block)
			add_children(
				l, cu, &die, depth + (tag == DW_TAG_inlined_subroutine), level + 1);
	} while (!dwarf_siblingof(&die, &die));
}

/* The subprogram whose code this is: the outermost scope that is one. */
static bool find_subprogram(Dwarf_Die *cu, uint64_t pc, Dwarf_Die *out)
{
	Dwarf_Die *scopes = NULL, *nested = NULL;
	int n = dwarf_getscopes(cu, pc, &scopes);
	bool found = false;

	/* What is around an inlined one by text is not what it was inlined into. */
	n = n > 0 ? dwarf_getscopes_die(&scopes[0], &nested) : 0;
	for (int i = 0; i < n && !found; i++) {
		found = dwarf_tag(&nested[i]) == DW_TAG_subprogram;
		*out = nested[i];
	}
	free(scopes);
	free(nested);
	return found;
}

static bool find_range(Dwarf_Die *die, uint64_t pc, struct inline_function *f)
{
	Dwarf_Addr base, start, end;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
		if (pc >= start && pc < end) {
			f->start = start;
			f->end = end;
			return true;
		}
	return false;
}

static bool find_function(struct lines *l, Dwarf_Die *cu, uint64_t pc)
{
	struct inline_function *f = &l->function;
	Dwarf_Die die;

	if (pc >= f->start && pc < f->end)
		return true;
	f->start = f->end = 0;
	f->ranges.n = 0;
	if (!find_subprogram(cu, pc, &die) || !find_range(&die, pc, f))
		return false;
	f->linkage = linkage_of(l, &die);
	f->name = readable_name(l, f->linkage);
	f->declared = number_of(&die, DW_AT_decl_line);
	add_children(l, cu, &die, 0, 0);
	return true;
}

size_t lines_inlined(struct lines *l, uint64_t vaddr, struct inlined_line *out, size_t most)
{
	struct line at;
	Dwarf_Die cu;
	struct inlined_line here = {0};
	uint64_t pc;
	uint32_t depth = 0;
	size_t n = 0;

	if (!most || lines_at(l, vaddr, &at))
		return 0;
	here = (struct inlined_line){
		.file = at.file, .line = at.line, .discriminator = at.discriminator};
	if (!lines_unit(l, vaddr, &cu, &pc) || !find_function(l, &cu, pc)) {
		out[0] = here;
		return 1;
	}
	/* In the order of the tree, so the last one that covers it is the innermost. */
	for (size_t i = l->function.ranges.n; i-- && n + 1 < most;) {
		const struct inline_range *r = &l->function.ranges.p[i];

		if (pc < r->start || pc >= r->end || (n && r->depth >= depth))
			continue;
		depth = r->depth;
		here.function = r->function;
		here.linkage = r->linkage;
		here.declared = r->declared;
		out[n++] = here;
		here = (struct inlined_line){.file = r->call_file,
			.line = r->call_line,
			.discriminator = r->call_discriminator};
	}
	here.function = l->function.name;
	here.linkage = l->function.linkage;
	here.declared = l->function.declared;
	out[n++] = here;
	return n;
}
