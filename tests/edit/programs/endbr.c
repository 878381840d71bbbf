/* Functions that begin with endbr64 may be called through pointers only to that instruction. */
// flags: -O2 -fcf-protection=full
// edited: one two pick
#include <stdio.h>

__attribute__((noinline)) int one(int x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) int two(int x)
{
	return x * 5 - 2;
}

__attribute__((noinline)) int (*pick(int n))(int)
{
	return n % 2 ? one : two;
}

int (*volatile table[])(int) = {one, two};

int main(void)
{
	for (int i = 0; i < 6; i++) {
		int (*f)(int) = pick(i);
		printf("%d %d %d\n", f(i), f == table[0], f == table[1]);
	}
	return 0;
}
