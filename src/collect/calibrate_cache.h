/*
 * What calibrations found, kept until the next boot: one line for each in DIR/calibration.
 *
 * A key is words with a space between them, the first of which is the boot's id; a line is a key
 * and the prices that were measured, in seconds a sample. A cache that cannot be read or written is
 * none.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_CACHE_H
#define CULPRIT_COLLECT_CALIBRATE_CACHE_H

#define CALIBRATE_PRICES 16 /* at most */

struct prices {
	double p[CALIBRATE_PRICES];
	int n;
};

/* None when there are none, or when the line makes no sense. */
void calibrate_cache_get(const char *dir, const char *key, struct prices *out);

/* Makes the directory when there is none. Lines of other boots go. */
void calibrate_cache_put(const char *dir, const char *key, const struct prices *prices);

#endif
