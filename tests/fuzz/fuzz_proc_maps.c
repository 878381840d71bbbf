/* Lines of /proc/PID/maps, and the text of /proc/PID/stat and /proc/PID/cgroup. */
#include "base/mem.h"
#include "collect/cgroup.h"
#include "collect/procfs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_map(char *line, size_t size)
{
	struct procfs_map map;

	if (procfs_map_parse(line, &map) < 0)
		return;
	if (!map.size || map.start + map.size - 1 < map.start || map.path < line ||
		map.path > line + size || map.path + strlen(map.path) > line + size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procfs_stat stat;
	char *text = xstrndup((const char *)data, size), *copy = xstrdup(text), *rest = copy, *line;

	if (procfs_stat_parse(text, &stat) == 0 && strlen(stat.comm) >= sizeof stat.comm)
		abort();
	while ((line = strsep(&rest, "\n")))
		check_map(line, strlen(line));
	if (strlen(cgroups_choose(text)) > size)
		abort();
	free(copy);
	free(text);
	return 0;
}
