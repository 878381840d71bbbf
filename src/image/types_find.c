#include "image/types_internal.h"

#include <dwarf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- globals ---- */

/* A place that does not depend on where the program is. */
static bool fixed_address(Dwarf_Die *die, uint64_t *out)
{
	Dwarf_Attribute at, indirect;
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Addr address;

	if (!dwarf_attr(die, DW_AT_location, &at) || dwarf_getlocation(&at, &ops, &n) || n != 1)
		return false;
	if (ops[0].atom == DW_OP_addr) {
		*out = ops[0].number;
		return true;
	}
	if (ops[0].atom != DW_OP_addrx || dwarf_getlocation_attr(&at, &ops[0], &indirect) ||
		dwarf_formaddr(&indirect, &address))
		return false;
	*out = address;
	return true;
}

static void add_variable(struct types *t, Dwarf_Die *die)
{
	struct type_variable v = {0};
	Dwarf_Attribute at;
	const char *name;

	if (!fixed_address(die, &v.address) || !v.address)
		return;
	name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &at));
	v.type = types_of(t, die);
	if (!name || !v.type || !v.type->size)
		return;
	v.name = types_name(t, name);
	v.size = v.type->size;
	*vec_add(&t->variables) = v;
}

/* Functions and blocks have static variables, too. */
static void add_variables(struct types *t, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > TYPES_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_variable)
			add_variable(t, &die);
		else if (tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
			 tag == DW_TAG_lexical_block)
			add_variables(t, &die, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

static int by_address(const void *a, const void *b)
{
	const struct type_variable *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static void read_variables(struct types *t)
{
	Dwarf_Addr bias;

	t->read = true;
	for (Dwarf_Die *cu = NULL; (cu = dwfl_module_nextcu(t->lines->module, cu, &bias));)
		add_variables(t, cu, 0);
	vec_sort(&t->variables, by_address);
}

const struct type_variable *types_variable_at(struct types *t, uint64_t vaddr)
{
	size_t from = 0, to;

	if (!t->read)
		read_variables(t);
	to = t->variables.n;
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (t->variables.p[middle].address <= vaddr)
			from = middle + 1;
		else
			to = middle;
	}
	return from && vaddr - t->variables.p[from - 1].address < t->variables.p[from - 1].size
		       ? &t->variables.p[from - 1]
		       : NULL;
}

/* ---- functions ---- */

/* The subprogram whose code this is (image/inlines.c). */
static bool find_function(struct types *t, uint64_t pc, Dwarf_Die *out)
{
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(t->lines->module, pc + t->lines->bias, &bias);
	Dwarf_Die *scopes = NULL, *nested = NULL;
	int n = cu ? dwarf_getscopes(cu, pc + t->lines->bias - bias, &scopes) : 0;
	bool found = false;

	n = n > 0 ? dwarf_getscopes_die(&scopes[0], &nested) : 0;
	for (int i = 0; i < n && !found; i++) {
		found = dwarf_tag(&nested[i]) == DW_TAG_subprogram;
		*out = nested[i];
	}
	free(scopes);
	free(nested);
	return found;
}

struct pointed {
	struct types *types;
	const struct type **out;
	size_t n, most;
};

static void add_found(struct pointed *p, const struct type *type)
{
	if (!type || !type->size || p->n == p->most)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->out[i] == type)
			return;
	p->out[p->n++] = type;
}

static void add_pointee(struct pointed *p, Dwarf_Die *die)
{
	add_found(p, types_pointee(p->types, die));
}

static void add_pointees(struct pointed *p, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	add_pointee(p, parent); /* its result */
	if (depth > TYPES_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
			add_pointee(p, &die);
		else if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine)
			add_pointees(p, &die, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

size_t types_pointed_at(struct types *t, uint64_t pc, const struct type **out, size_t most)
{
	struct pointed p = {t, out, 0, most};
	Dwarf_Die function;

	if (find_function(t, pc, &function))
		add_pointees(&p, &function, 0);
	return p.n;
}

static bool is_struct_of(Dwarf_Die *die, uint64_t size)
{
	int tag = dwarf_tag(die);

	return (tag == DW_TAG_structure_type || tag == DW_TAG_class_type) &&
	       dwarf_bytesize(die) == (int)size;
}

/* Structs that have a name, or have one by a typedef. */
static void add_of_size(struct pointed *p, Dwarf_Die *parent, uint64_t size, unsigned depth)
{
	Dwarf_Attribute at;
	Dwarf_Die die, type;

	if (depth > TYPES_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_namespace)
			add_of_size(p, &die, size, depth + 1);
		else if (is_struct_of(&die, size) && dwarf_hasattr(&die, DW_AT_name))
			add_found(p, types_described(p->types, &die, NULL));
		else if (dwarf_tag(&die) == DW_TAG_typedef &&
			 dwarf_formref_die(dwarf_attr(&die, DW_AT_type, &at), &type) &&
			 is_struct_of(&type, size))
			add_found(p, types_described(p->types, &type, dwarf_diename(&die)));
	} while (!dwarf_siblingof(&die, &die));
}

size_t types_of_size(
	struct types *t, uint64_t pc, uint64_t size, const struct type **out, size_t most)
{
	struct pointed p = {t, out, 0, most};
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(t->lines->module, pc + t->lines->bias, &bias);

	if (cu && size <= INT_MAX)
		add_of_size(&p, cu, size, 0);
	return p.n;
}

/* From the CFA: what compilers say when a function's frame base is that. */
static bool frame_offset(Dwarf_Die *die, int64_t *out)
{
	Dwarf_Attribute at;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr_integrate(die, DW_AT_location, &at) || dwarf_getlocation(&at, &ops, &n) ||
		n != 1 || ops[0].atom != DW_OP_fbreg)
		return false;
	*out = (int64_t)ops[0].number;
	return true;
}

static bool find_local(struct types *t, Dwarf_Die *parent, int64_t offset,
	struct type_variable *out, unsigned depth)
{
	Dwarf_Die die;

	if (depth > TYPES_DEPTH || dwarf_child(parent, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		int64_t at;
		const struct type *type;
		Dwarf_Attribute name;

		if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) {
			if (find_local(t, &die, offset, out, depth + 1))
				return true;
			continue;
		}
		if ((tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) ||
			!frame_offset(&die, &at) || offset < at || !(type = types_of(t, &die)) ||
			(uint64_t)(offset - at) >= type->size)
			continue;
		const char *text = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_name, &name));
		*out = (struct type_variable){types_name(t, text), (uint64_t)at, type->size, type};
		return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static bool has_cfa_base(Dwarf_Die *function)
{
	Dwarf_Attribute at;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_attr_integrate(function, DW_AT_frame_base, &at) &&
	       !dwarf_getlocation(&at, &ops, &n) && n == 1 && ops[0].atom == DW_OP_call_frame_cfa;
}

bool types_local_at(struct types *t, uint64_t pc, int64_t offset, struct type_variable *out)
{
	Dwarf_Die function;

	return find_function(t, pc, &function) && has_cfa_base(&function) &&
	       find_local(t, &function, offset, out, 0);
}
