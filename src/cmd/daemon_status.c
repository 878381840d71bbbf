#include "cmd/daemon_status.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "collect/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What status shows: key, how it is printed for people, and a label. */
static const struct field {
	const char *key, *label;
	enum { INTEGER, SHARE, RATE, MICROSECONDS, BYTES, TIME, FLAG, TEXT } kind;
} fields[] = {
	{"pid", "process", INTEGER},
	{"since", "since", TIME},
	{"rate", "samples a second and CPU", RATE},
	{"budget", "budget", SHARE},
	{"cost", "cost of a sample", MICROSECONDS},
	{"share", "share of the machine used", SHARE},
	{"samples", "samples", INTEGER},
	{"unknown", "unknown", INTEGER},
	{"lost", "lost", INTEGER},
	{"throttled", "throttled", INTEGER},
	{"missed", "missed", INTEGER},
	{"rss", "memory", BYTES},
	{"maps", "kernel memory", BYTES},
	{"bpf", "BPF", FLAG},
	{"hits", "table hits", INTEGER},
	{"evictions", "table evictions", INTEGER},
	{"dropped", "dropped", INTEGER},
	{"bpf_runs", "BPF runs timed", INTEGER},
	{"bpf_run_ns", "BPF run time, ns", INTEGER},
	{"bursts", "bursts interpreted", INTEGER},
	{"interpreted", "instructions interpreted", INTEGER},
	{"interpreting", "share of the machine for it", SHARE},
	{"withheld", "bursts withheld by the share", INTEGER},
	{"bursts_dropped", "bursts dropped", INTEGER},
	{"bursts_wrong", "bursts that came out wrong", INTEGER},
	{"no_bursts", "why none", TEXT},
	{"anchors_begun", "pairs of samples begun", INTEGER},
	{"anchors_lapsed", "pairs lapsed", INTEGER},
	{"anchors_dropped", "pairs dropped", INTEGER},
	{"anchors_seen", "pairs seen", INTEGER},
	{"anchors_kept", "pairs kept", INTEGER},
	{"values", "keeps values of programs", FLAG},
	{"flushes", "flushes", INTEGER},
	{"failed_flushes", "failed flushes", INTEGER},
	{"failure", "last failure", TEXT},
};

/* Only if there are call paths. */
static const struct field path_fields[] = {
	{"paths_unique", "call paths known", INTEGER},
	{"paths_ranked", "likeliest of several", INTEGER},
	{"paths_walked", "by their own stacks", INTEGER},
	{"paths_unknown", "call paths unknown", INTEGER},
	{"paths_unknown_share", "share of them", SHARE},
	{"paths_judged", "stacks looked at at random", INTEGER},
	{"paths_precision", "had been named right", SHARE},
	{"stacks", "stacks taken", INTEGER},
	{"trails", "by return addresses alone", INTEGER},
	{"stacks_held", "stacks withheld", INTEGER},
	{"stacks_lost", "stacks lost", INTEGER},
	{"stacks_gone", "stacks not in memory", INTEGER},
	{"heights", "heights known", INTEGER},
	{"map_bytes", "memory of path maps", BYTES},
};

static void json_field(struct json *j, const struct field *f, const char *value)
{
	switch (f->kind) {
	case INTEGER:
	case BYTES:
		json_kuint(j, f->key, strtoull(value, NULL, 10));
		break;
	case FLAG:
		json_kbool(j, f->key, *value == '1');
		break;
	case TEXT:
		json_kstr(j, f->key, *value ? value : NULL);
		break;
	default:
		json_kdouble(j, f->key, strtod(value, NULL));
	}
}

static void text_field(struct table *t, const struct field *f, const char *value)
{
	double v = strtod(value, NULL);
	time_t seconds = v;
	char when[64];

	table_cell(t, "%s", f->label);
	switch (f->kind) {
	case SHARE:
		table_cell(t, "%.3g%%", v * 100);
		break;
	case RATE:
		table_cell(t, "%.0f", v);
		break;
	case MICROSECONDS:
		table_cell(t, "%.2f us", v * 1e6);
		break;
	case BYTES:
		table_cell(t, "%.1f MB", v / 1e6);
		break;
	case TIME:
		strftime(when, sizeof when, "%F %T", localtime(&seconds));
		table_cell(t, "%s", when);
		break;
	case FLAG:
		table_cell(t, "%s", *value == '1' ? "yes" : "no");
		break;
	default:
		table_cell(t, "%s", *value ? value : "-");
	}
	table_row(t);
}

/* The value of a key in "key value" lines, "" when it is absent; the answer is cut into lines. */
static const char *find_value(const char *lines, size_t n, const char *key)
{
	size_t length = strlen(key);

	for (const char *l = lines; l < lines + n; l += strlen(l) + 1)
		if (strncmp(l, key, length) == 0 && l[length] == ' ')
			return l + length + 1;
	return "";
}

#define FIELDS      (sizeof fields / sizeof *fields)
#define PATH_FIELDS (sizeof path_fields / sizeof *path_fields)

static void print_json(const char *lines, size_t n, bool running)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kbool(&j, "running", running);
	for (size_t i = 0; i < FIELDS; i++)
		json_field(&j, &fields[i], find_value(lines, n, fields[i].key));
	for (size_t i = 0; i < PATH_FIELDS; i++)
		if (*find_value(lines, n, path_fields[i].key))
			json_field(&j, &path_fields[i], find_value(lines, n, path_fields[i].key));
	json_close(&j);
}

static void print_text(const char *lines, size_t n)
{
	struct table *t = table_create("<<");

	for (size_t i = 0; i < FIELDS; i++)
		text_field(t, &fields[i], find_value(lines, n, fields[i].key));
	for (size_t i = 0; i < PATH_FIELDS; i++)
		if (*find_value(lines, n, path_fields[i].key))
			text_field(t, &path_fields[i], find_value(lines, n, path_fields[i].key));
	table_print(t, stdout, 0);
	table_destroy(t);
}

int daemon_show_status(const char *database, bool json)
{
	struct buf answer = {0};
	struct err e = {0};
	int code = control_ask(database, "status", &answer, &e);

	if (code < 0 && code != -ENOTCONN) {
		buf_deinit(&answer);
		return cmd_fail(&e);
	}
	buf_u8(&answer, 0);
	for (size_t i = 0; i < answer.n; i++)
		if (answer.p[i] == '\n')
			answer.p[i] = 0;
	if (json)
		print_json((char *)answer.p, answer.n, code == 0);
	else if (code == 0)
		print_text((char *)answer.p, answer.n);
	else
		printf("%s\n", e.text);
	buf_deinit(&answer);
	return code == 0 ? EXIT_DONE : EXIT_NO;
}
