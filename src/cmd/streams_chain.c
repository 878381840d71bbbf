#include "base/buf.h"
#include "base/hmap.h"
#include "cmd/streams_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PERIOD_MOST 16
#define WIDTH       96
#define INDENT      "      "
#define PATHS_SHOWN 3

/* The things of a stream one after the other: texts by number. */
struct chain {
	struct strtab texts;
	VEC(uint32_t) numbers;
	VEC(uint32_t) paths; /* by which its objects came, each once */
	VEC(uint64_t) objects;
};

static void begin(struct streams_view *v, const struct stream_reference *r)
{
	things_begin(v->things, &(struct trace_burst){.process = r->process, .time = r->time});
}

static void add_path(struct chain *c, uint32_t path)
{
	vec_each (p, &c->paths)
		if (*p == path)
			return;
	*vec_add(&c->paths) = path;
}

static void add_object(struct chain *c, uint64_t object)
{
	vec_each (o, &c->objects)
		if (*o == object)
			return;
	*vec_add(&c->objects) = object;
}

/* Which element of an array it was is left out, so that turns of loops look alike. */
static const char *without_indices(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		*to++ = *from;
		if (*from == '[')
			from += strspn(from + 1, "0123456789");
	}
	*to = 0;
	return text;
}

static void make_chain(struct streams_view *v, const struct stream *s, struct chain *c)
{
	const struct object_set *set = things_set(v->things);
	struct buf text = {0};
	struct thing x;

	begin(v, &s->references[0]);
	for (uint32_t i = 0; i < s->length; i++) {
		const struct stream_reference *r = &s->references[i];

		things_at(v->things, &r->site, r->address, &x);
		text.n = 0;
		things_text(v->things, &x, &text);
		*vec_add(&c->numbers) =
			strtab_add(&c->texts, without_indices((char *)buf_cstr(&text)));
		if (x.object != OBJECT_NONE) {
			add_object(c, x.object);
			add_path(c, set->objects.p[x.object].path);
		}
	}
	buf_deinit(&text);
}

static void chain_deinit(struct chain *c)
{
	strtab_deinit(&c->texts);
	vec_deinit(&c->numbers);
	vec_deinit(&c->paths);
	vec_deinit(&c->objects);
}

/* How often what is at a place comes again right behind it, with a period. */
static uint32_t repeats(const struct chain *c, size_t at, uint32_t period)
{
	uint32_t times = 1;

	for (; at + (times + 1) * period <= c->numbers.n; times++)
		for (uint32_t i = 0; i < period; i++)
			if (c->numbers.p[at + i] != c->numbers.p[at + times * period + i])
				return times;
	return times;
}

static uint32_t best_period(const struct chain *c, size_t at, uint32_t *times)
{
	uint32_t best = 1;

	*times = repeats(c, at, 1);
	for (uint32_t p = 2; p <= PERIOD_MOST && at + p <= c->numbers.n; p++) {
		uint32_t n = repeats(c, at, p);

		if (n > 1 && n * p > *times * best) {
			*times = n;
			best = p;
		}
	}
	return best;
}

/* A word more in the line, or in the next. */
static void put_word(const char *word, size_t *column)
{
	size_t n = strlen(word);

	if (*column && *column + n > WIDTH) {
		fputs("\n" INDENT "  ", stdout);
		*column = 2;
	}
	cmd_put(stdout, word);
	*column += n;
}

/* How much of a text says whose field it is: "make_node: node" before ".next". */
static size_t owner_size(const char *text)
{
	const char *dot = strrchr(text, '.');

	return dot && strstr(text, ": ") ? (size_t)(dot - text) : 0;
}

/* A field of what the one before was a field of, without saying that again. */
static void put_link(const struct chain *c, size_t at, bool first, bool last, size_t *column)
{
	const char *text = c->texts.strings[c->numbers.p[at]];
	const char *before = first ? "" : c->texts.strings[c->numbers.p[at - 1]];
	size_t owner = owner_size(text);
	struct buf word = {0};

	if (owner && owner == owner_size(before) && !strncmp(text, before, owner))
		text += owner;
	buf_printf(&word, "%s%s", text, last ? "" : " -> ");
	put_word(buf_cstr(&word), column);
	buf_deinit(&word);
}

static void print_links(const struct chain *c)
{
	size_t column = 0;

	fputs(INDENT, stdout);
	for (size_t at = 0; at < c->numbers.n;) {
		uint32_t times, period = best_period(c, at, &times);
		char text[32];

		if (times > 1 && period > 1)
			put_word("(", &column);
		for (uint32_t i = 0; i < period; i++)
			put_link(c, at + i, !i, i + 1 == period, &column);
		snprintf(text, sizeof text, "%s x %u", period > 1 ? ")" : "", times);
		if (times > 1)
			put_word(text, &column);
		at += (size_t)times * period;
		if (at < c->numbers.n)
			put_word(" -> ", &column);
	}
	putchar('\n');
}

/* The procedures whose instructions these are, in their order. */
static void print_code(struct streams_view *v, const struct stream *s)
{
	VEC(uint64_t) seen = {0};

	fputs(INDENT "by ", stdout);
	for (uint32_t i = 0; i < s->length; i++) {
		const struct trace_site *site = &s->references[i].site;
		struct trace_site entry = *site;
		char name[600], *plus;
		bool known = false;

		vec_each (p, &seen)
			known |= *p == site->procedure;
		if (known)
			continue;
		*vec_add(&seen) = entry.at = site->procedure;
		streams_place(v, &entry, name, sizeof name);
		plus = strrchr(name, '+');
		if (plus)
			*plus = 0;
		if (seen.n > 1)
			fputs(", ", stdout);
		cmd_put(stdout, name);
	}
	putchar('\n');
	vec_deinit(&seen);
}

static void print_paths(struct streams_view *v, const struct chain *c)
{
	struct buf text = {0};

	if (c->objects.n)
		printf(INDENT "%zu object%s, allocated by", c->objects.n,
			c->objects.n == 1 ? "" : "s");
	for (size_t i = 0; i < c->paths.n && i < PATHS_SHOWN; i++) {
		text.n = 0;
		things_path_text(v->things, c->paths.p[i], &text);
		printf("%s", i || c->paths.n > 1 ? "\n" INDENT "  " : " ");
		cmd_put(stdout, text.n ? buf_cstr(&text) : "somebody");
	}
	if (c->paths.n > PATHS_SHOWN)
		printf("\n" INDENT "  and %zu other paths of calls", c->paths.n - PATHS_SHOWN);
	if (c->objects.n)
		putchar('\n');
	buf_deinit(&text);
}

void streams_chain_print(struct streams_view *v, const struct stream *s)
{
	struct chain c = {0};

	make_chain(v, s, &c);
	print_links(&c);
	print_code(v, s);
	print_paths(v, &c);
	chain_deinit(&c);
}

void streams_chain_json(
	struct streams_view *v, const struct stream_reference *r, struct json *j, bool first)
{
	const struct object_set *set = things_set(v->things);
	const struct thing_group *groups;
	struct buf text = {0};
	struct thing x;

	if (first)
		begin(v, r);
	things_groups(v->things, &groups);
	things_at(v->things, &r->site, r->address, &x);
	things_text(v->things, &x, &text);
	json_kstr(j, "data", buf_cstr(&text));
	json_kstr(j, "allocated",
		x.kind == THING_HEAP && x.group != OBJECT_NONE ? groups[x.group].name : NULL);
	if (x.object != OBJECT_NONE)
		json_kuint(j, "instance", set->objects.p[x.object].ordinal);
	json_kuint(j, "offset", x.offset);
	buf_deinit(&text);
}
