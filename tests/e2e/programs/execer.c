/*
 * One process with two faces: works for 3 ms as `first`, executes the same file under the name
 * `second`, works for 9 ms, and so on. Usage: FOLDER/first ROUNDS, where first and second are links
 * to this program.
 */
#include "burn.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

BURNER(first_life)
BURNER(second_life)

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	char *slash = strrchr(argv[0], '/');
	if (!slash)
		errx(2, "usage: FOLDER/first ROUNDS");
	int is_first = !strcmp(slash + 1, "first");
	if (is_first)
		first_life(0.003);
	else
		second_life(0.009);
	if (!is_first && --rounds <= 0)
		return 0;
	char path[4096], count[16];
	snprintf(path, sizeof path, "%.*s/%s", (int)(slash - argv[0]), argv[0],
		is_first ? "second" : "first");
	snprintf(count, sizeof count, "%d", rounds);
	execl(path, path, count, (char *)NULL);
	err(1, "%s", path);
}
