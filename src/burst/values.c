/*
 * The payload of values: what registers hold. Which, is a list of
 *
 *	loads			what is loaded from memory to registers, everywhere
 *	PROCEDURE[:REG...]	at its entry: rdi, rsi and rdx, or those that are named
 *	PROCEDURE+OFFSET:REG...	before the instruction there
 *
 * with commas between.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "burst/burst_internal.h"
#include "burst/payload.h"
#include "edit/edit.h"
#include "isa/form.h"
#include "isa/registers.h"
#include "store/traces.h"

struct wish {
	size_t name; /* its length; the text begins with it */
	uint64_t offset;
	uint8_t reg[BURST_WORDS];
	unsigned n;
};

static int read_registers(const char *p, const char *end, struct wish *out, struct err *e)
{
	while (p < end) {
		size_t n = strcspn(p, ":,");
		int reg = isa_register_find(p, n);

		if (reg < 0 || out->n == BURST_WORDS)
			return err_set(e, -EINVAL,
				"'%.*s': up to %d registers of 64 bits, as :rdi:rsi",
				(int)(end - p), p, BURST_WORDS);
		out->reg[out->n++] = (uint8_t)reg;
		p += n + (p[n] == ':');
	}
	return 0;
}

/* One of the list, up to a comma. */
static int read_wish(const char *text, struct wish *out, struct err *e)
{
	static const struct wish usual = {.reg = {REG_RDI, REG_RSI, REG_RDX}, .n = 3};
	const char *end = text + strcspn(text, ","), *regs = text + strcspn(text, ":,");
	const char *plus = memchr(text, '+', (size_t)(regs - text));

	*out = (struct wish){.name = (size_t)((plus ? plus : regs) - text)};
	if (plus) {
		char *stop;

		out->offset = strtoull(plus + 1, &stop, 0);
		if (stop != regs || !out->offset || regs == end)
			return err_set(e, -EINVAL, "'%.*s' is no PROCEDURE+OFFSET:REGISTER",
				(int)(end - text), text);
	}
	if (!out->name)
		return err_set(e, -EINVAL, "values of what? loads, or names of procedures");
	if (regs == end) {
		memcpy(out->reg, usual.reg, sizeof out->reg);
		out->n = usual.n;
	}
	return regs == end ? 0 : read_registers(regs + 1, end, out, e);
}

static bool is_loads(const char *text)
{
	size_t n = strcspn(text, ",");

	return n == 5 && !memcmp(text, "loads", n);
}

static const char *next_wish(const char *text)
{
	text += strcspn(text, ",");
	return *text ? text + 1 : NULL;
}

static int check(const char *more, struct err *e)
{
	struct wish w;
	int rc = 0;

	for (const char *text = more; text && !rc; text = next_wish(text))
		if (!is_loads(text))
			rc = read_wish(text, &w, e);
	return rc;
}

/* ---- points ---- */

/* A register's value is the address that it alone would make. */
static void add_value(struct point *p, uint64_t at, uint8_t reg)
{
	*vec_add(&p->events) = (struct burst_event){
		.at = at, .kind = TRACE_VALUE, .word = (uint8_t)p->words, .size = reg};
	p->word[p->words++] =
		(struct reference){.base = reg, .index = REG_NONE, .scale = 1, .size = 8};
}

static void put_point(struct burst *b, struct edit_function *f, uint32_t insn, struct point *p)
{
	point_ask_room(b, f, insn, insn);
	point_put(b, f, insn, p);
}

/* What an instruction loads is seen before the next one of its block. */
static void put_loads(struct burst *b, struct edit_function *f, const struct flow_block *block)
{
	struct point p = {0};

	for (uint32_t i = block->first; i + 1 < block->first + block->count; i++) {
		struct form form;

		if (edit_form(b->edit, f, i, &form) || form.from.type != FORM_MEMORY ||
			(form.op != FORM_MOVE && form.op != FORM_MOVE_SIGNED) ||
			form.to.type != FORM_REGISTER || form.to.size < 4)
			continue;
		add_value(&p, f->flow->insns[i].address, form.to.reg);
		put_point(b, f, i + 1, &p);
	}
	vec_deinit(&p.events);
}

static void put_wish(struct burst *b, struct edit_function *f, const struct wish *w)
{
	uint64_t at = f->procedure->start + w->offset;
	uint32_t block = flow_block_at(f->flow, at), insn;
	struct point p = {0};

	if (block == GRAPH_NONE)
		return;
	for (insn = f->flow->blocks[block].first; f->flow->insns[insn].address < at;)
		insn++;
	if (f->flow->insns[insn].address != at)
		return;
	for (unsigned i = 0; i < w->n; i++)
		add_value(&p, at, w->reg[i]);
	put_point(b, f, insn, &p);
	vec_deinit(&p.events);
}

static bool is_meant(const struct edit_function *f, const char *text, const struct wish *w)
{
	const char *name = f->procedure->name;

	return name && strlen(name) == w->name && !memcmp(name, text, w->name);
}

static void put(struct burst *b, struct edit_function *twin, const bool *boring)
{
	const char *more = b->options->more ? b->options->more : "loads";
	const struct flow *flow = twin->flow;
	struct wish w;

	for (const char *text = more; text; text = next_wish(text)) {
		if (!is_loads(text) && !read_wish(text, &w, NULL) && is_meant(twin, text, &w))
			put_wish(b, twin, &w);
		for (uint32_t i = 0; is_loads(text) && i < flow->nblocks; i++)
			if (!boring[i] && !(flow->blocks[i].marks & FLOW_PADDING))
				put_loads(b, twin, &flow->blocks[i]);
	}
}

const struct payload payload_values = {
	.name = "values", .words = "values", .put = put, .check = check};
