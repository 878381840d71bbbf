/* Tail calls (direct, through pointers), recursion, mutual recursion. */
// edited: fact even odd hop through ackermann
#include <stdio.h>

__attribute__((noinline)) long fact(long n)
{
	return n < 2 ? 1 : n * fact(n - 1);
}

__attribute__((noinline)) int odd(unsigned n);
__attribute__((noinline)) int even(unsigned n)
{
	if (n % 1000 == 7)
		printf("passing %u\n", n);
	return n ? odd(n - 1) : 1;
}

__attribute__((noinline)) int odd(unsigned n)
{
	return n ? even(n - 1) : 0;
}

__attribute__((noinline)) int hop(int x)
{
	return x + 1;
}

__attribute__((noinline)) int through(int (*f)(int), int x)
{
	return f(x * 2);
}

__attribute__((noinline)) int ackermann(int m, int n)
{
	return !m ? n + 1 : !n ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

int main(void)
{
	printf("%ld %d %d %d %d\n", fact(15), even(3001), odd(2007), through(hop, 4), ackermann(2, 6));
	return 0;
}
