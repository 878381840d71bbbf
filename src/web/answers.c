#include "web/answers.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	KEPT_MOST = 256 << 20,   /* bytes of answers that nobody holds */
	OUTPUT_MOST = 512 << 20, /* of one */
	WORDS_MOST = 4096,
	SECONDS_MOST = 120,
};

extern char **environ;

struct kept {
	struct answer answer; /* first: answers_put finds the whole by it */
	struct kept *next;
	char *key;
	size_t holders;
	uint64_t used; /* when, in turns */
	bool ready, old;
};

struct answers {
	const char *program;
	const char *const *files;
	size_t nfiles;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t running, running_most;
	uint64_t turn;
	struct kept *list;
};

/* ---- running a verb ---- */

static int spawn(const char *program, const query_line *line, int out, int words, pid_t *pid)
{
	char **argv = xcalloc(line->n + 2, sizeof *argv);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	argv[0] = (char *)program;
	memcpy(argv + 1, line->p, line->n * sizeof *argv);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
	rc = posix_spawn(pid, program, &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(argv);
	return -rc;
}

/* Appends what there is to read; false at the end, or when it is too much. */
static bool take(int fd, struct buf *to, size_t most)
{
	ssize_t n;

	buf_reserve(to, 65536);
	n = read(fd, to->p + to->n, 65536);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	to->n += (size_t)n;
	return to->n <= most;
}

/* Reads both until they end: 0, or -errno when the child must be ended first. */
static int collect(int out, int words, struct answer *a)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = words, .events = POLLIN}};
	time_t until = time(NULL) + SECONDS_MOST;

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (time(NULL) >= until)
			return -ETIMEDOUT;
		if (poll(fds, 2, 1000) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents && !take(out, &a->output, OUTPUT_MOST)) {
			fds[0].fd = -1;
			if (a->output.n > OUTPUT_MOST)
				return -EFBIG;
		}
		/* More words than these are read all the same: the child shall not wait for us. */
		if (fds[1].revents && !take(words, &a->words, SIZE_MAX))
			fds[1].fd = -1;
		a->words.n = a->words.n < WORDS_MOST ? a->words.n : WORDS_MOST;
	}
	return 0;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECANCELED;
}

static void run(const char *program, const query_line *line, struct answer *a)
{
	int out[2], words[2], rc;
	pid_t pid;

	a->code = pipe2(out, O_CLOEXEC) ? -errno : 0;
	if (a->code)
		return;
	if (pipe2(words, O_CLOEXEC)) {
		a->code = -errno;
		close(out[0]);
		close(out[1]);
		return;
	}
	rc = spawn(program, line, out[1], words[1], &pid);
	close(out[1]);
	close(words[1]);
	a->code = rc;
	if (!rc) {
		rc = collect(out[0], words[0], a);
		if (rc)
			kill(pid, SIGKILL);
		a->code = wait_for(pid);
		if (rc)
			a->code = rc;
	}
	close(out[0]);
	close(words[0]);
}

/* ---- what is kept ---- */

/* A database changes in its file or in the log beside it. */
static void put_state(struct buf *key, const char *file)
{
	_cleanup_free_ char *log = xasprintf("%s-wal", file);
	const char *const names[] = {file, log};
	struct stat st;

	for (size_t i = 0; i < 2; i++)
		if (!stat(names[i], &st))
			buf_printf(key, "%ju.%ju.%jd.%09ld ", (uintmax_t)st.st_ino,
				(uintmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
				st.st_mtim.tv_nsec);
}

static char *key_of(const struct answers *a, const query_line *line)
{
	struct buf key = {0};

	for (size_t i = 0; i < a->nfiles; i++)
		put_state(&key, a->files[i]);
	vec_each (word, line)
		buf_printf(&key, "%zu:%s ", strlen(*word), *word);
	return (char *)(buf_cstr(&key), key.p);
}

static void discard(struct kept *k)
{
	buf_deinit(&k->answer.output);
	buf_deinit(&k->answer.words);
	free(k->key);
	free(k);
}

/* What nobody holds and was used longest ago goes, until the rest fits. */
static void make_room(struct answers *a)
{
	for (;;) {
		struct kept **oldest = NULL, *gone;
		size_t bytes = 0;

		for (struct kept **at = &a->list; *at; at = &(*at)->next) {
			bytes += (*at)->answer.output.n;
			if (!(*at)->holders && (!oldest || (*at)->used < (*oldest)->used))
				oldest = at;
		}
		if (!oldest || (bytes <= KEPT_MOST && !(*oldest)->old))
			return;
		gone = *oldest;
		*oldest = gone->next;
		discard(gone);
	}
}

static struct kept *find(struct answers *a, const char *key)
{
	for (struct kept *k = a->list; k; k = k->next)
		if (!k->old && !strcmp(k->key, key))
			return k;
	return NULL;
}

/* Runs it while others may ask for the same and wait. */
static void make(struct answers *a, struct kept *k, const query_line *line)
{
	while (a->running == a->running_most)
		pthread_cond_wait(&a->changed, &a->lock);
	a->running++;
	pthread_mutex_unlock(&a->lock);
	run(a->program, line, &k->answer);
	pthread_mutex_lock(&a->lock);
	a->running--;
	k->ready = true;
	k->old = k->answer.code < 0; /* the next may have more luck */
	pthread_cond_broadcast(&a->changed);
}

const struct answer *answers_get(struct answers *a, const query_line *line)
{
	char *key = key_of(a, line);
	struct kept *k;

	pthread_mutex_lock(&a->lock);
	k = find(a, key);
	if (k) {
		free(key);
		k->holders++;
		while (!k->ready)
			pthread_cond_wait(&a->changed, &a->lock);
	} else {
		k = xcalloc(1, sizeof *k);
		k->key = key;
		k->holders = 1;
		k->next = a->list;
		a->list = k;
		make(a, k, line);
	}
	k->used = ++a->turn;
	make_room(a);
	pthread_mutex_unlock(&a->lock);
	return &k->answer;
}

void answers_put(struct answers *a, const struct answer *answer)
{
	struct kept *k = (struct kept *)answer;

	pthread_mutex_lock(&a->lock);
	k->holders--;
	make_room(a);
	pthread_mutex_unlock(&a->lock);
}

struct answers *answers_create(const char *program, const char *const *files, size_t nfiles)
{
	struct answers *a = xcalloc(1, sizeof *a);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	a->program = program;
	a->files = files;
	a->nfiles = nfiles;
	a->running_most = cpus > 1 ? (size_t)cpus : 2;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	return a;
}

void answers_destroy(struct answers *a)
{
	if (!a)
		return;
	while (a->list) {
		struct kept *next = a->list->next;

		discard(a->list);
		a->list = next;
	}
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
