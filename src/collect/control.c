#include "collect/control.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int socket_address(const char *database, struct sockaddr_un *a, struct err *e)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (snprintf(a->sun_path, sizeof a->sun_path, "%s.sock", database) >=
		(int)sizeof a->sun_path)
		return err_set(e, -ENAMETOOLONG,
			"%s.sock: too long a name for a socket; choose a shorter path", database);
	return 0;
}

static int connect_to(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) < 0) {
		int code = -errno;

		close(fd);
		return code;
	}
	return fd < 0 ? -errno : fd;
}

int control_listen(const char *database, int *out, struct err *e)
{
	struct sockaddr_un a;
	int code = socket_address(database, &a, e), fd;
	mode_t mask;

	if (code < 0)
		return code;
	fd = connect_to(&a);
	if (fd >= 0) {
		close(fd);
		return err_set(e, -EADDRINUSE,
			"a daemon for %s runs already; 'culprit daemon stop' ends it", database);
	}
	unlink(a.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	code = fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4) < 0 ? -errno
											    : 0;
	umask(mask);
	if (code < 0) {
		if (fd >= 0)
			close(fd);
		return err_errno(e, code, "cannot make the socket %s", a.sun_path);
	}
	*out = fd;
	return 0;
}

void control_close(const char *database, int fd)
{
	struct sockaddr_un a;

	if (fd < 0)
		return;
	close(fd);
	if (socket_address(database, &a, NULL) == 0)
		unlink(a.sun_path);
}

int control_accept(int fd, char *request, size_t size)
{
	struct timeval patience = {.tv_sec = 1};
	struct ucred peer;
	socklen_t length = sizeof peer;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (client < 0)
		return -EAGAIN;
	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	n = getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ||
			    (peer.uid != 0 && peer.uid != geteuid())
		    ? -1
		    : recv(client, request, size - 1, 0);
	if (n <= 0) {
		close(client);
		return -EAGAIN;
	}
	request[n] = '\0';
	request[strcspn(request, "\n")] = '\0';
	return client;
}

static int receive_all(int fd, struct buf *answer)
{
	for (;;) {
		ssize_t n;

		buf_reserve(answer, 4096);
		n = recv(fd, answer->p + answer->n, 4096, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		answer->n += n;
	}
}

/* Splits the answer's first line off; its code when it is an error. */
static int read_outcome(struct buf *answer, struct err *e)
{
	const char *text = buf_cstr(answer);
	size_t line = strcspn(text, "\n");
	int code, at = 0;

	if (sscanf(text, "error %d %n", &code, &at) == 1 && code < 0)
		return err_set(e, code, "%.*s", (int)(line - at), text + at);
	if (strncmp(text, "ok", 2) != 0)
		return err_set(e, -EPIPE, "the daemon ended before it answered");
	line += text[line] == '\n';
	memmove(answer->p, answer->p + line, answer->n - line);
	answer->n -= line;
	return 0;
}

int control_ask(const char *database, const char *request, struct buf *answer, struct err *e)
{
	struct sockaddr_un a;
	int code = socket_address(database, &a, e), fd;

	if (code < 0)
		return code;
	fd = connect_to(&a);
	if (fd == -EACCES || fd == -EPERM)
		return err_set(e, -EACCES, "%s: only root and the daemon's user may talk to it",
			a.sun_path);
	if (fd < 0)
		return err_set(e, -ENOTCONN,
			"no daemon runs for %s; 'culprit daemon start' starts one", database);
	code = send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
	if (code == 0)
		code = receive_all(fd, answer);
	close(fd);
	if (code == -ECONNRESET || code == -EPIPE)
		return err_set(e, -ENOTCONN, "the daemon of %s is just ending", database);
	if (code < 0)
		return err_errno(e, code, "the daemon of %s does not answer", database);
	return read_outcome(answer, e);
}
