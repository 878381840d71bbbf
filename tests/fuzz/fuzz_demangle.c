/* Demangles the input: a short name must not become a huge one. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "image/demangle.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	char *name = xstrndup((const char *)data, n);
	char *readable = demangle(name);
	if (readable && strlen(readable) > 8 << 20)
		abort();
	free(readable);
	free(name);
	return 0;
}
