/*
 * The best and the worst that a table of sampled addresses can meet.
 *
 *   pcs hits SECONDS     one tight loop: nearly every sample finds its entry
 *   pcs misses SECONDS   four million one-byte instructions in a row: nearly no sample does
 *
 * Both are file-backed code with a symbol, so that only the spread of the addresses differs.
 */
#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void sled(void);
void loop(uint64_t n);

__asm__(".text\n"
	".globl sled\n"
	".type sled, @function\n"
	"sled:\n"
	"	.fill 4194304, 1, 0x90\n"
	"	ret\n"
	".size sled, . - sled\n"
	".globl loop\n"
	".type loop, @function\n"
	"	.balign 64\n"
	"loop:\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".size loop, . - loop\n");

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	if (argc != 3 || (strcmp(argv[1], "hits") && strcmp(argv[1], "misses")))
		errx(2, "usage: pcs hits|misses SECONDS");
	int misses = argv[1][0] == 'm';
	for (double end = seconds_now() + atof(argv[2]); seconds_now() < end;) {
		if (misses)
			sled();
		else
			loop(3000000);
	}
	return 0;
}
