/*
 * What calibrations found, kept until the next boot: one line for each in DIR/calibration.
 *
 * A key is words with a space between them, the first of which is the boot's id; a line is a key
 * and the figures that were measured. A cache that cannot be read or written is none.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_CACHE_H
#define CULPRIT_COLLECT_CALIBRATE_CACHE_H

struct event;

#define CALIBRATE_FIGURES 16 /* at most */

struct figures {
	double p[CALIBRATE_FIGURES];
	int n;
};

/* The folder ($XDG_CACHE_HOME/culprit or ~/.cache/culprit, /var/lib/culprit for root), or NULL. */
char *calibrate_cache_dir(void);

/* The key of what was measured of an event since boot on this kernel; the cost's `what` is "". */
char *calibrate_cache_key(const char *what, const struct event *ev);

/* None when there are none, or when one is not within bounds. */
void calibrate_cache_get(
	const char *dir, const char *key, double low, double high, struct figures *out);

/* Makes the directory when there is none. Lines of other boots go. */
void calibrate_cache_put(const char *dir, const char *key, const struct figures *figures);

#endif
