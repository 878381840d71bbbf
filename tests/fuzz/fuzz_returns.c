/* Return addresses from any bytes: those that are read are found. */
#include "edit/returns.h"
#include "fuzz/blob_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct edit_returns r;

	if (returns_read(&r, data, size))
		return 0;
	for (size_t i = 0; i < r.list.n; i++) {
		require(!i || r.list.p[i - 1].new <= r.list.p[i].new);
		if (!i || r.list.p[i - 1].new < r.list.p[i].new)
			require(returns_old(&r, r.list.p[i].new) == r.list.p[i].old);
	}
	returns_old(&r, 0x1234);
	returns_deinit(&r);
	return 0;
}
