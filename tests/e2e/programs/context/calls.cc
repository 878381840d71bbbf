/*
 * Calls at random, the same in every run: direct and through pointers, back from the C library,
 * recursive, left by exceptions and longjmp, in threads and in a child.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCEDURE extern "C" __attribute__((noipa))

static __thread unsigned long seed;
static __thread long left;
static __thread int deep;

PROCEDURE unsigned draw(unsigned limit)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % limit;
}

PROCEDURE void f0(void);
PROCEDURE void f1(void);
PROCEDURE void f2(void);
PROCEDURE void f3(void);
PROCEDURE void f4(void);
PROCEDURE void f5(void);
PROCEDURE void f6(void);
PROCEDURE void f7(void);

static void (*const table[])(void) = {f0, f1, f2, f3, f4, f5, f6, f7};

PROCEDURE void any(void)
{
	table[draw(8)]();
}

PROCEDURE int compare(const void *a, const void *b)
{
	if (left > 0 && !draw(6))
		any();
	return *(const int *)a - *(const int *)b;
}

PROCEDURE void sort(void)
{
	int list[] = {4, 1, 3, 2};

	qsort(list, 4, sizeof *list, compare);
}

PROCEDURE void throws(void)
{
	if (draw(2))
		any();
	throw 1;
}

PROCEDURE void caught(void)
{
	if (!draw(3))
		any();
}

PROCEDURE void catches(void)
{
	int before = deep;

	try {
		throws();
	} catch (int) {
		deep = before;
		caught();
	}
}

PROCEDURE void jumps(jmp_buf *to)
{
	if (draw(2))
		any();
	longjmp(*to, 1);
}

PROCEDURE void lands(void)
{
	jmp_buf here;
	volatile int before = deep;

	if (!setjmp(here))
		jumps(&here);
	deep = before;
	caught();
}

#define CALLS(one, other)                                       \
	{                                                       \
		if (left <= 0 || deep > 50)                     \
			return;                                 \
		deep++;                                         \
		for (bool on = true; on && left > 0; left--) {  \
			switch (draw(10)) {                     \
			case 0: one(); break;                   \
			case 1: other(); break;                 \
			case 2: any(); break;                   \
			case 3: table[draw(4)](); break;        \
			case 4: sort(); break;                  \
			case 5: catches(); break;               \
			case 6: lands(); break;                 \
			default: on = false; break;             \
			}                                       \
		}                                               \
		deep--;                                         \
	}

PROCEDURE void f0(void) CALLS(f1, f3)
PROCEDURE void f1(void) CALLS(f4, f2)
PROCEDURE void f2(void) CALLS(f7, f5)
PROCEDURE void f3(void) CALLS(f2, f3)
PROCEDURE void f4(void) CALLS(f5, f6)
PROCEDURE void f5(void) CALLS(f6, f1)
PROCEDURE void f6(void) CALLS(f0, f7)
PROCEDURE void f7(void) CALLS(f5, f4)

PROCEDURE void run(unsigned long with, long calls)
{
	seed = with;
	for (left = calls; left > 0; left--)
		any();
}

PROCEDURE void *thread(void *arg)
{
	run((unsigned long)arg, 3000);
	return NULL;
}

PROCEDURE void threads(void)
{
	pthread_t list[8];

	for (unsigned long i = 0; i < 8; i++)
		pthread_create(&list[i], NULL, thread, (void *)(i + 10));
	for (int i = 0; i < 8; i++)
		pthread_join(list[i], NULL);
}

PROCEDURE void child(void)
{
	if (fork() == 0) {
		run(5, 2000);
		exit(0);
	}
	wait(NULL);
}

int main(void)
{
	run(1, 20000);
	threads();
	child();
	run(2, 1000);
	puts("done");
}
