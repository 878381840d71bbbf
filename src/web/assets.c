#include "web/assets.h"

#include <string.h>

#include "web/page.h"

const struct asset *asset_find(const char *path)
{
	for (size_t i = 0; i < sizeof page / sizeof *page; i++)
		if (!strcmp(page[i].path, path))
			return &page[i];
	return NULL;
}
