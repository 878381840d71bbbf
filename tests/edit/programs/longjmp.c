/* setjmp and longjmp over edited frames. */
// edited: deep
#include <setjmp.h>
#include <stdio.h>

static jmp_buf place, inner;

__attribute__((noinline)) int deep(int n)
{
	volatile int local = n;
	if (n == 0)
		longjmp(place, 42);
	if (n == 3 && setjmp(inner) == 1)
		printf("back in %d\n", local);
	if (n == 1 && !local--)
		longjmp(inner, 1);
	return deep(n - 1) + local;
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		int r = setjmp(place);
		if (!r)
			deep(i + 1);
		else
			printf("%d %d\n", i, r);
	}
	return 0;
}
