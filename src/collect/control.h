/*
 * Talking to a running daemon: a socket beside its database, one request line, one answer.
 *
 * The answer's first line is "ok" or "error NUMBER TEXT"; for status the lines behind it are
 * "key value". Only root and the daemon's own user are heard.
 */
#ifndef CULPRIT_COLLECT_CONTROL_H
#define CULPRIT_COLLECT_CONTROL_H

#include <stddef.h>

struct buf;
struct err;

/* -EADDRINUSE when a daemon answers there already; a socket that nobody serves is replaced. */
int control_listen(const char *database, int *fd, struct err *e);
void control_close(const char *database, int fd);

/* Takes one request off the socket: its descriptor to answer on, or -EAGAIN. */
int control_accept(int fd, char *request, size_t size);

/* Asks the daemon of this database; answer gets what follows "ok". -ENOTCONN: none runs. */
int control_ask(const char *database, const char *request, struct buf *answer, struct err *e);

#endif
