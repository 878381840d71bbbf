/* What the files of `culprit streams` share: streams.c has the streams, streams_chain.c how one is
 * written, streams_contexts.c who walks it, streams_advice.c what to do about the data. */
#ifndef CULPRIT_CMD_STREAMS_VIEW_H
#define CULPRIT_CMD_STREAMS_VIEW_H

#include "analyze/advice_fields.h"
#include "analyze/advice_prefetch.h"
#include "analyze/advice_together.h"
#include "analyze/stream_contexts.h"
#include "analyze/streams.h"
#include "analyze/things.h"
#include "base/json.h"
#include "cmd/cmd.h"

struct streams_view {
	struct report report;
	struct streams_options options;
	struct streams *streams;
	struct things *things;
	struct fields *fields;
	struct pairs *pairs;
	struct reaches *reaches;
	const struct field_advice *field_list;
	const struct pair_advice *pair_list;
	const struct reach_advice *reach_list;
	size_t nfields, npairs, nreaches;
	uint64_t touches;    /* references to the heap and to variables */
	const char *compare; /* another database; NULL: none */
	double overlap;
	bool raw; /* addresses as they are */
	bool by_context;
	struct stream_contexts *contexts;
};

/* Where an instruction is: "procedure+0x12". */
const char *streams_place(
	struct streams_view *v, const struct trace_site *s, char *text, size_t size);

/* What a stream touches: "make_node: node.value -> node.next x 20", by whom, and who allocated it.
 */
void streams_chain_print(struct streams_view *v, const struct stream *s);
/* The keys of each reference that say what it was. */
void streams_chain_json(
	struct streams_view *v, const struct stream_reference *r, struct json *j, bool first);

/* In which calling contexts a stream occurs, by its number. */
void streams_contexts_print(struct streams_view *v, size_t stream);
void streams_contexts_json(struct streams_view *v, size_t stream, struct json *j);

int streams_advice_make(struct streams_view *v, struct err *e);
void streams_advice_print(struct streams_view *v);
void streams_advice_json(struct streams_view *v, struct json *j);
void streams_advice_deinit(struct streams_view *v);

#endif
