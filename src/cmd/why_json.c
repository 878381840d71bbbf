/* A procedure's analysis for scripts. The keys are kept: others are written against them. */
#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "base/json.h"
#include "cmd/why_view.h"

#include <stdlib.h>

static void put_cpi(struct json *j, const struct why_cycles *c, double instructions)
{
	json_kdouble(j, "best_cpi", c->best / instructions);
	json_kdouble(j, "actual_cpi", c->actual / instructions);
	json_kdouble(j, "cpi_low", c->low / instructions);
	json_kdouble(j, "cpi_high", c->high / instructions);
}

static void put_insn(struct json *j, const struct why_view *v, uint32_t block, uint32_t insn)
{
	const struct evidence *ev = v->why->evidence;
	const struct why_insn *i = &v->why->insns[insn];
	uint64_t address = ev->flow->insns[insn].address;
	struct listing_line line = {0};
	struct why_place place;

	why_place_init(&place, v->why, insn);
	if (v->line(v->arg, address, v->syntax, &line))
		line = (struct listing_line){0};
	json_open(j, '{');
	json_kaddr(j, "address", address);
	json_kstr(j, "text", line.text);
	json_kdouble(j, "samples", i->samples);
	json_kuint(j, "sampled", ev->samples[insn]);
	json_kdouble(j, "count", v->why->frequency->block[block].count);
	json_kdouble(j, "cpi", i->cpi);
	json_kdouble(j, "cpi_low", i->cpi_low);
	json_kdouble(j, "cpi_high", i->cpi_high);
	json_kdouble(j, "min_cpi", i->min_cpi);
	json_kdouble(j, "unexplained", i->unexplained);
	json_kdouble(j, "gone", i->gone);
	json_kdouble(j, "line_gone", i->line_gone);
	json_kstr(j, "file", line.file);
	if (line.file)
		json_kint(j, "line", line.line);
	else
		json_kstr(j, "line", NULL);
	why_place_json(&place, j);
	json_close(j);
}

static void put_block(struct json *j, const struct why_view *v, uint32_t block)
{
	const struct flow_block *b = &v->why->evidence->flow->blocks[block];
	const struct estimate *est = &v->why->frequency->block[block];

	json_open(j, '{');
	json_kaddr(j, "start", b->start);
	json_kuint(j, "size", b->size);
	json_kdouble(j, "count", est->count);
	json_kdouble(j, "count_low", est->low);
	json_kdouble(j, "count_high", est->high);
	json_kstr(j, "confidence", frequency_confidence_name(est->confidence));
	put_cpi(j, &v->why->blocks[block], b->count ? b->count : 1);
	json_key(j, "instructions");
	json_open(j, '[');
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		put_insn(j, v, block, i);
	json_close(j);
	json_close(j);
}

/* An end of an edge: a block's address, or null for what is outside. */
static void put_end(struct json *j, const struct flow *f, const char *key, uint32_t node)
{
	if (node < f->nblocks)
		json_kaddr(j, key, f->blocks[node].start);
	else
		json_kstr(j, key, NULL);
}

static void put_edge(struct json *j, const struct why_view *v, uint32_t edge)
{
	static const char *const kinds[] = {
		[FLOW_EDGE_ENTRY] = "entry",
		[FLOW_EDGE_FALL] = "fall",
		[FLOW_EDGE_JUMP] = "jump",
		[FLOW_EDGE_TABLE] = "table",
		[FLOW_EDGE_RETURN] = "return",
		[FLOW_EDGE_TAIL] = "tail",
		[FLOW_EDGE_STOP] = "stop",
		[FLOW_EDGE_UNSEEN] = "unseen",
	};
	const struct flow *f = v->why->evidence->flow;
	const struct estimate *est = &v->why->frequency->edge[edge];

	json_open(j, '{');
	put_end(j, f, "from", f->graph.edge[edge].from);
	put_end(j, f, "to", f->graph.edge[edge].to);
	json_kstr(j, "kind", kinds[f->edge_kind[edge]]);
	json_kdouble(j, "count", est->count);
	json_kstr(j, "confidence", frequency_confidence_name(est->confidence));
	json_close(j);
}

static void put_seen(struct json *j, const struct why_view *v)
{
	const struct flow *f = v->why->evidence->flow;
	struct why_seen *seen;
	size_t n = why_seen_edges(v->why, &seen);

	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		put_end(j, f, "from", seen[i].from);
		put_end(j, f, "to", seen[i].to);
		json_kstr(j, "kind", "seen");
		json_kdouble(j, "count", seen[i].count);
		json_kstr(j, "confidence", frequency_confidence_name(CONFIDENCE_LOW));
		json_close(j);
	}
	free(seen);
}

static void put_heading(struct json *j, const struct why_view *v)
{
	const struct frequency *f = v->why->frequency;

	json_kstr(j, "procedure", v->procedure);
	json_kstr(j, "image", v->image);
	json_kaddr(j, "start", v->start);
	json_kstr(j, "build_id", v->build_id);
	json_kstr(j, "event", v->event);
	json_kuint(j, "samples", v->why->evidence->total);
	json_kstr(j, "scale", frequency_scale_name(f->scale));
	json_kdouble(j, "scale_low", f->scale_low);
	json_kdouble(j, "scale_high", f->scale_high);
	json_kdouble(j, "assumed", v->why->assumed);
	put_cpi(j, &v->why->cpi, 1);
	json_kstr(j, "machine", model_name(v->why->machine.model));
}

void why_view_json(const struct why_view *v, FILE *out)
{
	const struct flow *f = v->why->evidence->flow;
	struct json j;

	json_init(&j, out);
	json_open(&j, '{');
	put_heading(&j, v);
	json_key(&j, "summary");
	why_summary_json(&v->why->summary, &j);
	json_key(&j, "blocks");
	json_open(&j, '[');
	for (uint32_t b = 0; b < f->nblocks; b++)
		put_block(&j, v, b);
	json_close(&j);
	json_key(&j, "edges");
	json_open(&j, '[');
	for (uint32_t e = 0; e < f->graph.edges; e++)
		put_edge(&j, v, e);
	put_seen(&j, v);
	json_close(&j);
	json_close(&j);
}
