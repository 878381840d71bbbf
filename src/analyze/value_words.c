#include "analyze/value_internal.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool value_image_address(const struct selected_image *im, uint64_t offset, uint64_t *vaddr)
{
	*vaddr = offset;
	return !im->nsegments || segments_vaddr(im->segments, im->nsegments, offset, vaddr);
}

uint32_t value_procedure_at(const struct selected_image *im, uint64_t vaddr)
{
	struct code_walk walk = code_walk_start(&im->map, NULL, 0);

	return code_walk_to(&walk, vaddr, &vaddr);
}

/* ---- operands ---- */

static void put_operand(char *text, size_t size, const char *what, const char *operand)
{
	snprintf(text, size, "%s%s%s", what, *operand ? " " : "", operand);
}

void value_row_operand(const struct value_row *row, char *text, size_t size)
{
	static const struct role_texts none;
	const struct role_texts *t = row->texts ? row->texts : &none;
	bool divides = row->roles && row->roles->operation == OPERATION_DIVIDE;

	if (row->kind == VALUE_TARGET) {
		put_operand(text, size, "target", t->memory);
	} else if (row->kind >= VALUE_ENTRY0 && row->kind <= VALUE_ENTRY5) {
		unsigned argument = row->kind - VALUE_ENTRY0;

		snprintf(text, size, "argument %u %s", argument + 1, isa_argument_name(argument));
	} else if (row->kind == VALUE_RESULT) {
		put_operand(text, size, "result", t->result);
	} else if (row->kind == VALUE_SOURCE) {
		put_operand(text, size, divides ? "divisor" : "source", t->source);
	} else if (row->kind == VALUE_ADDRESS || row->kind == VALUE_STRIDE ||
		   row->kind == VALUE_LATENCY) {
		put_operand(text, size, value_kind_name(row->kind), t->memory);
	} else if (row->kind >= VALUE_PLUGIN0) {
		snprintf(text, size, "plugin %u", row->kind - VALUE_PLUGIN0);
	} else {
		const char *name = value_kind_name(row->kind);

		snprintf(text, size, "%s", name ? name : "unknown");
	}
}

/* ---- values ---- */

void value_row_number(const struct value_row *row, uint64_t value, char *text, size_t size)
{
	if (row->kind == VALUE_STRIDE && (int64_t)value < 0) {
		snprintf(text, size, "-0x%" PRIx64, 0 - value);
	} else if (row->kind == VALUE_FLOAT && row->roles && row->roles->float_size == 4) {
		uint32_t bits = (uint32_t)value;
		float f;

		memcpy(&f, &bits, sizeof f);
		snprintf(text, size, "%.9g", (double)f);
	} else if (row->kind == VALUE_FLOAT) {
		double d;

		memcpy(&d, &value, sizeof d);
		snprintf(text, size, "%.17g", d);
	} else {
		snprintf(text, size, "0x%" PRIx64, value);
	}
}

static bool name_in_image(const struct value_report *r, struct selected_image *im, uint64_t address,
	char *text, size_t size)
{
	struct value_image *vi = im->user;
	struct err e;

	if (selection_load(r->data.sel, im, &e))
		return false;
	return value_code_name(im, vi ? &vi->file : NULL, address, text, size);
}

/* Only images that are linked to where they run: what is position-independent could be anywhere. */
static bool has_fixed_place(const struct selected_image *im)
{
	enum { LOWEST = 0x10000 };

	return im->kind == IMAGE_ELF && im->nsegments && im->segments[0].vaddr >= LOWEST;
}

static bool name_address(const struct value_report *r, uint64_t address, char *text, size_t size)
{
	struct selected_image *images;
	size_t n = selection_images(r->data.sel, &images);

	for (size_t i = 0; i < n; i++) {
		if (!has_fixed_place(&images[i]))
			continue;
		for (size_t k = 0; k < images[i].nsegments; k++) {
			const struct segment *s = &images[i].segments[k];

			if (address - s->vaddr < s->size)
				return name_in_image(r, &images[i], address, text, size);
		}
	}
	return false;
}

bool value_report_name(struct value_report *r, const struct value_row *row,
	const struct value_share *value, char *text, size_t size)
{
	const struct selected_image *here = row->procedure->image;
	char name[320];

	if (row->kind == VALUE_ADDRESS)
		return name_address(r, value->value, text, size);
	if (row->kind != VALUE_TARGET || !value->image ||
		!name_in_image(r, selection_image(r->data.sel, value->image->id), value->value,
			name, sizeof name))
		return false;
	if (value->image == here)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "%s in %s", name, selected_image_name(value->image));
	return true;
}

/* The image of a call site in another image than what it calls; NULL when it is not among ours. */
static struct selected_image *site_image(const struct value_report *r, uint64_t context)
{
	struct selected_image *images, *found = NULL;
	size_t n = selection_images(r->data.sel, &images);

	for (size_t i = 0; i < n; i++) {
		if (VALUE_CONTEXT_KEY(r->data.keys[i]) != VALUE_CONTEXT_KEY_OF(context))
			continue;
		if (found)
			return NULL;
		found = &images[i];
	}
	return found;
}

void value_report_site(struct value_report *r, const struct value_row *row, char *text, size_t size)
{
	struct value_image *vi = row->procedure->data;
	bool far = row->context & VALUE_CONTEXT_FAR;
	struct selected_image *im = far ? site_image(r, row->context) : vi->image;
	uint64_t offset = VALUE_CONTEXT_OFFSET(row->context), address;
	char name[320];
	struct err e;

	if (!row->context || !im) {
		*text = 0;
		if (row->context)
			snprintf(text, size, "another image, 0x%" PRIx64, offset);
		return;
	}
	if (selection_load(r->data.sel, im, &e) || !value_image_address(im, offset, &address) ||
		!name_in_image(r, im, address, name, sizeof name))
		snprintf(name, sizeof name, "0x%" PRIx64, offset);
	snprintf(text, size, "%s%s%s", name, far ? " in " : "", far ? selected_image_name(im) : "");
}

bool value_report_text(struct value_report *r, const struct value_row *row, enum isa_syntax syntax,
	char *text, size_t size)
{
	const struct value_procedure *p = row->procedure;
	const struct code_insn *insn;

	if (r->code_of != p) {
		value_code_destroy(r->code);
		r->code = NULL;
		r->code_of = p;
		if (value_code_create(
			    r->data.sel, p->image, p->number, &p->data->file, &r->code, NULL))
			r->code = NULL;
	}
	insn = r->code ? value_code_at(r->code, row->address) : NULL;
	if (insn)
		value_code_text(r->code, insn, syntax, text, size);
	return insn != NULL;
}
