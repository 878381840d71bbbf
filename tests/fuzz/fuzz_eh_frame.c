/* Parses the input as an .eh_frame section: extents must not wrap. And as data of exceptions. */
#include <stdlib.h>

#include "image/eh_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fdes fdes = {0};
	eh_frame_parse(data, n, 0x10000, &fdes);
	vec_each (f, &fdes.list) {
		if (!f->size || f->start + f->size < f->start)
			abort();
	}
	vec_deinit(&fdes.list);
	struct pads pads = {0};
	eh_frame_pads(data, n, 0x20000, 0x30000, &pads);
	vec_deinit(&pads.list);
	return 0;
}
