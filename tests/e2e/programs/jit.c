/*
 * Makes code at run time, says so in /tmp/perf-PID.map and runs it: jit_hot gets three times what
 * jit_cold gets. Prints its pid; the map stays for whoever reads it. Usage: jit SECONDS
 */
#include "burn.h"

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* dec %rdi; jnz back to it; ret */
static const uint8_t loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

typedef void loop_fn(uint64_t n);

static loop_fn *make(uint8_t *at, const char *name, FILE *map)
{
	memcpy(at, loop, sizeof loop);
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof loop, name);
	return (loop_fn *)at;
}

static void burn(loop_fn *f, double seconds)
{
	double end = burn_cpu_seconds() + seconds;
	while (burn_cpu_seconds() < end)
		f(50000);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	uint8_t *code = mmap(
		NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	if (code == MAP_FAILED || !map)
		err(1, "%s", path);
	loop_fn *hot = make(code, "jit_hot", map);
	loop_fn *cold = make(code + 4096, "jit_cold", map);
	fclose(map);
	printf("%d\n", getpid());
	fflush(stdout);
	for (double end = burn_cpu_seconds() + seconds; burn_cpu_seconds() < end;) {
		burn(hot, 0.030);
		burn(cold, 0.010);
	}
	return 0;
}
