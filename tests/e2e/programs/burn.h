/*
 * Functions that use up a given amount of their thread's CPU time, so that shares of samples are
 * known beforehand however fast or busy the machine is.
 */
#ifndef CULPRIT_TESTS_BURN_H
#define CULPRIT_TESTS_BURN_H

#include <time.h>

static inline double burn_cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Stays inside the calling function: the clock is read once in some ten microseconds. */
static inline __attribute__((always_inline)) void burn_here(double seconds)
{
	double end = burn_cpu_seconds() + seconds;
	do {
		unsigned long x = 1;
		for (int i = 0; i < 30000; i++)
			__asm__ volatile("imul $3, %0, %0" : "+r"(x));
	} while (burn_cpu_seconds() < end);
}

/* Keeps functions with equal bodies apart. */
#define BURNER(name)                                                          \
	__attribute__((noinline, noclone, no_icf)) void name(double seconds); \
	void name(double seconds)                                             \
	{                                                                     \
		burn_here(seconds);                                           \
	}

#endif
