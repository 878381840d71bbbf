/*
 * The inputs of the mixed load, the same on every machine and in every run.
 *
 *   inputs text BYTES    word-like text: Zipf-like words, each with a few favourite successors
 *   inputs c FUNCTIONS   a C translation unit with loops, switches, structures and calls
 *   inputs c ... SEED    another one of the same kind
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS      20000
#define SUCCESSORS 8

static uint64_t state = 1;

/* A 64-bit linear congruential generator; the upper half is good enough for text. */
static uint32_t random_below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 32) * n >> 32;
}

/* Small numbers are much more likely: the cube of a uniform one. */
static uint32_t random_word(void)
{
	double u = random_below(1u << 24) / (double)(1u << 24);
	return WORDS * u * u * u;
}

static void make_text(uint64_t bytes)
{
	static char word[WORDS][16];
	static uint32_t successor[WORDS][SUCCESSORS];
	for (int i = 0; i < WORDS; i++) {
		int length = 2 + random_below(9);
		for (int k = 0; k < length; k++)
			word[i][k] = 'a' + random_below(26);
		for (int k = 0; k < SUCCESSORS; k++)
			successor[i][k] = random_word();
	}
	uint32_t w = 0;
	for (uint64_t n = 0; n < bytes;) {
		w = random_below(10) < 7 ? successor[w][random_below(SUCCESSORS)] : random_word();
		n += printf(random_below(100) < 8 ? "%s.\n" : "%s ", word[w]);
	}
}

static void make_expression(int depth)
{
	static const char *const operator[] = {"+", "-", "*", "^", "&", "|"};
	if (depth == 0) {
		static const char *const leaf[] = {"p->a", "p->b", "p->v[i & 15]", "x", "i"};
		printf("%s", leaf[random_below(5)]);
		return;
	}
	printf("(");
	make_expression(depth - 1);
	printf(" %s ", operator[random_below(6)]);
	if (random_below(3))
		make_expression(depth - 1);
	else
		printf("%uu", random_below(1000));
	printf(")");
}

static void make_function(uint32_t i)
{
	printf("unsigned f%u(struct s *p, unsigned x)\n{\n\tunsigned i, r = x;\n", i);
	printf("\tfor (i = 0; i < p->n; i++) {\n\t\tswitch (x %% %uu) {\n", 5 + random_below(6));
	for (uint32_t k = 0, n = 3 + random_below(5); k < n; k++) {
		printf("\t\tcase %u:\n\t\t\tr += ", k);
		make_expression(2 + random_below(3));
		printf(";\n\t\t\tbreak;\n");
	}
	printf("\t\tdefault:\n\t\t\tp->v[i & 15] = ");
	make_expression(3);
	printf(";\n\t\t}\n\t\tif (r > %uu)\n\t\t\tx = ", random_below(100000));
	if (i)
		printf("f%u(p, r ^ i);\n", random_below(i));
	else
		printf("r ^ i;\n");
	printf("\t}\n\tp->a = r;\n\treturn r + x;\n}\n\n");
}

int main(int argc, char **argv)
{
	if (argc < 3 || (strcmp(argv[1], "text") && strcmp(argv[1], "c")))
		errx(2, "usage: inputs text BYTES | inputs c FUNCTIONS [SEED]");
	uint64_t n = strtoull(argv[2], NULL, 0);
	if (argc > 3)
		state = strtoull(argv[3], NULL, 0);
	if (argv[1][0] == 't') {
		make_text(n);
	} else {
		printf("struct s { unsigned a, b, n, v[16]; };\n\n");
		for (uint32_t i = 0; i < n; i++)
			make_function(i);
	}
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
	return 0;
}
