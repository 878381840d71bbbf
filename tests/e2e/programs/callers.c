/*
 * One function that uses CPU time for several callers: 50% for first, 30% for second which calls it
 * at the bottom of a recursion, 20% for a thread. Usage: callers SECONDS
 */
#include "burn.h"

#include <pthread.h>
#include <stdlib.h>

BURNER(worker)

#define CALLER __attribute__((noinline, noclone, no_icf, optimize("no-optimize-sibling-calls")))

CALLER void first(double seconds);
CALLER void second(double seconds, int depth);
CALLER void third(double seconds);

void first(double seconds)
{
	worker(seconds);
	__asm__ volatile("");
}

void second(double seconds, int depth)
{
	volatile char frame[200];

	frame[depth] = 0;
	if (depth)
		second(seconds, depth - 1);
	else
		worker(seconds);
	frame[depth]++;
}

void third(double seconds)
{
	worker(seconds);
	__asm__ volatile("");
}

static void *run(void *seconds)
{
	third(*(double *)seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, part = seconds / 100;

	for (int i = 0; i < 10; i++) {
		pthread_t t;
		double of_thread = 2 * part;

		first(5 * part);
		second(3 * part, 1 + i % 3 * 5);
		pthread_create(&t, NULL, run, &of_thread);
		pthread_join(t, NULL);
	}
	return 0;
}
