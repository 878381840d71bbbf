/*
 * Which procedures and instructions a user means: a name, a glob, a part of a name, an address.
 */
#ifndef CULPRIT_ANALYZE_VALUE_ASK_H
#define CULPRIT_ANALYZE_VALUE_ASK_H

#include "analyze/value_internal.h"

struct value_question {
	const char *text;
	char *image; /* before the '!' of an address; NULL: any */
	uint64_t address;
	enum {
		VALUE_ASK_ALL,
		VALUE_ASK_NAME,
		VALUE_ASK_ADDRESS,
		VALUE_ASK_PATTERN,
		VALUE_ASK_NOTHING
	} way;
	bool is_address;
};

/*
 * As find.h: a name is taken as exact when a procedure has it, only else as something else. The
 * items are sorted by image and procedure. Free `image`.
 */
struct value_question value_ask(const char *text, const value_item_list *items);

/* Whether it asks for an item's procedure. */
bool value_asked(const struct value_question *q, const struct value_item *item);

/* Of a procedure's items leaves those at the address that is asked for, where some are there. */
void value_narrow(const struct value_question *q, const struct value_item **items, size_t *n);

/* Whether the procedure's name is the pattern or fits it as a glob; NULL fits all. */
bool value_name_fits(const char *pattern, const struct value_item *item);

#endif
