/*
 * Writes a C program with random control flow, for the editor to be tried on: gotos into and out of
 * loops, switches dense and sparse, computed gotos, recursion, tail calls, calls through pointers,
 * setjmp, signals. The same seed gives the same program; every run of it ends and prints a hash of
 * the way that it took.
 *
 *   generate SEED
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS 12

static uint64_t state;

static uint32_t below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint64_t)(uint32_t)(state >> 32) * n >> 32;
}

static const char head[] =
	"#include <setjmp.h>\n#include <signal.h>\n#include <stdint.h>\n#include <stdio.h>\n"
	"static volatile long fuel = 200000;\nstatic uint64_t hash = 1, chance = 1;\nstatic int "
	"depth;\n"
	"static jmp_buf out;\nstatic volatile sig_atomic_t signals;\n"
	"static void handler(int s) { signals += s; }\n"
	"static inline void note(uint64_t x) { hash = (hash ^ x) * 0x100000001b3 + 1; }\n"
	"static inline uint64_t draw(void) { chance = chance * 6364136223846793005ull + "
	"1442695040888963407ull; return chance >> 33; }\n";

static void expression(void)
{
	static const char *const shapes[] = {"a += b * %u;\n", "b ^= a >> %u;\n",
		"c = (c << 3) + (uint32_t)a %% %uu;\n", "d = b ? a / (b | 1) + %u : c;\n",
		"v[a %% 8] += b + %u;\n", "x = x * 1.0001 + %u; b += (uint64_t)x & 7;\n",
		"if (a > b) c += %u;\n", "d ^= __builtin_popcountll(a + %u);\n"};
	uint32_t n = below(4);

	for (uint32_t i = 0; i <= n; i++) {
		printf("\t\t");
		printf(shapes[below(sizeof shapes / sizeof *shapes)], 1 + below(60));
	}
}

static void call(uint32_t self)
{
	uint32_t callee = below(FUNCTIONS);

	printf("\t\tif (depth < 40) { depth++; ");
	switch (below(4)) {
	case 0:
		printf("a += (*table[draw() %% %u])(a, b, c); ", FUNCTIONS);
		break;
	case 1:
		printf("raise(SIGUSR1); note(signals); ");
		break;
	default:
		printf("b += f%u(c, a, d); ", callee == self ? 0 : callee);
	}
	printf("depth--; }\n");
}

static void many_ways(uint32_t labels)
{
	uint32_t cases = 3 + below(14), sparse = below(3) ? 1 : 1 + below(900);

	printf("\t\tswitch (draw() %% %u) {\n", cases * sparse + below(5));
	for (uint32_t i = 0; i < cases; i++)
		printf("\t\tcase %u: a += %u; goto L%u;\n", i * sparse, below(99), below(labels));
	if (below(2))
		printf("\t\tdefault: goto L%u;\n", below(labels));
	printf("\t\t}\n");
}

static void computed(uint32_t labels)
{
	uint32_t entries = 2u << below(4);

	printf("\t\t{ static void *const to[] = {");
	for (uint32_t i = 0; i < entries; i++)
		printf("&&L%u, ", below(labels));
	printf("}; goto *to[draw() %% %u]; }\n", entries);
}

static void block(uint32_t self, uint32_t label, uint32_t labels)
{
	printf("\tL%u:\n\t\tif (--fuel < 0) return a;\n\t\tnote(%u);\n", label, self * 100 + label);
	expression();
	if (below(3) == 0)
		call(self);
	switch (below(9)) {
	case 0:
		many_ways(labels);
		break;
	case 1:
		computed(labels);
		break;
	case 2:
		printf("\t\treturn a ^ b;\n");
		break;
	case 3:
		printf("\t\tif (depth > 60) longjmp(out, 1);\n\t\tif (depth > 30) { depth++; "
		       "return f%u(b, c, d); }\n",
			below(FUNCTIONS));
		break;
	case 4:
		printf("\t\tfor (unsigned i = 0; i < draw() %% 9; i++) { a += v[i %% 8]; if "
		       "(draw() & 64) goto L%u; }\n",
			below(labels));
		break;
	case 5:
		printf("\t\tgoto L%u;\n", below(labels));
		break;
	default:
		printf("\t\tif (draw() & %u) goto L%u;\n", 1u << below(9), below(labels));
	}
}

static void function(uint32_t self)
{
	uint32_t labels = 3 + below(20);

	printf("uint64_t f%u(uint64_t a, uint64_t b, uint64_t c)\n{\n", self);
	printf("\tuint64_t d = %u, v[8] = {a, b, c};\n\tdouble x = a & 15;\n\t(void)x;\n",
		below(99));
	for (uint32_t i = 0; i < labels; i++)
		block(self, i, labels);
	printf("\treturn d + v[0];\n}\n\n");
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: generate SEED\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	printf("%s", head);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		printf("%suint64_t f%u(uint64_t, uint64_t, uint64_t);\n", i % 3 ? "static " : "",
			i);
	printf("static uint64_t (*const table[])(uint64_t, uint64_t, uint64_t) = {");
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		printf("f%u, ", i);
	printf("};\n\n");
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		function(i);
	printf("int main(void)\n{\n\tsignal(SIGUSR1, handler);\n"
	       "\twhile (fuel > 0) { depth = 0; if (!setjmp(out)) note(table[draw() %% %u](draw(), "
	       "2, 3)); }\n"
	       "\tprintf(\"%%016llx %%d\\n\", (unsigned long long)hash, (int)signals);\n"
	       "\treturn hash & 63;\n}\n",
		FUNCTIONS);
	return 0;
}
