#include "context/survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edit/callers.h"
#include "edit/endings.h"
#include "edit/guess.h"
#include "flow/loops.h"
#include "isa/decode.h"
#include "rt/context.h"

struct surveying {
	struct survey *out;
	struct edit *edit;
	struct edit_function **functions;
	bool measured;
};

/* ---- who is called ---- */

/*
 * Functions of the C library that call nobody back, by name. Nothing is announced to them, which
 * spares much; where such a name is somebody else's function after all, what it calls is found
 * under the last call that was announced.
 */
static const char *const quiet[] = {"__assert_fail", "__ctype_b_loc", "__ctype_tolower_loc",
	"__ctype_toupper_loc", "__errno_location", "__fprintf_chk", "__memcpy_chk", "__memmove_chk",
	"__memset_chk", "__printf_chk", "__snprintf_chk", "__sprintf_chk", "__stack_chk_fail",
	"__strcat_chk", "__strcpy_chk", "__strncpy_chk", "__vsnprintf_chk", "abort", "access",
	"atoi", "atol", "calloc", "clock", "clock_gettime", "close", "closedir", "dup2", "fclose",
	"feof", "ferror", "fflush", "fgetc", "fgets", "fileno", "fopen", "fprintf", "fputc",
	"fputs", "fread", "free", "fseek", "fstat", "ftell", "fwrite", "getc", "getenv", "getpid",
	"gettimeofday", "isatty", "localeconv", "localtime", "lseek", "malloc", "memchr", "memcmp",
	"memcpy", "memmove", "mempcpy", "memrchr", "memset", "mmap", "munmap", "open", "open64",
	"printf", "pthread_mutex_lock", "pthread_mutex_unlock", "putc", "putchar", "puts",
	"rawmemchr", "read", "realloc", "setlocale", "sigaction", "sigprocmask", "snprintf",
	"sprintf", "stat", "strcasecmp", "strcat", "strchr", "strchrnul", "strcmp", "strcoll",
	"strcpy", "strcspn", "strdup", "strerror", "strlen", "strncasecmp", "strncat", "strncmp",
	"strncpy", "strnlen", "strpbrk", "strrchr", "strspn", "strstr", "strtod", "strtol",
	"strtoll", "strtoul", "strtoull", "time", "tolower", "toupper", "ungetc", "vfprintf",
	"vsnprintf", "write"};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

static bool is_quiet(const char *name)
{
	return bsearch(name, quiet, sizeof quiet / sizeof *quiet, sizeof *quiet, by_name);
}

/* The name of an imported function without its version, cut to fit; "" when it is none. */
static void imported_name(struct surveying *s, const struct flow_insn *i, char *name, size_t size)
{
	const struct procedure *p = NULL;
	size_t n;

	if (i->kind == INSN_CALL || i->kind == INSN_JUMP || i->kind == INSN_BRANCH)
		p = image_procedure_at(edit_image(s->edit), flow_target(i));
	if (!p || p->source != PROCEDURE_PLT || !p->name)
		p = NULL;
	n = p ? strcspn(p->name, "@") : 0;
	n = n < size ? n : size - 1;
	if (p)
		memcpy(name, p->name, n);
	name[n] = 0;
}

static uint32_t callee_of(const struct surveying *s, const struct flow_insn *i)
{
	size_t number = s->out->n;

	if (i->kind == INSN_CALL || i->kind == INSN_JUMP || i->kind == INSN_BRANCH)
		number = endings_number(s->functions, s->out->n, flow_target(i));
	if (number == s->out->n || !s->out->functions[number].moved)
		return SURVEY_ANYBODY;
	return (uint32_t)number;
}

static void add_call(
	struct surveying *s, const struct flow *f, uint32_t insn, uint32_t edge, double often)
{
	const struct flow_insn *i = &f->insns[insn];
	char name[64];

	imported_name(s, i, name, sizeof name);
	if (is_quiet(name))
		return;
	*vec_add(&s->out->calls) = (struct survey_call){.at = i->address,
		.insn = insn,
		.edge = edge,
		.callee = callee_of(s, i),
		.often = often,
		.jumps = edge != GRAPH_NONE,
		.ends_thread = !strcmp(name, "pthread_exit")};
}

static int by_often(const void *a, const void *b)
{
	const struct survey_call *x = a, *y = b;

	if (x->often != y->often)
		return x->often > y->often ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void find_calls(struct surveying *s, struct survey_function *f)
{
	const struct flow *flow = f->function->flow;
	_cleanup_free_ double *often = NULL;
	struct loops loops;

	loops_init(&loops, &flow->graph, flow->entry_node);
	often = guess_edges(s->edit, f->function, &loops);
	loops_deinit(&loops);
	f->first = (uint32_t)s->out->calls.n;
	for (uint32_t b = 0; b < flow->nblocks; b++) {
		uint32_t last = flow->blocks[b].first + flow->blocks[b].count - 1;
		uint8_t kind = flow->insns[last].kind;
		double runs = 0;

		graph_each_in (e, &flow->graph, b)
			runs += often[*e];
		if (kind == INSN_CALL || kind == INSN_CALL_INDIRECT)
			add_call(s, flow, last, GRAPH_NONE, runs);
		graph_each_out (e, &flow->graph, b)
			if (flow->edge_kind[*e] == FLOW_EDGE_TAIL)
				add_call(s, flow, last, *e, often[*e]);
	}
	f->calls = (uint32_t)s->out->calls.n - f->first;
	if (f->calls)
		qsort(s->out->calls.p + f->first, f->calls, sizeof *s->out->calls.p, by_often);
}

/* ---- what follows from it ---- */

/* Who comes in by a call of its own middle has another frame there. */
static bool is_called_inside(const struct flow *f)
{
	for (uint32_t i = 0; i < f->nblocks; i++)
		if (f->blocks[i].marks & FLOW_ENTERED_CALLED)
			return true;
	return false;
}

static bool take_variables(struct surveying *s, struct survey_function *f)
{
	bool both = f->calls || s->measured;
	const char *why;

	return (both || f->recorded) && f->calls <= CONTEXT_SLOTS_MAX &&
	       !is_called_inside(f->function->flow) &&
	       edit_variable(s->edit, f->function, 0, NULL, &why) &&
	       (!both || edit_variable(s->edit, f->function, 1, NULL, &why));
}

/* By those who do not announce it; by a jump of somebody who passes on what was announced to him.
 */
static void mark_callees(struct survey *s, const struct survey_function *f)
{
	for (uint32_t i = f->first; i < f->first + f->calls; i++) {
		const struct survey_call *c = &s->calls.p[i];
		struct survey_function *callee = &s->functions[c->callee];

		if (c->callee == SURVEY_ANYBODY)
			continue;
		callee->counted &= !c->jumps;
		callee->outside |= !f->keeps;
		callee->wide |= c->jumps;
	}
}

void survey_make(struct survey *s, struct edit *e, bool measured, const bool *recorded)
{
	struct surveying in = {.out = s, .edit = e, .measured = measured};
	_cleanup_free_ bool *outside = NULL;

	*s = (struct survey){.n = edit_functions(e, &in.functions)};
	s->functions = xcalloc(s->n + 1, sizeof *s->functions);
	for (size_t i = 0; i < s->n; i++) {
		s->functions[i].function = in.functions[i];
		s->functions[i].moved = in.functions[i]->chosen && !in.functions[i]->refused;
	}
	outside = callers_outside(e);
	for (size_t i = 0; i < s->n; i++) {
		struct survey_function *f = &s->functions[i];

		if (!f->moved)
			continue;
		find_calls(&in, f);
		f->outside = outside[i];
		f->recorded = recorded && recorded[i];
		f->keeps = take_variables(&in, f);
		f->counted = !measured && !f->recorded;
	}
	for (size_t i = 0; i < s->n; i++)
		mark_callees(s, &s->functions[i]);
	for (size_t i = 0; i < s->n; i++) {
		struct survey_function *f = &s->functions[i];

		f->wide |= f->outside;
		f->counted &= f->moved && !f->outside && !f->calls;
	}
}

void survey_deinit(struct survey *s)
{
	free(s->functions);
	vec_deinit(&s->calls);
}
