#include "paths/calibrate.h"

#include <stdint.h>
#include <x86intrin.h>

#define ROUNDS 32
#define PATHS  256

static uint64_t read_clock(void)
{
	uint64_t low, high;

	__asm__ volatile("rdtsc; bswap %%edx; bswap %%rdx" : "=a"(low), "=d"(high));
	return low + high;
}

double paths_calibrate_reading(void)
{
	double least = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = read_clock(), last = start;

		for (int i = 0; i < PATHS; i++)
			last = read_clock();
		double each = (double)(last - start) / PATHS;
		if (!round || each < least)
			least = each;
	}
	return least;
}

/* The least of several rounds: the others were interrupted. */
double paths_calibrate(void)
{
	volatile uint64_t count = 0, sum = 0;
	double least = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = __rdtsc(), last = start;

		for (int i = 0; i < PATHS; i++) {
			uint64_t now = __rdtsc();

			count = count + 1;
			sum = sum + now - last;
			last = now;
		}
		double each = (double)(last - start) / PATHS;
		if (!round || each < least)
			least = each;
	}
	return least;
}
