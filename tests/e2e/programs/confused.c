/*
 * Call paths with the same height of the stack: left and right have frames of one size; alpha calls
 * beta and beta calls alpha. Prints what all of it sums up to. Usage: confused SECONDS
 */
#include "burn.h"

#include <stdio.h>
#include <stdlib.h>

BURNER(worker)
BURNER(helper)

#define CALLER __attribute__((noinline, noclone, no_icf, optimize("no-optimize-sibling-calls")))

CALLER int middle(double seconds, int x);
CALLER int left(double seconds, int x);
CALLER int right(double seconds, int x);
CALLER int alpha(double seconds, int x, int more);
CALLER int beta(double seconds, int x, int more);

int middle(double seconds, int x)
{
	worker(seconds);
	return x + 1;
}

int left(double seconds, int x)
{
	return middle(seconds, x) * 3;
}

int right(double seconds, int x)
{
	return middle(seconds, x) * 5;
}

int alpha(double seconds, int x, int more)
{
	if (more)
		return beta(seconds, x, 0) * 7;
	helper(seconds);
	return x + 2;
}

int beta(double seconds, int x, int more)
{
	if (more)
		return alpha(seconds, x, 0) * 11;
	helper(seconds);
	return x + 3;
}

int main(int argc, char **argv)
{
	double part = (argc > 1 ? atof(argv[1]) : 1) / 40;
	int sum = 0;

	for (int i = 0; i < 10; i++) {
		sum += left(part, i) + right(part, i);
		sum += alpha(part, i, 1) + beta(part, i, 1);
	}
	printf("%d\n", sum);
	return 0;
}
