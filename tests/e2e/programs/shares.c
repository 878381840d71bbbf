/* Three functions that use 70, 20 and 10% of the CPU time. Usage: shares SECONDS */
#include "burn.h"

#include <stdlib.h>

BURNER(heavy)
BURNER(middle)
BURNER(light)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	for (double end = burn_cpu_seconds() + seconds; burn_cpu_seconds() < end;) {
		heavy(0.035);
		middle(0.010);
		light(0.005);
	}
	return 0;
}
