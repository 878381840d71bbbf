/* Parses the input as a perf-PID.map: procedures must cover what they claim, and nothing twice. */
#include <stdlib.h>

#include "image/image.h"
#include "image/jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct image *im;
	size_t bad;
	const struct procedure *all;
	if (jit_map_parse("map", (const char *)data, n, &im, &bad, NULL) < 0)
		return 0;
	size_t count = image_procedures(im, &all);
	for (size_t i = 0; i < count; i++) {
		for (uint32_t r = 0; r < all[i].nranges; r++) {
			const struct range *range = &all[i].ranges[r];
			if (image_procedure_at(im, range->start) != &all[i] ||
				image_procedure_at(im, range->start + range->size - 1) != &all[i])
				abort();
		}
	}
	image_destroy(im);
	return 0;
}
