/* Thread-local variables and threads. */
// flags: -O2 -pthread
// edited: add body
#include <pthread.h>
#include <stdio.h>

static __thread long mine = 5;
static __thread char name[16];

__attribute__((noinline)) void add(long n)
{
	for (long i = 0; i < n; i++)
		mine += i ^ (mine >> 3);
}

void *body(void *arg)
{
	long n = (long)arg;
	snprintf(name, sizeof name, "t%ld", n);
	for (int i = 0; i < 1000; i++)
		add(n);
	pthread_exit((void *)(mine + name[1]));
}

int main(void)
{
	pthread_t t[4];
	void *r;

	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, body, (void *)(i + 10));
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &r);
		printf("%ld\n", (long)r);
	}
	printf("%ld\n", mine);
	return 0;
}
