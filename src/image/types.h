/*
 * Types and variables from DWARF: what is at an offset of a thing, which variable is at an address,
 * and what a function's pointers point to.
 *
 * All of it is the struct types' and lives as long as it does; it lives as long as the lines that
 * it was made of.
 */
#ifndef CULPRIT_IMAGE_TYPES_H
#define CULPRIT_IMAGE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct lines;
struct types;

enum type_kind {
	TYPE_SCALAR,
	TYPE_POINTER,
	TYPE_STRUCT, /* or class, or union: members overlap then */
	TYPE_ARRAY,
};

struct type_member {
	const char *name; /* "" for what has none */
	uint64_t offset, size;
	const struct type *type;
};

/* Types of different files with one name and size are one. */
struct type {
	const char *name;
	enum type_kind kind;
	bool is_union;
	uint64_t size, align;
	const struct type_member *members; /* of a struct, as they are declared */
	uint32_t n;
	const struct type *element; /* of an array */
};

struct type_variable {
	const char *name;
	uint64_t address, size;
	const struct type *type;
};

struct types *types_create(struct lines *l);
void types_destroy(struct types *t); /* takes NULL */

/* The global or static variable that covers an address; NULL. The first call reads all. */
const struct type_variable *types_variable_at(struct types *t, uint64_t vaddr);

/* The local variable of the function at pc that lies there in its frame, from the CFA on. */
bool types_local_at(struct types *t, uint64_t pc, int64_t offset, struct type_variable *out);

/* What variables, parameters and the result of the function at pc point to; how many. */
size_t types_pointed_at(struct types *t, uint64_t pc, const struct type **out, size_t most);

/* Structs of just that size that the file of the code at pc describes; how many. */
size_t types_of_size(
	struct types *t, uint64_t pc, uint64_t size, const struct type **out, size_t most);

/* The innermost members at an offset: ".next", "[3].key", "+5" where there is no member. */
void type_field(const struct type *t, uint64_t offset, struct buf *out);

/* Whether something of that size at an offset is an innermost member: its beginning, of numbers;
 * all of it, of pointers; or several that are copied at once. */
bool type_fits(const struct type *t, uint64_t offset, uint64_t size);

/* The member of a struct at an offset; NULL: there is none. */
const struct type_member *type_member_at(const struct type *t, uint64_t offset);

#endif
