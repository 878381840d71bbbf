#include "base/near.h"

#include <string.h>

static int min3(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

int edit_distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	int row[NEAR_FAR + 1];

	if (na > NEAR_FAR || nb > NEAR_FAR)
		return NEAR_FAR;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int corner = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			int above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
			corner = above;
		}
	}
	return row[nb];
}
