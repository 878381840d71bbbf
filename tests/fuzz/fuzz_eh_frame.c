/* Parses the input as an .eh_frame section: extents must not wrap. */
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
	return 0;
}
