#include "image/lsda.h"

#include <errno.h>

#include "image/eh_pointer.h"

int lsda_open(const void *p, size_t n, uint64_t vaddr, uint64_t function, struct lsda *out)
{
	struct lsda l = {.bytes = cursor_over(p, n), .function = function, .pads = function};
	struct cursor c = l.bytes;
	uint8_t encoding = cursor_u8(&c);

	if (encoding != PE_OMIT)
		l.pads = eh_pointer_read(&c, encoding, vaddr + cursor_offset(&c), 0);
	l.types = cursor_u8(&c);
	if (l.types != PE_OMIT) {
		uint64_t to_end = cursor_uleb(&c);
		if (to_end > cursor_left(&c))
			return -EBADMSG;
		l.types_end = cursor_offset(&c) + to_end;
	}
	l.call_sites = cursor_u8(&c);
	l.sites = cursor_slice(&c, cursor_uleb(&c));
	if (c.failed)
		return -EBADMSG;
	l.actions = cursor_offset(&c);
	*out = l;
	return 0;
}

bool lsda_next(struct lsda *l, struct lsda_site *out)
{
	if (!cursor_left(&l->sites))
		return false;
	struct lsda_site site = {.start = l->function + eh_format_read(&l->sites, l->call_sites)};
	site.size = eh_format_read(&l->sites, l->call_sites);
	site.pad = eh_format_read(&l->sites, l->call_sites);
	site.pad += site.pad ? l->pads : 0;
	site.action = cursor_uleb(&l->sites);
	if (l->sites.failed)
		return false;
	*out = site;
	return true;
}
