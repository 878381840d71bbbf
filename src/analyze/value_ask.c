#include "analyze/value_ask.h"

#include "analyze/find.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

bool value_asked(const struct value_question *q, const struct value_item *item)
{
	const struct selected_image *im = item->vi->image;
	const struct procedure *p = &im->procedures.p[item->procedure];
	char label[512];

	procedure_label(p, im->path, label, sizeof label);
	switch (q->way) {
	case VALUE_ASK_ALL:
		return true;
	case VALUE_ASK_NAME:
		return !strcmp(q->text, label);
	case VALUE_ASK_ADDRESS:
		return q->is_address && value_procedure_at(im, q->address) == item->procedure &&
		       (!q->image || !strcmp(q->image, selected_image_name(im)) ||
			       !fnmatch(q->image, im->path, 0));
	case VALUE_ASK_PATTERN:
		return !fnmatch(q->text, label, 0) || strstr(label, q->text);
	default:
		return false;
	}
}

struct value_question value_ask(const char *text, const value_item_list *items)
{
	struct value_question q = {.text = text, .way = text ? VALUE_ASK_NAME : VALUE_ASK_ALL};
	const char *bang = text ? strrchr(text, '!') : NULL;

	if (!text)
		return q;
	q.is_address = label_address(bang ? bang + 1 : text, &q.address);
	if (q.is_address && bang)
		q.image = xstrndup(text, (size_t)(bang - text));
	for (; q.way < VALUE_ASK_NOTHING; q.way++)
		vec_each (item, items)
			if ((item == items->p || item->procedure != item[-1].procedure ||
				    item->vi != item[-1].vi) &&
				value_asked(&q, item))
				return q;
	return q;
}

void value_narrow(const struct value_question *q, const struct value_item **items, size_t *n)
{
	const struct value_item *all = *items;
	size_t first = 0, end;

	if (q->way != VALUE_ASK_ADDRESS)
		return;
	while (first < *n && all[first].address != q->address)
		first++;
	for (end = first; end < *n && all[end].address == q->address; end++)
		;
	if (end > first) {
		*items += first;
		*n = end - first;
	}
}

bool value_name_fits(const char *pattern, const struct value_item *item)
{
	const struct selected_image *im = item->vi->image;
	char label[512];

	procedure_label(&im->procedures.p[item->procedure], im->path, label, sizeof label);
	return !pattern || !strcmp(pattern, label) || !fnmatch(pattern, label, 0);
}
