#include "analyze/stays.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "store/edges.h"
#include "store/stays.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 16 /* visits */
/* Standard errors of what was counted, and as if so many more had come the other way. */
#define ERRORS 2
#define MORE   2

struct visits {
	uint64_t image; /* its key */
	uint64_t place; /* twice the offset, and 1 for code */
	double kept, gone;
};

struct stays {
	struct hmap visits;
	uint64_t key; /* of the image that is read */
};

static int read_stays(void *arg, const struct store_profile *p)
{
	struct stays *s = arg;
	struct stay_reader reader;
	struct stay stay;
	int rc = stay_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = stay_reader_next(&reader, &stay)) > 0) {
		struct visits key = {s->key, stay.offset << 1 | stay.is_code, 0, 0};
		struct visits *v = hmap_put(&s->visits, &key, NULL);

		v->kept += (double)stay.kept;
		v->gone += (double)stay.gone;
		rc = 0;
	}
	return rc;
}

int stays_create(struct selection *sel, struct stays **out, struct err *e)
{
	struct stays *s = xcalloc(1, sizeof *s);
	struct selected_image *images;
	size_t n = selection_images(sel, &images);
	int rc = 0;

	hmap_init(&s->visits, sizeof(struct visits), offsetof(struct visits, kept));
	for (size_t i = 0; i < n && !rc; i++) {
		s->key = edge_image_key(images[i].kind, &images[i].identity, images[i].path);
		rc = selection_blobs_of(sel, &images[i], &blob_stay, read_stays, s, e);
	}
	if (rc || !s->visits.n) {
		stays_destroy(s);
		s = NULL;
	}
	if (!rc)
		*out = s;
	return rc;
}

void stays_destroy(struct stays *s)
{
	if (!s)
		return;
	hmap_deinit(&s->visits);
	free(s);
}

static bool find(const struct stays *s, const struct selected_image *im, uint64_t place,
	struct stays_share *out)
{
	struct visits key = {.place = place};
	const struct visits *v;
	double n;

	key.image = edge_image_key(im->kind, &im->identity, im->path);
	v = hmap_get(&s->visits, &key);
	n = v ? v->kept + v->gone : 0;
	if (n < LEAST)
		return false;
	out->likely = v->gone / n;
	out->most = fmin(1, (v->gone + ERRORS * sqrt(v->gone) + MORE) / n);
	return true;
}

bool stays_data(const struct stays *s, const struct selected_image *im, uint64_t offset,
	struct stays_share *out)
{
	return find(s, im, offset << 1, out);
}

bool stays_code(const struct stays *s, const struct selected_image *im, uint64_t offset,
	struct stays_share *out)
{
	return find(s, im, (offset & ~(uint64_t)(STAYS_LINE - 1)) << 1 | 1, out);
}
