/* culprit bursts --set: other rates for programs that run with bursts. */
#include "cmd/bursts_set.h"
#include "base/err.h"
#include "base/mem.h"
#include "burst/file.h"
#include "cmd/cmd.h"
#include "cmd/record_edited.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tries each file that a process has mapped from its beginning on. */
static int set_mapped(const char *pid, const struct burst_rates *rates, struct err *e)
{
	char maps[64], path[4096];
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	FILE *f;
	int rc = -ENOENT;

	snprintf(maps, sizeof maps, "/proc/%s/maps", pid);
	f = fopen(maps, "re");
	if (!f)
		return err_errno(e, -errno, "%s", maps);
	while (rc && getline(&line, &size, f) > 0) {
		if (sscanf(line, "%*s rw-s 00000000 %*s %*s %4095[^\n]", path) != 1)
			continue;
		_cleanup_free_ char *file = xasprintf("/proc/%s/root%s", pid, path);
		rc = burst_file_set(file, rates, e);
	}
	fclose(f);
	return rc ? err_set(e, -ENOENT,
			    "process %s has no bursts: 'culprit record --bursts' runs programs "
			    "that have",
			    pid)
		  : 0;
}

int bursts_set(const char *text, const char *what)
{
	struct burst_rates rates;
	struct err e = {0};
	int code = bursts_rates("bursts", text, &rates), rc;
	uint64_t pid;

	if (code)
		return code;
	if (!what)
		return cmd_usage("bursts", "--set: of whom? a process, or the file of its bursts");
	rc = parse_uint(what, 1, INT32_MAX, &pid) < 0 ? burst_file_set(what, &rates, &e)
						      : set_mapped(what, &rates, &e);
	return rc ? cmd_fail(&e) : 0;
}
