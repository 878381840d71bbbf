/*
 * Loads a library while it runs and calls plugin_work in it. Usage: dlopener LIBRARY SECONDS
 * Three quarters of the time go into the library.
 */
#include "burn.h"

#include <dlfcn.h>
#include <err.h>
#include <stdlib.h>

BURNER(before_loading)

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: dlopener LIBRARY SECONDS");
	double seconds = atof(argv[2]);
	before_loading(seconds / 4);
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		errx(1, "%s", dlerror());
	void (*work)(double) = (void (*)(double))dlsym(library, "plugin_work");
	if (!work)
		errx(1, "%s", dlerror());
	work(seconds * 3 / 4);
	return 0;
}
