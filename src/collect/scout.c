#include "collect/scout_internal.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "collect/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct scout {
	pid_t pid;
	int link;
	volatile struct scout_statistics *stats; /* it writes them */
	struct buf come;                         /* and not yet taken */
	bool stopped, ended;                     /* as it was told; before */
};

/* All of a message, or as much as there is until it ends. */
static size_t hear(int link, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = recv(link, (char *)p + got, n - got, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		got += (size_t)r;
	}
	return got;
}

static int greet(struct scout *s, struct err *e)
{
	struct scout_greeting hello;

	if (hear(s->link, &hello, sizeof hello) < sizeof hello)
		return err_set(e, -ECHILD, "the process that goes on excursions has ended");
	hello.text[sizeof hello.text - 1] = '\0';
	return hello.code ? err_set(e, hello.code, "%s", hello.text) : 0;
}

static int start(struct scout *s, const struct scout_options *o, struct err *e)
{
	pid_t parent = getpid();
	int link[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
		return err_errno(e, -errno, "cannot make a socket");
	s->link = link[0];
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		scout_process(o, link[1], s->stats);
	}
	close(link[1]);
	return s->pid < 0 ? err_errno(e, -errno, "cannot start a process") : greet(s, e);
}

int scout_create(const struct scout_options *o, struct scout **out, struct err *e)
{
	struct scout *s = xcalloc(1, sizeof *s);
	void *shared = mmap(
		NULL, sizeof *s->stats, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	s->link = -1;
	s->stats = shared == MAP_FAILED ? NULL : shared;
	rc = s->stats ? start(s, o, e) : err_errno(e, -errno, "cannot share memory");
	if (rc) {
		scout_destroy(s);
		return rc;
	}
	*out = s;
	return 0;
}

void scout_enable(struct scout *s)
{
	send(s->link, "", 1, MSG_NOSIGNAL);
}

/* It sees that nothing more is wanted, and ends; what it had sent is there until it is read. */
void scout_stop(struct scout *s)
{
	scout_service(s);
	s->stopped = true;
	shutdown(s->link, SHUT_WR);
}

void scout_destroy(struct scout *s)
{
	if (!s)
		return;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	if (s->link >= 0)
		close(s->link);
	if (s->stats)
		munmap((void *)s->stats, sizeof *s->stats);
	buf_deinit(&s->come);
	free(s);
}

/* ---- reading ---- */

/* So much waits here; then the scout waits, and goes on no excursions. */
#define COME_MOST (64u << 20)

void scout_service(struct scout *s)
{
	char bytes[65536];

	while (s->come.n < COME_MOST) {
		ssize_t n = recv(s->link, bytes, sizeof bytes, MSG_DONTWAIT);

		if (n <= 0) {
			s->ended |= !s->stopped && (n == 0 || (errno != EAGAIN && errno != EINTR));
			break;
		}
		buf_put(&s->come, bytes, (size_t)n);
	}
}

static size_t count_edges(const struct scout_window *w)
{
	size_t n = 0;

	for (unsigned i = 0; i < SCOUT_STRETCHES; i++)
		n += w->nedges[i];
	return n;
}

void scout_read(struct scout *s, uint64_t before, scout_fn *fn, void *arg)
{
	struct scout_window w;
	size_t at = 0, size, behind;

	scout_service(s);
	while (s->come.n - at >= sizeof w) {
		memcpy(&w, s->come.p + at, sizeof w);
		size = count_edges(&w) * sizeof(struct excursion_edge);
		behind = w.nstays * sizeof(struct excursion_stay);
		if (w.time >= before || s->come.n - at - sizeof w < size + behind)
			break;
		_cleanup_free_ struct excursion_edge *edges = xmalloc(size + 1);
		_cleanup_free_ struct excursion_stay *stays = xmalloc(behind + 1);

		at += sizeof w;
		memcpy(edges, s->come.p + at, size);
		memcpy(stays, s->come.p + at + size, behind);
		fn(arg, &w, edges, stays);
		at += size + behind;
	}
	if (at)
		memmove(s->come.p, s->come.p + at, s->come.n - at);
	s->come.n -= at;
}

void scout_statistics(const struct scout *s, struct scout_statistics *out)
{
	*out = *s->stats;
	out->ended = s->ended;
}
