/*
 * Reads the clock so many million times, as edited programs do, and nothing else: what readings
 * cost at least, on a machine as busy as it is for the programs beside it.
 *
 *	readings MILLIONS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 0, last = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t low, high;

		__asm__ volatile("rdtsc; bswap %%edx; bswap %%rdx" : "=a"(low), "=d"(high));
		last = low + high;
	}
	return printf("%d\n", (int)(last & 1)) < 0;
}
