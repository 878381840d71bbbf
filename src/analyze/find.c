#include "analyze/find.h"

#include "analyze/tally.h"
#include "base/mem.h"
#include "image/image.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What is looked for, taken apart. */
struct wanted {
	const char *text;
	char *image; /* before the '!' of an address, NULL: any */
	uint64_t address;
	bool is_address;
};

static struct wanted take_apart(const char *text)
{
	struct wanted w = {.text = text};
	const char *bang = strrchr(text, '!');

	w.is_address = label_address(bang ? bang + 1 : text, &w.address);
	if (w.is_address && bang)
		w.image = xstrndup(text, (size_t)(bang - text));
	return w;
}

static bool fits_exactly(const struct wanted *w, const struct tally_row *row)
{
	return !strcmp(w->text, row->name);
}

static bool fits_address(const struct wanted *w, const struct tally_row *row)
{
	const struct selected_image *im = row->image;
	struct code_walk walk = code_walk_start(&im->map, NULL, 0);
	uint64_t vaddr;

	if (!w->is_address || code_walk_to(&walk, w->address, &vaddr) != row->procedure)
		return false;
	return !w->image || !strcmp(w->image, selected_image_name(im)) ||
	       !fnmatch(w->image, im->path, 0);
}

static bool fits_pattern(const struct wanted *w, const struct tally_row *row)
{
	return !fnmatch(w->text, row->name, 0) || strstr(row->name, w->text);
}

enum find_kind find_procedure(
	const struct tally *t, const char *what, const struct tally_row ***out, size_t *n)
{
	static const struct {
		enum find_kind kind;
		bool (*fits)(const struct wanted *, const struct tally_row *);
	} ways[] = {
		{FIND_EXACT, fits_exactly},
		{FIND_ADDRESS, fits_address},
		{FIND_PATTERN, fits_pattern},
	};
	struct wanted w = take_apart(what);
	enum find_kind kind = FIND_NONE;
	const struct tally_row *rows;
	size_t nrows = tally_rows(t, &rows);

	*out = xmalloc((nrows + 1) * sizeof **out);
	*n = 0;
	for (size_t i = 0; i < sizeof ways / sizeof *ways && !*n; i++) {
		for (size_t j = 0; j < nrows; j++)
			if (rows[j].known && ways[i].fits(&w, &rows[j]))
				(*out)[(*n)++] = &rows[j];
		kind = ways[i].kind;
	}
	free(w.image);
	return *n ? kind : FIND_NONE;
}
