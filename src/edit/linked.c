#include "edit/linked.h"

#include "base/buf.h"
#include "base/err.h"
#include "image/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPTS_DEEP 4 /* interpreters that are scripts; the kernel allows as many */
#define LIST_MOST    (1 << 20)

void path_list_deinit(path_list *l)
{
	vec_each (path, l)
		free(*path);
	vec_deinit(l);
}

/* ---- the program ---- */

static bool is_runnable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp searches. */
static char *search(const char *command)
{
	const char *path = getenv("PATH");
	char *found;

	if (strchr(command, '/'))
		return is_runnable(command) ? xstrdup(command) : NULL;
	for (path = path ? path : "/bin:/usr/bin"; *path;) {
		size_t n = strcspn(path, ":");

		found = n ? xasprintf("%.*s/%s", (int)n, path, command) : xstrdup(command);
		if (is_runnable(found))
			return found;
		free(found);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* The interpreter that a script names, "/usr/bin/env NAME" followed; NULL when it is no script. */
static char *interpreter_of(const char *path)
{
	char line[PATH_MAX] = "", *words[2], *rest = line + 2;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

	if (fd >= 0)
		close(fd);
	if (n < 2 || strncmp(line, "#!", 2))
		return NULL;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	for (int i = 0; i < 2; i++)
		words[i] = strtok_r(rest, " \t", &rest);
	if (!words[0])
		return NULL;
	if (words[1] && words[1][0] != '-' && strlen(words[0]) > 4 &&
		!strcmp(words[0] + strlen(words[0]) - 4, "/env"))
		return search(words[1]);
	return xstrdup(words[0]);
}

int linked_program(const char *command, char **out, struct err *e)
{
	char *path = search(command), *next, *real;

	if (!path)
		return err_set(e, -ENOENT, "%s: no such command", command);
	for (int i = 0; i < SCRIPTS_DEEP && (next = interpreter_of(path)); i++) {
		free(path);
		path = next;
	}
	real = realpath(path, NULL);
	free(path);
	if (!real)
		return err_errno(e, -errno, "%s: cannot be run", command);
	*out = real;
	return 0;
}

/* ---- libraries ---- */

/* The dynamic linker that it asks for; NULL: none. */
static int dynamic_linker(const char *program, char **out, struct err *e)
{
	_cleanup_close_ int fd = open(program, O_RDONLY | O_CLOEXEC);
	struct elf_file f;
	int rc;

	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot be read", program);
	rc = elf_file_open(&f, fd, program, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < f.nsegments; i++) {
		struct bytes name;

		if (f.segments[i].p_type != PT_INTERP || f.segments[i].p_filesz > PATH_MAX ||
			elf_file_read(&f, f.segments[i].p_offset, f.segments[i].p_filesz, &name))
			continue;
		*out = xstrndup((const char *)name.p, name.n);
		bytes_deinit(&name);
		break;
	}
	elf_file_close(&f);
	return 0;
}

/* What `LINKER --list PROGRAM` prints; the program is not run. */
static int list_libraries(const char *linker, const char *program, struct buf *out, struct err *e)
{
	int ends[2], status;
	pid_t child;
	ssize_t n = 0;

	if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
		return err_errno(e, -errno, "%s: cannot list its libraries", program);
	if (!child) {
		int nowhere = open("/dev/null", O_WRONLY);

		dup2(ends[1], 1);
		dup2(nowhere, 2);
		execl(linker, linker, "--list", program, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	do {
		buf_reserve(out, 4096);
		n = read(ends[0], out->p + out->n, 4096);
		out->n += n > 0 ? (size_t)n : 0;
	} while (n > 0 && out->n < LIST_MOST);
	close(ends[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status ? err_set(e, -ENOENT, "%s: '%s --list' does not know its libraries", program,
				linker)
		      : 0;
}

/* "	libz.so.1 => /lib/libz.so.1 (0x7f...)", or without "=>". */
static void take_line(char *line, path_list *out)
{
	char *arrow = strstr(line, "=> "), *path = arrow ? arrow + 3 : line + strspn(line, " \t");
	char *end = strstr(path, " (0x"), *real;

	if (*path != '/' || !end)
		return;
	*end = 0;
	real = realpath(path, NULL);
	if (real)
		*vec_add(out) = real;
}

int linked_libraries(const char *program, path_list *out, struct err *e)
{
	_cleanup_free_ char *linker = NULL;
	struct buf text = {0};
	char *rest, *line;
	int rc = dynamic_linker(program, &linker, e);

	if (rc || !linker)
		return rc;
	rc = list_libraries(linker, program, &text, e);
	rest = rc ? NULL : (char *)buf_cstr(&text);
	while (rest && (line = strsep(&rest, "\n")))
		take_line(line, out);
	buf_deinit(&text);
	return rc;
}
