/* Functions that are chosen when the program is loaded. */
// edited: fast slow
#include <stdio.h>

int fast(int x)
{
	return x * 4 + 1;
}

int slow(int x)
{
	return x * 2 + 2;
}

static int (*choose(void))(int)
{
	return sizeof(void *) == 8 ? fast : slow;
}

int chosen(int x) __attribute__((ifunc("choose")));

int main(void)
{
	int (*volatile f)(int) = chosen;
	printf("%d %d %d %d\n", chosen(3), f(4), f == chosen, slow(1));
	return 0;
}
