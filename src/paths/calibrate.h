/* What measuring paths adds to what is measured. */
#ifndef CULPRIT_PATHS_CALIBRATE_H
#define CULPRIT_PATHS_CALIBRATE_H

/* Ticks between the readings of a path in which nothing happens, counting included; the same again
 * for every call that it makes. */
double paths_calibrate(void);

/* Ticks of a reading alone, as snippets do it, when nothing else happens. */
double paths_calibrate_reading(void);

#endif
