/*
 * The inputs of the mixed load, the same on every machine and in every run.
 *
 *   inputs text BYTES    word-like text: Zipf-like words, each with a few favourite successors
 *   inputs c FUNCTIONS   a C translation unit with loops, switches, structures and calls
 *   inputs c ... SEED    another one of the same kind
 *   inputs family N      N related proteins, aligned
 *   inputs proteins N    proteins, one in twenty of the same family
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS      20000
#define SUCCESSORS 8
#define LENGTH     300 /* of a protein */

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

static void make_unit(uint64_t functions)
{
	printf("struct s { unsigned a, b, n, v[16]; };\n\n");
	for (uint32_t i = 0; i < functions; i++)
		make_function(i);
}

static char random_residue(void)
{
	return "ACDEFGHIKLMNPQRSTVWY"[random_below(20)];
}

/* Another of the family: of a hundred residues so many differ from the ancestor's. */
static void make_relative(const char *ancestor, uint32_t percent)
{
	for (const char *p = ancestor; *p; p++)
		putchar(random_below(100) < percent ? random_residue() : *p);
	putchar('\n');
}

static void make_proteins(uint64_t n, int aligned)
{
	char ancestor[LENGTH + 1] = "", stranger[LENGTH + 1] = "";
	for (int i = 0; i < LENGTH; i++)
		ancestor[i] = random_residue();
	if (aligned)
		puts("# STOCKHOLM 1.0");
	for (uint64_t i = 0; i < n; i++) {
		for (int k = 0; k < LENGTH; k++)
			stranger[k] = random_residue();
		printf(aligned ? "s%lu " : ">p%lu\n", (unsigned long)i);
		make_relative(aligned || i % 20 == 0 ? ancestor : stranger, aligned ? 40 : 50);
	}
	if (aligned)
		puts("//");
}

int main(int argc, char **argv)
{
	const char *what = argc < 3 ? "" : argv[1];
	uint64_t n = argc < 3 ? 0 : strtoull(argv[2], NULL, 0);
	if (argc > 3)
		state = strtoull(argv[3], NULL, 0);
	if (!strcmp(what, "text"))
		make_text(n);
	else if (!strcmp(what, "c"))
		make_unit(n);
	else if (!strcmp(what, "family") || !strcmp(what, "proteins"))
		make_proteins(n, what[0] == 'f');
	else
		errx(2, "usage: inputs text BYTES | c FUNCTIONS | family N | proteins N [SEED]");
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
	return 0;
}
