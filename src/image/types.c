#include "image/types_internal.h"

#include "base/buf.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MOST 10000

/* Where a type is described, and what became of it. */
struct made {
	uint64_t key;
	const struct type *type; /* NULL while it is made: a type that contains itself is no type */
};

struct named {
	uint64_t key;
	const struct type *type;
};

static const struct type *make(struct types *t, Dwarf_Die *die, const char *name, unsigned depth);

const char *types_name(struct types *t, const char *name)
{
	uint32_t number = strtab_add(&t->names, name ? name : "");

	return t->names.strings[number];
}

/* ---- following references ---- */

/* What DW_AT_type names, without typedefs and qualifiers; the last typedef's name on the way. */
static bool follow(Dwarf_Die *die, Dwarf_Die *out, const char **name)
{
	Dwarf_Attribute at;
	Dwarf_Die type;

	*name = NULL;
	if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &at), &type))
		return false;
	for (int i = 0; i < TYPES_DEPTH; i++) {
		int tag = dwarf_tag(&type);

		if (tag == DW_TAG_typedef && !*name)
			*name = dwarf_diename(&type);
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
			tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type &&
			tag != DW_TAG_atomic_type) {
			*out = type;
			return true;
		}
		if (!dwarf_formref_die(dwarf_attr_integrate(&type, DW_AT_type, &at), &type))
			return false;
	}
	return false;
}

static bool number_of(Dwarf_Die *die, unsigned attribute, uint64_t *out)
{
	Dwarf_Attribute at;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, attribute, &at), &value))
		return false;
	*out = value;
	return true;
}

/* ---- kinds ---- */

typedef VEC(struct type_member) member_list;

static void add_member(struct types *t, Dwarf_Die *die, unsigned depth, member_list *out)
{
	struct type_member m = {.name = types_name(t, dwarf_diename(die))};
	uint64_t bits = 0;
	const char *name;
	Dwarf_Die type;

	if (!follow(die, &type, &name) || out->n >= MEMBERS_MOST)
		return;
	m.type = make(t, &type, name, depth + 1);
	if (!m.type)
		return;
	m.size = m.type->size;
	if (number_of(die, DW_AT_data_bit_offset, &bits)) {
		m.offset = bits / 8;
		m.size = 1;
		if (number_of(die, DW_AT_bit_size, &bits))
			m.size = (bits + 7) / 8;
	} else {
		number_of(die, DW_AT_data_member_location, &m.offset);
	}
	*vec_add(out) = m;
}

static void add_members(struct types *t, Dwarf_Die *die, unsigned depth, member_list *out)
{
	Dwarf_Die child;
	Dwarf_Attribute at;

	if (dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);
		bool is_static = dwarf_attr(&child, DW_AT_external, &at) != NULL;

		if ((tag == DW_TAG_member && !is_static) || tag == DW_TAG_inheritance)
			add_member(t, &child, depth, out);
	} while (!dwarf_siblingof(&child, &child));
}

static uint64_t align_of(const struct type *type)
{
	uint64_t align = 1;

	if (type->kind == TYPE_ARRAY)
		return type->element ? type->element->align : 1;
	if (type->kind != TYPE_STRUCT)
		return type->size && type->size <= 16 ? type->size : 1;
	for (uint32_t i = 0; i < type->n; i++)
		if (type->members[i].type->align > align)
			align = type->members[i].type->align;
	return align;
}

static void make_struct(struct types *t, Dwarf_Die *die, unsigned depth, struct type *to)
{
	member_list list = {0};
	struct type_member *members;

	add_members(t, die, depth, &list);
	members = arena_alloc(&t->arena, (list.n + 1) * sizeof *members);
	if (list.n)
		memcpy(members, list.p, list.n * sizeof *members);
	to->kind = TYPE_STRUCT;
	to->is_union = dwarf_tag(die) == DW_TAG_union_type;
	to->members = members;
	to->n = (uint32_t)list.n;
	vec_deinit(&list);
}

/* Several files describe one type. */
static const struct type *unite(struct types *t, const struct type *type)
{
	uint64_t key = hash_bytes(type->name, strlen(type->name)) ^ type->size * 0x9e3779b97f4a7c15;
	struct named *n;
	bool fresh;

	if (type->kind != TYPE_STRUCT || !*type->name)
		return type;
	n = hmap_put(&t->named, &key, &fresh);
	if (fresh || n->type->n != type->n)
		n->type = type;
	return n->type;
}

static void fill(struct types *t, Dwarf_Die *die, const char *name, unsigned depth, struct type *to)
{
	const char *inner;
	Dwarf_Die element;

	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		make_struct(t, die, depth, to);
		break;
	case DW_TAG_array_type:
		to->kind = TYPE_ARRAY;
		if (follow(die, &element, &inner))
			to->element = make(t, &element, inner, depth + 1);
		to->name = to->element ? to->element->name : name;
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		to->kind = TYPE_POINTER;
		to->size = 8;
		break;
	}
}

static const struct type *make(struct types *t, Dwarf_Die *die, const char *name, unsigned depth)
{
	uint64_t key = (uint64_t)(uintptr_t)die->addr;
	struct made *m;
	struct type *type;
	Dwarf_Word size;
	bool fresh;

	m = hmap_put(&t->made, &key, &fresh);
	if (!fresh || depth > TYPES_DEPTH)
		return m->type;
	type = arena_alloc(&t->arena, sizeof *type);
	*type = (struct type){
		.name = types_name(t, dwarf_diename(die) ? dwarf_diename(die) : name)};
	if (!dwarf_aggregate_size(die, &size))
		type->size = size;
	fill(t, die, type->name, depth, type);
	type->align = align_of(type);
	m = hmap_put(&t->made, &key, NULL);
	m->type = unite(t, type);
	return m->type;
}

const struct type *types_of(struct types *t, Dwarf_Die *die)
{
	const char *name;
	Dwarf_Die type;

	return follow(die, &type, &name) ? make(t, &type, name, 0) : NULL;
}

const struct type *types_described(struct types *t, Dwarf_Die *die, const char *name)
{
	return make(t, die, name, 0);
}

const struct type *types_pointee(struct types *t, Dwarf_Die *die)
{
	const char *name;
	Dwarf_Die type;
	int tag;

	if (!follow(die, &type, &name))
		return NULL;
	tag = dwarf_tag(&type);
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ? types_of(t, &type)
									  : NULL;
}

/* ---- fields ---- */

const struct type_member *type_member_at(const struct type *t, uint64_t offset)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (offset - t->members[i].offset < t->members[i].size)
			return &t->members[i];
	return NULL;
}

void type_field(const struct type *t, uint64_t offset, struct buf *out)
{
	const struct type_member *m;

	for (int depth = 0; t && depth < TYPES_DEPTH; depth++) {
		if (t->kind == TYPE_ARRAY && t->element && t->element->size) {
			buf_printf(out, "[%llu]", (unsigned long long)(offset / t->element->size));
			offset %= t->element->size;
			t = t->element;
			continue;
		}
		m = t->kind == TYPE_STRUCT ? type_member_at(t, offset) : NULL;
		if (!m)
			break;
		if (*m->name)
			buf_printf(out, ".%s", m->name);
		offset -= m->offset;
		t = m->type;
	}
	if (offset)
		buf_printf(out, "+%llu", (unsigned long long)offset);
}

bool type_fits(const struct type *t, uint64_t offset, uint64_t size)
{
	for (int depth = 0; t && depth < TYPES_DEPTH; depth++) {
		const struct type_member *m = NULL;

		if (t->kind == TYPE_ARRAY && t->element && t->element->size) {
			if (size > t->element->size) /* several at once */
				return offset % t->element->size == 0;
			offset %= t->element->size;
			t = t->element;
			continue;
		}
		if (t->kind == TYPE_POINTER)
			return !offset && size == t->size;
		if (t->kind != TYPE_STRUCT)
			return !offset && size <= t->size;
		for (uint32_t i = 0; i < t->n && !m; i++)
			if (offset - t->members[i].offset < t->members[i].size &&
				(!t->is_union || type_fits(t->members[i].type,
							 offset - t->members[i].offset, size)))
				m = &t->members[i];
		if (!m)
			return false;
		if (size > m->size) /* neighbours that are copied together */
			return offset == m->offset && offset + size <= t->size;
		offset -= m->offset;
		t = m->type;
	}
	return false;
}

struct types *types_create(struct lines *l)
{
	struct types *t = xcalloc(1, sizeof *t);

	t->lines = l;
	hmap_init(&t->made, sizeof(struct made), sizeof(uint64_t));
	hmap_init(&t->named, sizeof(struct named), sizeof(uint64_t));
	return t;
}

void types_destroy(struct types *t)
{
	if (!t)
		return;
	hmap_deinit(&t->made);
	hmap_deinit(&t->named);
	strtab_deinit(&t->names);
	arena_deinit(&t->arena);
	vec_deinit(&t->variables);
	free(t);
}
