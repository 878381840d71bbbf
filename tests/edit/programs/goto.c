/* Computed goto: labels in a table, jumped to from many places. */
// edited: main
#include <stdio.h>

__attribute__((noinline)) static long run(const unsigned char *code, long x)
{
	static const void *const labels[] = {&&halt, &&add, &&twice, &&less, &&back, &&flip};
	const unsigned char *at = code;
	long left = 50;

	goto *labels[*at++];
add:
	x += *at++;
	goto *labels[*at++];
twice:
	x *= 2;
	goto *labels[*at++];
less:
	x -= 3;
	goto *labels[*at++];
flip:
	x ^= 0x5a;
	goto *labels[*at++];
back:
	if (left-- > 0)
		at = code;
	goto *labels[*at++];
halt:
	return x;
}

int main(void)
{
	static const unsigned char code[] = {1, 5, 2, 3, 5, 4, 0};
	printf("%ld\n", run(code, 1));
	return 0;
}
