#include "edit/snippet.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/snippet_internal.h"
#include "isa/reference.h"

#define NAME_MAX_LENGTH 15

/* A name that stands before a statement, or that one goes to. */
struct name {
	char text[NAME_MAX_LENGTH + 1];
	unsigned statement;
};

struct reader {
	const char *text, *at;
	struct snippet *out;
	struct name label[SNIPPET_STATEMENTS], use[SNIPPET_STATEMENTS];
	unsigned labels, uses;
	struct err *e;
};

static int refuse(const struct reader *r, const char *why)
{
	return err_set(r->e, -EINVAL, "snippet \"%s\": %s at \"%s\"", r->text, why, r->at);
}

/* ---- words ---- */

static void skip_space(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

/* Takes a sign or a word if it comes next. */
static bool take(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	skip_space(r);
	if (strncmp(r->at, word, n))
		return false;
	if (isalpha((unsigned char)word[n - 1]) && isalnum((unsigned char)r->at[n]))
		return false;
	r->at += n;
	return true;
}

/* A letter and a number below a limit. */
static bool take_numbered(struct reader *r, char letter, unsigned limit, uint8_t *out)
{
	skip_space(r);
	if (r->at[0] != letter || !isdigit((unsigned char)r->at[1]) ||
		isalnum((unsigned char)r->at[2]))
		return false;
	unsigned number = (unsigned)(r->at[1] - '0');
	if (number >= limit)
		return false;
	r->at += 2;
	*out = (uint8_t)number;
	return true;
}

static bool take_register(struct reader *r, uint8_t *out)
{
	if (take_numbered(r, 'v', SNIPPET_VARIABLES, out))
		*out += SNIPPET_VARIABLE0;
	else if (!take_numbered(r, 't', SNIPPET_TEMPORARIES, out))
		return false;
	r->out->registers |= (uint16_t)(1u << *out);
	return true;
}

static bool take_argument(struct reader *r, uint8_t *out)
{
	if (!take_numbered(r, 'a', SNIPPET_ARGUMENTS, out))
		return false;
	if (r->out->arguments <= *out)
		r->out->arguments = *out + 1u;
	return true;
}

static bool take_number(struct reader *r, int64_t *out)
{
	char *end;

	skip_space(r);
	if (!isdigit((unsigned char)*r->at) && *r->at != '-')
		return false;
	*out = strtoll(r->at, &end, 0);
	if (end == r->at)
		return false;
	r->at = end;
	return true;
}

static bool take_name(struct reader *r, struct name *out)
{
	size_t n = 0;

	skip_space(r);
	while (isalpha((unsigned char)r->at[n]))
		n++;
	if (!n || n > NAME_MAX_LENGTH)
		return false;
	memcpy(out->text, r->at, n);
	out->text[n] = 0;
	r->at += n;
	return true;
}

/* ---- operands ---- */

static int read_scale(struct reader *r, uint8_t *scale)
{
	int64_t number;

	*scale = 1;
	if (!take(r, "*"))
		return 0;
	if (!take_number(r, &number) || (number != 1 && number != 2 && number != 4 && number != 8))
		return refuse(r, "no scale of 1, 2, 4 or 8");
	*scale = (uint8_t)number;
	return 0;
}

static int read_register_term(struct reader *r, uint8_t reg, bool first, struct operand *out)
{
	uint8_t scale;
	int err = read_scale(r, &scale);

	if (err)
		return err;
	if (first && scale == 1) {
		out->base = reg;
	} else if (out->index == SNIPPET_NO) {
		out->index = reg;
		out->scale = scale;
	} else {
		return refuse(r, "too many registers");
	}
	return 0;
}

static int read_term(struct reader *r, bool first, struct operand *out)
{
	uint8_t number;
	int64_t offset;

	if (take_register(r, &number))
		return read_register_term(r, number, first, out);
	if (take_argument(r, &number)) {
		if (out->narguments == OPERAND_TERMS)
			return refuse(r, "too many arguments");
		out->argument[out->narguments++] = number;
		if (first && out->space == SPACE_BASE)
			out->space = SPACE_IMAGE;
		return 0;
	}
	if (!take_number(r, &offset))
		return refuse(r, "no term");
	out->number += offset;
	return 0;
}

/* Behind the "[". */
static int read_sum(struct reader *r, enum memory_space space, struct operand *out)
{
	bool first = true;

	out->space = (uint8_t)space;
	do {
		int err = read_term(r, first, out);
		if (err)
			return err;
		first = false;
	} while (take(r, "+"));
	if (!take(r, "]"))
		return refuse(r, "no ]");
	if (out->space == SPACE_BASE && out->base == SNIPPET_NO)
		return refuse(r, "no address");
	return 0;
}

static int read_operand(struct reader *r, struct operand *out)
{
	uint8_t number;

	*out = (struct operand){.base = SNIPPET_NO, .index = SNIPPET_NO, .scale = 1};
	out->type = OPERAND_MEMORY;
	if (take(r, "["))
		return read_sum(r, SPACE_BASE, out);
	if (take(r, "tls["))
		return read_sum(r, SPACE_THREAD, out);
	out->type = OPERAND_ADDRESS;
	if (take(r, "&["))
		return read_sum(r, SPACE_BASE, out);
	out->type = OPERAND_NAMED;
	if (take(r, "&") && take_numbered(r, 'm', SNIPPET_NAMED, &out->base)) {
		r->out->named |= (uint8_t)(1u << out->base);
		return 0;
	}
	out->type = OPERAND_REGISTER;
	if (take_register(r, &out->base))
		return 0;
	out->type = OPERAND_CONSTANT;
	if (take_argument(r, &number)) {
		out->argument[out->narguments++] = number;
		return 0;
	}
	return take_number(r, &out->number) ? 0 : refuse(r, "no value");
}

/* ---- statements ---- */

static int read_comparison(struct reader *r, uint8_t *out)
{
	static const struct {
		const char *sign;
		uint8_t condition;
	} signs[] = {{"==", 4}, {"!=", 5}, {"<=", 14}, {">=", 13}, {"<", 12}, {">", 15}};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		if (!take(r, signs[i].sign))
			continue;
		*out = signs[i].condition;
		return 0;
	}
	return refuse(r, "no comparison");
}

static int read_target(struct reader *r, struct statement *s)
{
	struct name *use = &r->use[r->uses];

	if (take_argument(r, &s->argument))
		return 0;
	if (!take_name(r, use))
		return refuse(r, "no target");
	use->statement = r->out->n;
	r->uses++;
	return 0;
}

static int read_if(struct reader *r, struct statement *s)
{
	int err;

	s->type = STATEMENT_IF;
	if ((err = read_operand(r, &s->left)) || (err = read_comparison(r, &s->condition)) ||
		(err = read_operand(r, &s->right)))
		return err;
	if (!take(r, "goto"))
		return refuse(r, "no goto");
	return read_target(r, s);
}

/* Behind "call". */
static int read_call(struct reader *r, struct statement *s)
{
	int err = 0;

	s->type = STATEMENT_CALL;
	if (!take_argument(r, &s->argument))
		return refuse(r, "no routine");
	if (!take(r, "("))
		return refuse(r, "no (");
	if (take(r, ")"))
		return 0;
	if ((err = read_operand(r, &s->right)))
		return err;
	if (take(r, ",") && (err = read_operand(r, &s->second)))
		return err;
	return take(r, ")") ? 0 : refuse(r, "no )");
}

/* What only registers are set to; 1: it is something else. */
static int read_special(struct reader *r, struct statement *s)
{
	bool calls = take(r, "call");

	if (!calls && !take(r, "rdtsc"))
		return 1;
	if (s->left.type != OPERAND_REGISTER || s->type != STATEMENT_SET)
		return refuse(r, "no register to be set before");
	s->type = STATEMENT_CLOCK;
	return calls ? read_call(r, s) : 0;
}

static int read_assignment(struct reader *r, struct statement *s)
{
	s->atomic = take(r, "atomic");
	int err = read_operand(r, &s->left);
	if (err)
		return err;
	if (take(r, "+="))
		s->type = STATEMENT_ADD;
	else if (take(r, "-="))
		s->type = STATEMENT_SUB;
	else if (take(r, "="))
		s->type = STATEMENT_SET;
	else
		return refuse(r, "no assignment");
	if (s->left.type != OPERAND_REGISTER && s->left.type != OPERAND_MEMORY)
		return refuse(r, "assignment to what is no place");
	if (s->atomic && (s->type == STATEMENT_SET || s->left.type != OPERAND_MEMORY))
		return refuse(r, "atomic is for += and -= on memory");
	err = read_special(r, s);
	return err > 0 ? read_operand(r, &s->right) : err;
}

static bool is_memory(const struct operand *o)
{
	return o->type == OPERAND_MEMORY || o->type == OPERAND_ADDRESS;
}

/* A name and a colon, before a statement or the end. */
static bool take_label(struct reader *r)
{
	const char *start = r->at;
	struct name *label = &r->label[r->labels];

	if (r->labels < SNIPPET_STATEMENTS && take_name(r, label) && take(r, ":")) {
		label->statement = r->out->n;
		r->labels++;
		return true;
	}
	r->at = start;
	return false;
}

static int read_statement(struct reader *r)
{
	struct statement *s = &r->out->statement[r->out->n];
	int err;

	if (r->out->n == SNIPPET_STATEMENTS)
		return refuse(r, "too many statements");
	*s = (struct statement){.argument = SNIPPET_NO};
	if (take(r, "if")) {
		err = read_if(r, s);
	} else if (take(r, "goto")) {
		s->type = STATEMENT_GOTO;
		err = read_target(r, s);
	} else if (take(r, "clobber")) {
		s->type = STATEMENT_CLOBBER;
		err = read_operand(r, &s->right);
		if (!err && (s->right.type != OPERAND_CONSTANT || r->out->n))
			err = refuse(r, "clobber takes a constant and is alone");
	} else if (take(r, "call")) {
		err = read_call(r, s);
	} else if (take(r, "apart")) {
		s->type = STATEMENT_APART;
		err = 0;
	} else {
		err = read_assignment(r, s);
	}
	if (!err && is_memory(&s->left) && is_memory(&s->right))
		err = refuse(r, "two memory operands before");
	if (!err && s->right.type == OPERAND_NAMED &&
		(s->type != STATEMENT_SET || s->left.type != OPERAND_REGISTER))
		err = refuse(r, "no register to be set before");
	r->out->n++;
	return err;
}

static int find_apart(struct reader *r)
{
	struct snippet *s = r->out;

	s->apart = 0;
	while (s->apart < s->n && s->statement[s->apart].type != STATEMENT_APART)
		s->apart++;
	for (unsigned i = s->apart + 1; i < s->n; i++)
		if (s->statement[i].type == STATEMENT_APART)
			return refuse(r, "apart a second time");
	if (s->apart < s->n && s->statement[s->n - 1].type != STATEMENT_GOTO)
		return refuse(r, "no goto");
	return 0;
}

/* Only forwards, so that snippets end; but what lies apart may go back. */
static bool is_ahead(const struct snippet *s, unsigned from, unsigned to)
{
	return to > from || (from > s->apart && to <= s->apart);
}

static int find_targets(struct reader *r)
{
	for (unsigned i = 0; i < r->uses; i++) {
		struct statement *s = &r->out->statement[r->use[i].statement];
		unsigned k = 0;
		while (k < r->labels && strcmp(r->label[k].text, r->use[i].text))
			k++;
		if (k == r->labels || !is_ahead(r->out, r->use[i].statement, r->label[k].statement))
			return err_set(r->e, -EINVAL, "snippet \"%s\": no \"%s:\" further on",
				r->text, r->use[i].text);
		s->target = (uint8_t)r->label[k].statement;
	}
	return 0;
}

static int read_all(struct reader *r)
{
	do {
		while (take_label(r))
			;
		skip_space(r);
		int err = *r->at && *r->at != ';' ? read_statement(r) : 0;
		if (err)
			return err;
	} while (take(r, ";"));
	if (*r->at)
		return refuse(r, "nothing that is known");
	int err = find_apart(r);
	return err ? err : find_targets(r);
}

int snippet_create(const char *text, struct snippet **out, struct err *e)
{
	struct reader r = {.text = text, .at = text, .out = xcalloc(1, sizeof **out), .e = e};
	int err = read_all(&r);

	if (err)
		snippet_destroy(r.out);
	else
		*out = r.out;
	return err;
}

void snippet_destroy(struct snippet *s)
{
	free(s);
}

bool snippet_asks_memory(const struct snippet *s)
{
	return s->named;
}

unsigned snippet_arguments(const struct snippet *s)
{
	return s->arguments;
}
