/* Three functions that use 70, 20 and 10% of the CPU time. Usage: shares SECONDS */
#include "burn.h"

#include <stdlib.h>

BURNER(heavy)
BURNER(middle)
BURNER(light)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	for (int i = 0; i < 20; i++) {
		heavy(seconds * 0.70 / 20);
		middle(seconds * 0.20 / 20);
		light(seconds * 0.10 / 20);
	}
	return 0;
}
