/*
 * Runs a fuzz target on the files of a folder, each in memory of just its size, and on nothing at
 * all: what libFuzzer does with a corpus before it makes inputs of its own. An input that takes
 * longer than ten seconds fails.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *name)
{
	FILE *f = fopen(name, "r");
	struct stat st;

	if (!f || fstat(fileno(f), &st))
		err(1, "%s", name);
	uint8_t *data = malloc((size_t)st.st_size);
	if (fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		err(1, "%s", name);
	fclose(f);
	fprintf(stderr, "%s\n", name);
	alarm(10);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
}

int main(int argc, char **argv)
{
	struct dirent *e;
	DIR *d;

	if (argc != 2)
		errx(2, "usage: fuzz_NAME FOLDER");
	if (chdir(argv[1]) || !(d = opendir(".")))
		err(1, "%s", argv[1]);
	uint8_t *nothing = malloc(0);
	LLVMFuzzerTestOneInput(nothing, 0);
	free(nothing);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			replay(e->d_name);
	closedir(d);
	return 0;
}
