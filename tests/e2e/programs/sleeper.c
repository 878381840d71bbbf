/* Uses no CPU time to speak of. Usage: sleeper SECONDS */
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct timespec t = {seconds, (seconds - (long)seconds) * 1e9};
	nanosleep(&t, NULL);
	return 0;
}
