/*
 * culprit why: how often instructions run, how long they take and who is to blame (dcpicalc).
 */
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "cmd/why_program.h"

#include <getopt.h>

struct why_verb {
	struct report report;
	const char *what;
	bool no_source, everything;
};

enum { WHY_NO_SOURCE = REPORT_LAST, WHY_ALL };

static int why_option(void *arg, int c, const char *value)
{
	struct why_verb *w = arg;

	(void)value;
	switch (c) {
	case WHY_NO_SOURCE:
		w->no_source = true;
		return 0;
	case WHY_ALL:
		w->everything = true;
		return 0;
	}
	return 1;
}

static int parse(struct why_verb *w, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG, REPORT_SYNTAX_LONG,
		{"no-source", no_argument, NULL, WHY_NO_SOURCE},
		{"all", no_argument, NULL, WHY_ALL}, {0}};
	static const struct report_verb verb = {"why", ":n:" REPORT_SHORT, options, why_option};
	int rc = report_parse(&w->report, &verb, w, argc, argv);

	if (!rc)
		rc = report_operand("why", argc, argv, &w->what);
	if (!rc && w->what && w->report.rows)
		return cmd_usage("why", "-n goes with the whole program, not with a procedure");
	return rc;
}

static int explain_procedure(struct why_verb *w, struct err *e)
{
	struct explanation x = {0};
	struct why_view view = {.no_source = w->no_source, .everything = w->everything};
	int rc = explanation_init(&x, &w->report, w->what, e);

	if (!rc) {
		explanation_view(&x, &w->report, &view);
		report_pager(&w->report);
		if (w->report.json)
			why_view_json(&view, stdout);
		else
			why_view_print(&view, stdout);
		if (!w->report.json)
			report_epochs_note(&w->report);
		fflush(stdout);
		explanation_notes(&x);
	}
	explanation_deinit(&x);
	return rc;
}

int cmd_why(int argc, char **argv)
{
	struct why_verb w = {0};
	struct err e = {0};
	int code = parse(&w, argc, argv);

	if (code < 0)
		code = cmd_help_text("why");
	else if (!code && (w.what ? explain_procedure(&w, &e) : why_program(&w.report, &e)))
		code = cmd_fail(&e);
	report_deinit(&w.report);
	return code;
}
