/* Removes its own file and goes on working. Usage: deleter SECONDS (run a copy of it) */
#include "burn.h"

#include <err.h>
#include <stdlib.h>
#include <unistd.h>

BURNER(after_deletion)

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		err(1, "/proc/self/exe");
	path[n] = 0;
	if (unlink(path) < 0)
		err(1, "%s", path);
	after_deletion(argc > 1 ? atof(argv[1]) : 1);
	return 0;
}
