#include "collect/host.h"

#include "base/buf.h"
#include "base/io.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void cpu_name(char *name, size_t size)
{
	struct buf text = {0};
	const char *line = NULL;

	snprintf(name, size, "unknown");
	if (io_read_file(-1, "/proc/cpuinfo", 1 << 22, &text) == 0)
		line = strstr(buf_cstr(&text), "model name");
	if (line && (line = strchr(line, ':')))
		snprintf(name, size, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
	buf_deinit(&text);
}

int host_put(struct store *s, int64_t *id, struct err *e)
{
	struct utsname u;
	char machine[64] = "", cpu[128];

	uname(&u);
	io_read_line(-1, "/etc/machine-id", machine, sizeof machine);
	cpu_name(cpu, sizeof cpu);
	return store_host(s,
		&(struct store_host){.name = u.nodename,
			.machine_id = machine,
			.cpu = cpu,
			.kernel = u.release,
			.cpus = sysconf(_SC_NPROCESSORS_ONLN)},
		id, e);
}
