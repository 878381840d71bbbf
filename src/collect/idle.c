#include "collect/idle.h"

#include "base/buf.h"
#include "base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool wanted(int cpu, const int *cpus, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return true;
	return n == 0;
}

double idle_parse(const char *text, long ticks_per_second, const int *cpus, size_t n)
{
	double ticks = 0;

	/* The first line is the sum of all; those of the CPUs have a number right behind "cpu". */
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
		unsigned long long idle, wait;
		int cpu;

		if (sscanf(line, "cpu%d %*u %*u %*u %llu %llu", &cpu, &idle, &wait) == 3 &&
			strncmp(line, "cpu ", 4) != 0 && wanted(cpu, cpus, n))
			ticks += idle + wait;
	}
	return ticks / ticks_per_second;
}

double idle_seconds(const int *cpus, size_t n)
{
	struct buf text = {0};
	double seconds = 0;

	if (io_read_file(AT_FDCWD, "/proc/stat", 1 << 22, &text) == 0)
		seconds = idle_parse(buf_cstr(&text), sysconf(_SC_CLK_TCK), cpus, n);
	buf_deinit(&text);
	return seconds;
}
