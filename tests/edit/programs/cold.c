/* Functions of which the compiler put unlikely parts elsewhere. */
// flags: -O2 -freorder-blocks-and-partition
// edited: work
#include <stdio.h>
#include <stdlib.h>

__attribute__((cold, noinline)) void complain(int x)
{
	printf("complains of %d\n", x);
}

__attribute__((noinline)) int work(int x)
{
	int sum = 0;
	for (int i = 0; i < x; i++) {
		if (__builtin_expect(i * i % 17 == 13, 0)) {
			complain(i);
			sum += 1000;
			if (sum > 4000)
				complain(sum);
			continue;
		}
		sum += i;
	}
	if (__builtin_expect(x == 13, 0)) {
		complain(-x);
		abort();
	}
	return sum;
}

int main(void)
{
	printf("%d %d\n", work(5), work(50));
	return work(60) & 63;
}
