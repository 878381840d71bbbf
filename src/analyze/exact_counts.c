#include "analyze/exact_counts.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct image_counts {
	int64_t image;
	struct buf packed;
};

struct exact_counts {
	VEC(struct image_counts) images;
};

static struct image_counts *find(const struct exact_counts *c, int64_t image)
{
	vec_each (i, &c->images)
		if (i->image == image)
			return i;
	return NULL;
}

static int take(void *arg, const struct store_profile *p)
{
	struct exact_counts *c = arg;
	struct image_counts *to = find(c, p->image);
	struct buf sum = {0};
	int rc;

	if (!to) {
		to = vec_add(&c->images);
		*to = (struct image_counts){.image = p->image};
		buf_uleb(&to->packed, 0);
	}
	rc = blob_exact.merge(to->packed.p, to->packed.n, p->data, p->size, &sum);
	if (rc)
		return rc;
	buf_deinit(&to->packed);
	to->packed = sum;
	return 0;
}

int exact_counts_create(struct selection *sel, struct exact_counts **out, struct err *e)
{
	struct exact_counts *c = xcalloc(1, sizeof *c);
	struct store_filter filter = *selection_filter(sel);
	int rc;

	filter.type = &blob_exact;
	filter.event = NULL;
	rc = store_profiles(selection_store(sel), &filter, take, c, e);
	if (rc) {
		exact_counts_destroy(c);
		return rc == -EBADMSG ? err_set(e, rc,
						"exact counts are damaged: 'culprit db check' says "
						"which")
				      : rc;
	}
	*out = c;
	return 0;
}

void exact_counts_destroy(struct exact_counts *c)
{
	if (!c)
		return;
	vec_each (i, &c->images)
		buf_deinit(&i->packed);
	vec_deinit(&c->images);
	free(c);
}

int exact_counts_of(
	const struct exact_counts *c, const struct selected_image *im, struct exact_reader *out)
{
	const struct image_counts *found = find(c, im->id);

	return found && !exact_reader_init(out, found->packed.p, found->packed.n);
}
