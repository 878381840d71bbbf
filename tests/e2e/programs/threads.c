/* Three named threads that use 60, 30 and 10% of the CPU time. Usage: threads SECONDS */
#include "burn.h"

#include <err.h>
#include <pthread.h>
#include <stdlib.h>

BURNER(first_work)
BURNER(second_work)
BURNER(third_work)

static struct worker {
	const char *name;
	double share, seconds;
	void (*work)(double);
	pthread_t thread;
} workers[] = {
	{"worker-first", 0.6, 0, first_work, 0},
	{"worker-second", 0.3, 0, second_work, 0},
	{"worker-third", 0.1, 0, third_work, 0},
};

static void *run(void *arg)
{
	struct worker *w = arg;
	pthread_setname_np(pthread_self(), w->name);
	w->work(w->seconds * w->share);
	return NULL;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		workers[i].seconds = argc > 1 ? atof(argv[1]) : 1;
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			errx(1, "pthread_create");
	}
	for (int i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
