/*
 * What values instructions see: the value profiles and edge samples of a selection as rows, with
 * the time that is at stake and advice.
 *
 * A row is one hot list: of an instruction, a kind of value and a call site (0: all together).
 * Indirect transfers get rows of kind VALUE_TARGET from edge samples. Rows are grouped by
 * procedure; procedures come by the best score of a row in them.
 *
 * The time of a row is the number of samples of the first event in the straight run of code (up to
 * the next jump, branch or branch target) that its instruction is in, or, if that is more, a short
 * run's part of the samples of what may retire with it; in VALUE_NEAR bytes around it where there
 * is no code; in the whole procedure for the arguments at its entry. A call site has a part of it
 * as large as its part of the values. The score is this time multiplied by the lower bound of the
 * top value's share.
 */
#ifndef CULPRIT_ANALYZE_VALUE_REPORT_H
#define CULPRIT_ANALYZE_VALUE_REPORT_H

#include "analyze/advice.h"
#include "analyze/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct hotlist;
struct value_image;
struct value_report;

#define VALUE_NEAR 32 /* bytes on either side */

struct value_row {
	const struct value_procedure *procedure;
	uint64_t address, context;
	unsigned kind;
	uint64_t samples; /* values that came */
	uint64_t time;
	double time_share; /* of all samples */
	double score;
	struct value_share top;
	bool telling;       /* the code alone does not decide it; an argument is read; no return */
	const char *advice; /* NULL: none; several are joined by "; " */
	const struct roles *roles; /* NULL: no code */
	const struct role_texts *texts;
	/* Private: where the values are. */
	const struct hotlist *list;
	size_t first_edge, edges;
};

struct value_procedure {
	const struct selected_image *image;
	uint32_t number;
	uint64_t start;
	const char *name;
	uint64_t time; /* samples of the first event in all of it */
	double best;   /* score */
	const struct value_row **rows;
	size_t n;
	/* Private. */
	struct value_image *data;
};

struct value_report_options {
	const char *what;    /* a procedure, as find.h takes it, or an address; NULL: all */
	const char *pattern; /* a glob over names; NULL: all */
	bool by_score;       /* rows with advice first, then by score; else by address */
	/* Which rows to keep, when all but the order is known; NULL: all. */
	bool (*wanted)(void *arg, const struct value_row *row);
	void *arg;
};

/* -ENOENT when nothing fits `what`. The selection must outlive the report. */
int value_report_create(struct selection *sel, const struct value_report_options *o,
	struct value_report **out, struct err *e);
void value_report_destroy(struct value_report *r);

size_t value_report_procedures(const struct value_report *r, const struct value_procedure ***out);
size_t value_report_rows(const struct value_report *r);     /* of all procedures */
uint64_t value_report_time(const struct value_report *r);   /* samples of the first event, in all */
uint64_t value_report_values(const struct value_report *r); /* of all call sites together */
uint64_t value_report_edges(const struct value_report *r);  /* edge samples, of all branches */
uint64_t value_report_refused(const struct value_report *r);  /* values without room */
uint64_t value_report_nowhere(const struct value_report *r);  /* values of no known procedure */
uint64_t value_report_left_out(const struct value_report *r); /* rows that are not wanted */

/* The values of a row by descending count; returns how many. */
size_t value_report_read(const struct value_report *r, const struct value_row *row,
	struct value_share out[HOTLIST_CAPACITY_MAX]);

/* The text of a row's instruction; false when there is no code. */
bool value_report_text(struct value_report *r, const struct value_row *row, enum isa_syntax syntax,
	char *text, size_t size);

/* What a row's values are of: "result %rax", "argument 1 %rdi", "target". */
void value_row_operand(const struct value_row *row, char *text, size_t size);

/*
 * A value as a number: "0x10", "-0x40" for strides, decimal for floating point. And by name
 * ("puts", "main+0x10"), where it is an address in an image; false elsewhere.
 */
void value_row_number(const struct value_row *row, uint64_t value, char *text, size_t size);
bool value_report_name(struct value_report *r, const struct value_row *row,
	const struct value_share *value, char *text, size_t size);

/* A row's call site by name: "main+0x10", or what stands for it; "" for all together. */
void value_report_site(
	struct value_report *r, const struct value_row *row, char *text, size_t size);

#endif
