#include "web/query.h"

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Parameters of reports: "name" is a flag, "name=" has a value, both are the option of that name.
 */
#define FILTERS "event= time= epoch= comm= image= proc= pid= "

static const struct endpoint {
	const char *name;
	const char *words[4]; /* the verb, and what is always said to it */
	const char *parameters;
	enum { NO_OPERAND, PROCEDURE, MAY_PROCEDURE, DATABASE, TWO_RUNS, MAY_NUMBER } operand;
	const char *type;
} endpoints[] = {
#define JSON "application/json"
	{"top", {"top", "--json"}, FILTERS "by= rows= min-share= sort= children ", NO_OPERAND,
		JSON},
	{"timeline", {"top", "--json", "--by=time"}, FILTERS "of= slices= ", NO_OPERAND, JSON},
	{"list", {"list", "--json"}, FILTERS "syntax= ", PROCEDURE, JSON},
	{"why", {"why", "--json"}, FILTERS "syntax= rows= all ", MAY_PROCEDURE, JSON},
	{"calls", {"calls", "--json", "--tree"}, FILTERS "metric= sites ", NO_OPERAND, JSON},
	{"values", {"values", "--json"},
		FILTERS "syntax= rows= kind= targets strides latency by-call-site ", MAY_PROCEDURE,
		JSON},
	{"paths", {"paths", "--json"}, FILTERS "metric= rows= min-share= ", MAY_PROCEDURE, JSON},
	{"streams", {"streams", "--json"}, FILTERS "length= coverage= rows= ", NO_OPERAND, JSON},
	{"bursts", {"bursts", "--json"}, FILTERS "rows= ", MAY_NUMBER, JSON},
	{"diff", {"diff", "--json"}, FILTERS "by= rows= min-share= ", TWO_RUNS, JSON},
	{"epochs", {"db", "ls", "--json"}, "", DATABASE, JSON},
	{"cfg", {"cfg", "--output=-.svg"}, FILTERS "syntax= full all ", PROCEDURE, "image/svg+xml"},
};

static const struct endpoint *find(const char *name)
{
	for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
		if (!strcmp(endpoints[i].name, name))
			return &endpoints[i];
	return NULL;
}

/* Whether a parameter is in the list, and if it is one with a value. */
static bool is_listed(const char *list, const char *name, bool *valued)
{
	size_t n = strlen(name);

	for (const char *at = list; *at; at += strcspn(at, " ") + 1)
		if (n && !strncmp(at, name, n) &&
			(at[n] == ' ' || (at[n] == '=' && at[n + 1] == ' '))) {
			*valued = at[n] == '=';
			return true;
		}
	return false;
}

static const char *value_of(const struct query_parameter *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, name))
			return p[i].value;
	return NULL;
}

static const char *database(const char *number, const char *const *databases, size_t n)
{
	char *end;
	unsigned long i = number ? strtoul(number, &end, 10) : 0;

	if (number && (end == number || *end))
		return NULL;
	return i < n ? databases[i] : NULL;
}

static void say(query_line *out, char *word)
{
	*vec_add(out) = word;
}

/* One side of a comparison: a database, and epochs of it. */
static int add_run(query_line *out, const struct query_parameter *p, size_t n, const char *side,
	const char *const *databases, size_t ndatabases, struct err *e)
{
	_cleanup_free_ char *epochs_name = xasprintf("%s-epochs", side);
	const char *number = value_of(p, n, side), *epochs = value_of(p, n, epochs_name);
	const char *file = database(number, databases, ndatabases);

	if (!number || !file)
		return err_set(
			e, -EINVAL, "%s: no database '%s' is served", side, number ? number : "");
	say(out, epochs && *epochs ? xasprintf("%s:%s", file, epochs) : xstrdup(file));
	return 0;
}

static int add_operand(const struct endpoint *to, const struct query_parameter *p, size_t n,
	const char *const *databases, size_t ndatabases, query_line *out, struct err *e)
{
	const char *what = value_of(p, n, to->operand == MAY_NUMBER ? "burst" : "procedure");
	int rc;

	say(out, xstrdup("--"));
	switch (to->operand) {
	case TWO_RUNS:
		rc = add_run(out, p, n, "before", databases, ndatabases, e);
		return rc ? rc : add_run(out, p, n, "after", databases, ndatabases, e);
	case DATABASE:
		say(out, xstrdup(database(value_of(p, n, "db"), databases, ndatabases)));
		return 0;
	case PROCEDURE:
		if (!what || !*what)
			return err_set(e, -EINVAL, "%s: name a procedure", to->name);
		/* fallthrough */
	case MAY_PROCEDURE:
	case MAY_NUMBER:
		if (what && *what)
			say(out, xstrdup(what));
		return 0;
	default:
		return 0;
	}
}

static bool is_own(const struct endpoint *to, const char *name)
{
	static const char *const runs[] = {"before", "after", "before-epochs", "after-epochs"};

	if (to->operand == TWO_RUNS)
		for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
			if (!strcmp(runs[i], name))
				return true;
	return !strcmp(name, "db") ||
	       (!strcmp(name, "procedure") &&
		       (to->operand == PROCEDURE || to->operand == MAY_PROCEDURE)) ||
	       (!strcmp(name, "burst") && to->operand == MAY_NUMBER);
}

static int add_options(const struct endpoint *to, const struct query_parameter *p, size_t n,
	query_line *out, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		bool valued = false;

		if (is_own(to, p[i].name))
			continue;
		if (!is_listed(to->parameters, p[i].name, &valued))
			return err_set(e, -EINVAL, "%s has no parameter '%s'", to->name, p[i].name);
		if (valued && p[i].value && *p[i].value)
			say(out, xasprintf("--%s=%s", p[i].name, p[i].value));
		else if (!valued)
			say(out, xasprintf("--%s", p[i].name));
	}
	return 0;
}

int query_command(const char *endpoint, const struct query_parameter *parameters, size_t n,
	const char *const *databases, size_t ndatabases, query_line *out, struct err *e)
{
	const struct endpoint *to = find(endpoint);
	const char *number = value_of(parameters, n, "db"), *file;
	int rc;

	if (!to)
		return err_set(e, -ENOENT, "there is no report '%s'", endpoint);
	file = database(number, databases, ndatabases);
	if (!file)
		return err_set(e, -EINVAL, "no database '%s' is served", number ? number : "0");
	for (size_t i = 0; i < sizeof to->words / sizeof *to->words && to->words[i]; i++)
		say(out, xstrdup(to->words[i]));
	if (to->operand != DATABASE && to->operand != TWO_RUNS)
		say(out, xasprintf("--input=%s", file));
	rc = add_options(to, parameters, n, out, e);
	return rc ? rc : add_operand(to, parameters, n, databases, ndatabases, out, e);
}

void query_free(query_line *line)
{
	vec_each (word, line)
		free(*word);
	vec_deinit(line);
}

const char *query_content_type(const char *endpoint)
{
	const struct endpoint *to = find(endpoint);

	return to ? to->type : JSON;
}
