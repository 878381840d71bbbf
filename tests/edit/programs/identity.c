/* Addresses of functions: the same for everybody, with their names. */
// flags: -O2 -rdynamic -ldl
// edited: named compare main
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int named(int x)
{
	void *frames[4];
	int n = backtrace(frames, 4);
	return n >= 2 ? x : -1;
}

int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

__attribute__((constructor)) static void early(void)
{
	puts("early");
}

static void late(void)
{
	puts("late");
}

int main(int argc, char **argv)
{
	int v[] = {5, 3, 9, 1, 7};
	char self[256] = "";
	Dl_info info;

	(void)argc;
	atexit(late);
	qsort(v, 5, sizeof *v, compare);
	printf("%d %d %d\n", v[0], v[2], v[4]);
	printf("%d\n", dlsym(RTLD_DEFAULT, "named") == (void *)named);
	printf("%s\n", dladdr((void *)named, &info) && info.dli_sname ? info.dli_sname : "?");
	printf("%d\n", named(4));
	if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
		printf("%s\n", strcmp(strrchr(self, '/'), strrchr(argv[0], '/')) ? "other" : "self");
	return 0;
}
