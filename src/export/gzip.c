#include "export/gzip.h"

#include "base/mem.h"

#include <stdlib.h>
#include <zlib.h>

struct gzip {
	z_stream z;
	FILE *out;
	unsigned char space[1 << 16];
};

struct gzip *gzip_create(FILE *out)
{
	enum { WINDOW = 15, AS_GZIP = 16, MEMORY = 8 };
	struct gzip *g = xcalloc(1, sizeof *g);

	g->out = out;
	if (deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW + AS_GZIP, MEMORY,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory(sizeof *g); /* nothing else can fail */
	return g;
}

static void push(struct gzip *g, int flush)
{
	do {
		g->z.next_out = g->space;
		g->z.avail_out = sizeof g->space;
		deflate(&g->z, flush);
		fwrite(g->space, 1, sizeof g->space - g->z.avail_out, g->out);
	} while (!g->z.avail_out);
}

void gzip_put(struct gzip *g, const void *p, size_t n)
{
	const unsigned char *at = p;

	while (n) {
		uInt some = n < (1u << 30) ? (uInt)n : 1u << 30;

		g->z.next_in = (unsigned char *)at;
		g->z.avail_in = some;
		push(g, Z_NO_FLUSH);
		at += some;
		n -= some;
	}
}

void gzip_finish(struct gzip *g)
{
	push(g, Z_FINISH);
	deflateEnd(&g->z);
	free(g);
}
