/* The page's files, inside the program (generated from src/web/page by tools/assets). */
#ifndef CULPRIT_WEB_ASSETS_H
#define CULPRIT_WEB_ASSETS_H

#include <stddef.h>

struct asset {
	const char *path, *type;
	const unsigned char *data;
	size_t size;
};

const struct asset *asset_find(const char *path); /* NULL: none */

#endif
