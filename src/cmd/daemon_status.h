/*
 * What a running daemon says of itself, for people and for scripts.
 */
#ifndef CULPRIT_CMD_DAEMON_STATUS_H
#define CULPRIT_CMD_DAEMON_STATUS_H

#include <stdbool.h>

/* EXIT_DONE when it runs, EXIT_NO when none does. */
int daemon_show_status(const char *database, bool json);

#endif
