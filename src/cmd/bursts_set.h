/* culprit bursts --set (bursts_set.c). */
#ifndef CULPRIT_CMD_BURSTS_SET_H
#define CULPRIT_CMD_BURSTS_SET_H

/* What is a process's number or a file of bursts. The exit code. */
int bursts_set(const char *rates, const char *what);

#endif
