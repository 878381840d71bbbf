/*
 * culprit edit: a copy of a program or library that runs as before, with code added; and how much
 * of it can be edited.
 */
#include "edit/edit.h"
#include "base/err.h"
#include "burst/burst.h"
#include "burst/file.h"
#include "cmd/cmd.h"
#include "cmd/edit_disambiguate.h"
#include "cmd/edit_report.h"
#include "cmd/record_edited.h"
#include "context/arena.h"
#include "context/context.h"
#include "edit/exact.h"
#include "edit/guide.h"
#include "paths/tool.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct edit_verb {
	const char *program, *output, *kind, *refine, *map, *search;
	name_list only, skip, metrics;
	struct measures measures;
	struct edit_options options;
	bool report, json, atomic, per_thread, full;
	bool paths, context;
	const char *rates; /* of bursts */
};

/* ---- options ---- */

enum {
	EDIT_NULL = 1000,
	EDIT_STRICT,
	EDIT_REPORT,
	EDIT_ONLY,
	EDIT_SKIP,
	EDIT_JSON,
	EDIT_EXACT,
	EDIT_PATHS,
	EDIT_CONTEXT,
	EDIT_BURSTS,
	EDIT_FULL,
	EDIT_REFINE,
	EDIT_METRIC,
	EDIT_ATOMIC,
	EDIT_PER_THREAD,
	EDIT_DISAMBIGUATE,
	EDIT_MAP,
	EDIT_SEARCH
};

static int take_option(struct edit_verb *v, int c)
{
	switch (c) {
	case 'o':
		v->output = optarg;
		return 0;
	case EDIT_NULL:
		v->kind = "null";
		return 0;
	case EDIT_EXACT:
		v->kind = "exact";
		return 0;
	case EDIT_PATHS:
		v->paths = true;
		v->kind = v->context ? "context" : "paths";
		return 0;
	case EDIT_BURSTS:
		v->kind = "bursts";
		v->rates = optarg;
		return 0;
	case EDIT_DISAMBIGUATE:
		v->kind = "disambiguate";
		return 0;
	case EDIT_MAP:
		v->map = optarg;
		return 0;
	case EDIT_SEARCH:
		v->search = optarg;
		return 0;
	case EDIT_METRIC:
		*vec_add(&v->metrics) = optarg;
		return 0;
	case EDIT_REFINE:
		v->refine = optarg;
		return 0;
	case EDIT_CONTEXT:
		v->context = true;
		v->kind = "context";
		return 0;
	case EDIT_FULL:
		v->full = true;
		return 0;
	case EDIT_ATOMIC:
		v->atomic = true;
		return 0;
	case EDIT_PER_THREAD:
		v->per_thread = true;
		return 0;
	case EDIT_STRICT:
		v->options.strict = true;
		return 0;
	case EDIT_REPORT:
		v->report = true;
		return 0;
	case EDIT_JSON:
		v->json = true;
		return 0;
	case EDIT_ONLY:
		*vec_add(&v->only) = optarg;
		return 0;
	case EDIT_SKIP:
		*vec_add(&v->skip) = optarg;
		return 0;
	}
	return 1;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int check_disambiguate(const struct edit_verb *v)
{
	if (strcmp(v->kind, "disambiguate"))
		return v->map || v->search
			       ? cmd_usage("edit", "--map and --search go with --disambiguate")
			       : 0;
	if (!v->map)
		return cmd_usage("edit", "--disambiguate needs --map, a database of 'record -g'");
	if (v->search && strcmp(v->search, "greedy") && strcmp(v->search, "random"))
		return cmd_usage("edit", "--search is greedy or random, not '%s'", v->search);
	if (v->atomic)
		return cmd_usage("edit", "--disambiguate counts nothing that could be --atomic");
	return 0;
}

static int check(const struct edit_verb *v, int argc, char **argv)
{
	if (!v->program)
		return cmd_usage("edit", "name a program or a library");
	if (optind + 1 < argc)
		return cmd_usage("edit", "one program at a time, not also '%s'", argv[optind + 1]);
	if (!v->output && !v->report)
		return cmd_usage("edit", "name the edited copy with -o, or ask for --report");
	if (v->atomic && (!strcmp(v->kind, "null") || !strcmp(v->kind, "bursts")))
		return cmd_usage("edit", "--atomic goes with --exact, --paths and --context");
	if (v->per_thread && strcmp(v->kind, "exact") && strcmp(v->kind, "paths"))
		return cmd_usage("edit", "--per-thread goes with --exact and --paths");
	if (v->full && !v->paths)
		return cmd_usage("edit", "--full goes with --paths");
	if (v->metrics.n && strcmp(v->kind, "paths") && strcmp(v->kind, "context"))
		return cmd_usage("edit", "--metric goes with --paths and --context");
	if (v->refine && !v->paths && strcmp(v->kind, "exact"))
		return cmd_usage("edit", "--refine goes with --exact and --paths");
	if (v->full && v->refine)
		return cmd_usage("edit", "--full counts all paths, --refine those that matter");
	if (v->json && !v->report)
		return cmd_usage("edit", "--json goes with --report");
	if (check_disambiguate(v) || bursts_rates("edit", v->rates, &(struct burst_rates){0}))
		return EXIT_USAGE;
	if (v->output && is_same_file(v->program, v->output))
		return cmd_usage(
			"edit", "-o must name another file than the original, '%s'", v->output);
	return 0;
}

/* 0, -1 when help is asked for, or the exit code. */
static int parse(struct edit_verb *v, int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'},
		{"null", no_argument, NULL, EDIT_NULL}, {"exact", no_argument, NULL, EDIT_EXACT},
		{"paths", no_argument, NULL, EDIT_PATHS},
		{"context", no_argument, NULL, EDIT_CONTEXT},
		{"bursts", optional_argument, NULL, EDIT_BURSTS},
		{"full", no_argument, NULL, EDIT_FULL},
		{"refine", required_argument, NULL, EDIT_REFINE},
		{"metric", required_argument, NULL, EDIT_METRIC},
		{"atomic", no_argument, NULL, EDIT_ATOMIC},
		{"per-thread", no_argument, NULL, EDIT_PER_THREAD},
		{"disambiguate", no_argument, NULL, EDIT_DISAMBIGUATE},
		{"map", required_argument, NULL, EDIT_MAP},
		{"search", required_argument, NULL, EDIT_SEARCH},
		{"strict", no_argument, NULL, EDIT_STRICT},
		{"report", no_argument, NULL, EDIT_REPORT},
		{"only", required_argument, NULL, EDIT_ONLY},
		{"skip", required_argument, NULL, EDIT_SKIP},
		{"json", no_argument, NULL, EDIT_JSON}, {"help", no_argument, NULL, 'h'}, {0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) >= 0) {
		if (c == 'h')
			return -1;
		if (take_option(v, c))
			return cmd_bad_option("edit", c, argv);
	}
	v->program = optind < argc ? argv[optind] : NULL;
	return check(v, argc, argv);
}

/* ---- which functions ---- */

static bool is_named(const struct edit_function *f, const char *path, const char *pattern)
{
	char text[512];
	uint64_t at;

	if (label_address(pattern, &at))
		return f->procedure->start == at;
	const char *label = f->procedure->name;
	if (!label)
		label = procedure_label(f->procedure, path, text, sizeof text);
	return !strcmp(pattern, label) || !fnmatch(pattern, label, 0);
}

/* Each name must be one's: a misspelt one would silently edit nothing, or all. */
static int choose(
	struct edit *edit, const char *path, const name_list *names, bool keep, struct err *e)
{
	struct edit_function **f;
	size_t n = edit_functions(edit, &f);
	_cleanup_free_ bool *named = xcalloc(n + 1, sizeof *named);

	for (size_t k = 0; k < names->n; k++) {
		size_t found = 0;
		for (size_t i = 0; i < n; i++) {
			bool yes = is_named(f[i], path, names->p[k]);
			named[i] |= yes;
			found += yes;
		}
		if (!found)
			return err_set(e, -ENOENT,
				"%s: no function '%s'; 'culprit edit --report "
				"--json' and 'nm' list them",
				path, names->p[k]);
	}
	for (size_t i = 0; names->n && i < n; i++)
		if (named[i] != keep)
			f[i]->chosen = false;
	return 0;
}

/* ---- the whole ---- */

/* Where the copy counts is written into it: the path must hold wherever it is started. */
static int counts_path(const char *output, char **out, struct err *e)
{
	_cleanup_free_ char *folder = xstrdup(output), *real = NULL;
	char *slash = strrchr(folder, '/');
	const char *name = slash ? slash + 1 : output;

	name = output + (name - (slash ? folder : output));
	if (slash)
		slash[slash == folder] = 0;
	real = realpath(slash ? folder : ".", NULL);
	if (!real)
		return err_errno(e, -errno, "%s: its folder cannot be found", output);
	*out = xasprintf("%s/%s.counts", real, name);
	return 0;
}

static int write_map(const char *output, const struct buf *map, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s.map", output);
	FILE *out;
	int r = cmd_output_open(path, &out, e);

	if (r)
		return r;
	fwrite(map->p, 1, map->n, out);
	return cmd_output_close(path, out, e);
}

/* What a copy counts into must be there before it runs only where it is more than zeros. */
static int make_counts(const struct edit_verb *v, const char *counts, struct err *e)
{
	bool bursts = !strcmp(v->kind, "bursts");
	struct burst_rates rates;

	if (!bursts && strcmp(v->kind, "context"))
		return 0;
	if (unlink(counts) && errno != ENOENT)
		return err_errno(e, -errno, "%s: cannot be replaced", counts);
	if (!bursts)
		return context_arena_create(counts, e);
	bursts_rates("edit", v->rates, &rates);
	return burst_file_create(counts, &rates, false, BURST_BYTES, e);
}

static int write_counting(
	const struct edit_verb *v, struct edit *edit, const struct edit_tool *tool, struct err *e)
{
	_cleanup_free_ char *counts = NULL;
	struct buf map = {0};
	void *state = NULL;
	int r = counts_path(v->output, &counts, e);

	if (!r)
		r = tool->apply(tool->options, edit, counts, &state, &map, e);
	if (!r)
		r = edit_write(edit, v->output, e);
	if (!r)
		r = write_map(v->output, &map, e);
	if (!r)
		r = make_counts(v, counts, e);
	tool->release(state);
	buf_deinit(&map);
	return r;
}

static int write_null(const struct edit_verb *v, struct edit *edit, struct err *e)
{
	edit_describe(edit, v->kind, NULL, 0);
	return edit_write(edit, v->output, e);
}

static int write_copy(const struct edit_verb *v, struct edit *edit, struct err *e)
{
	struct exact_options exact = {.atomic = v->atomic, .per_thread = v->per_thread};
	struct paths_options paths = {
		.atomic = v->atomic,
		.per_thread = v->per_thread,
		.full = v->full,
		.measures = v->measures};
	struct context_options context = {
		.atomic = v->atomic,
		.measures = v->measures,
		.paths = v->paths,
		.full = v->full};
	struct burst_options bursts = burst_defaults;
	struct guide *guide = NULL;
	struct edit_tool tool;
	int r = 0;

	if (!strcmp(v->kind, "null"))
		return write_null(v, edit, e);
	if (v->refine)
		r = guide_create(v->refine, image_id(edit_image(edit)), &guide, e);
	exact.guide = paths.guide = context.guide = guide;
	if (!strcmp(v->kind, "exact"))
		exact_tool(&exact, &tool);
	else if (!strcmp(v->kind, "paths"))
		paths_tool(&paths, &tool);
	else if (!strcmp(v->kind, "bursts"))
		burst_tool(&bursts, &tool);
	else
		context_tool(&context, &tool);
	if (!r)
		r = write_counting(v, edit, &tool, e);
	guide_destroy(guide);
	return r;
}

/* What is searched for is told also when nothing is written. */
static int work_on_paths(const struct edit_verb *v, struct edit *edit, struct err *e)
{
	struct disambiguate_options o = {
		.database = v->map, .random = v->search && !strcmp(v->search, "random")};
	struct disambiguated d;
	int r = disambiguate(edit, &o, &d, e);

	if (!r && v->output)
		r = write_null(v, edit, e);
	cmd_progress_end();
	if (!r && v->report)
		edit_disambiguate_report(edit, v->program, &d, v->json);
	disambiguated_deinit(&d);
	return r;
}

/* The report says it too. */
static void say_left(const struct edit_verb *v, const struct edit *edit)
{
	if (!v->report && edit_debug_left(edit))
		cmd_note("%s: " EDIT_DEBUG_LEFT, v->program, edit_debug_left(edit));
}

static int work(const struct edit_verb *v, struct edit *edit, struct err *e)
{
	int r = choose(edit, v->program, &v->only, true, e);

	if (!r)
		r = choose(edit, v->program, &v->skip, false, e);
	if (!r && !strcmp(v->kind, "disambiguate"))
		return work_on_paths(v, edit, e);
	if (!r && v->output)
		r = write_copy(v, edit, e);
	cmd_progress_end();
	if (!r)
		say_left(v, edit);
	if (!r && v->report)
		edit_report(edit, v->program, v->json);
	return r;
}

static int run(struct edit_verb *v)
{
	struct edit *edit = NULL;
	struct err e = {0};

	if (measures_parse(v->metrics.p, v->metrics.n, &v->measures, &e))
		return cmd_fail(&e);
	cmd_progress("reading %s", v->program);
	int r = edit_open(v->program, &v->options, &edit, &e);
	if (r) {
		cmd_progress_end();
		int code = cmd_fail(&e);
		return r == -EPERM || r == -EEXIST || r == -EOPNOTSUPP ? EXIT_NO : code;
	}
	r = work(v, edit, &e);
	edit_destroy(edit);
	return r ? cmd_fail(&e) : EXIT_DONE;
}

int cmd_edit(int argc, char **argv)
{
	struct edit_verb v = {.kind = "null", .options.debug = true};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("edit");
	else if (!code)
		code = run(&v);
	vec_deinit(&v.only);
	vec_deinit(&v.skip);
	vec_deinit(&v.metrics);
	return code;
}
