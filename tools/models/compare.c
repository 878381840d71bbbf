/*
 * The scoreboard against llvm-mca: reads what tools/models/mca.cc wrote, runs every block as a loop
 * on every model as LLVM has it, and prints how many cycles agree. With -v NAME the blocks that
 * differ on that model, worst first by line.
 *
 *	build/models/compare [-v NAME] < answers
 */
#include "isa/scoreboard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHIPS 10
#define CLOSE 0.05 /* cycles: blocks of moves that all are eliminated take hardly any */

static struct tally {
	size_t blocks, within5, within10, within25, over, under, unknown;
} tally[CHIPS];

static size_t decode(const struct model *m, const uint8_t *code, size_t n, struct model_insn *insn)
{
	size_t count = 0;

	for (size_t at = 0; at < n && count < 256; at += insn[count++].length)
		if (model_insn(m, code + at, n - at, &insn[count]))
			return 0;
	return count;
}

static size_t from_hex(const char *hex, uint8_t *code, size_t room)
{
	size_t n = 0;
	unsigned byte;

	for (; n < room && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		code[n] = (uint8_t)byte;
	return n;
}

static void show(
	const uint8_t *code, size_t n, double ours, const struct scoreboard_sum *sum, double theirs)
{
	char text[128];

	printf("%.2f mca %.2f (front %.2f units %.2f chain %.2f) %s\n", ours, theirs, sum->front,
		sum->units, sum->chain, scoreboard_bound_name(sum->bound));
	for (size_t at = 0; at < n;) {
		at += isa_text(code + at, n - at, at, ISA_ATT, NULL, NULL, text, sizeof text);
		printf("\t%s\n", text);
	}
}

static void count(struct tally *t, double ours, double theirs, unsigned unknown)
{
	double off = fabs(ours - theirs) <= CLOSE ? 0 : fabs(ours - theirs) / theirs;

	t->blocks++;
	t->within5 += off <= 0.05;
	t->within10 += off <= 0.10;
	t->within25 += off <= 0.25;
	t->over += off > 0.1 && ours > theirs;
	t->under += off > 0.1 && ours < theirs;
	t->unknown += unknown > 0;
}

static void run_line(
	char *line, struct scoreboard **boards, const struct model **models, const char *verbose)
{
	static struct model_insn insn[257];
	uint8_t code[2048];
	char *word = strtok(line, " \n");
	size_t n = word ? from_hex(word, code, sizeof code) : 0;

	for (unsigned i = 0; i < CHIPS && (word = strtok(NULL, " \n")); i++) {
		double theirs = atof(word);
		size_t count_insns = decode(models[i], code, n, insn);
		struct scoreboard_sum sum;

		if (theirs <= 0 || !count_insns ||
			scoreboard_loop(boards[i], insn, count_insns, NULL, &sum))
			continue;
		count(&tally[i], sum.cycles, theirs, sum.unknown);
		if (verbose && !strcmp(verbose, model_name(models[i])) &&
			fabs(sum.cycles - theirs) > fmax(0.1 * theirs, CLOSE))
			show(code, n, sum.cycles, &sum, theirs);
	}
}

int main(int argc, char **argv)
{
	struct scoreboard *boards[CHIPS];
	const struct model *models[CHIPS];
	static char line[8192];

	for (unsigned i = 0; i < CHIPS; i++) {
		char name[64];

		snprintf(name, sizeof name, "%s:llvm", model_name(model_at(i)));
		models[i] = model_by_name(name);
		boards[i] = scoreboard_create(models[i]);
	}
	while (fgets(line, sizeof line, stdin))
		run_line(line, boards, models, argc > 2 ? argv[2] : NULL);
	printf("%-20s %8s %6s %6s %6s %6s %6s %8s\n", "model", "blocks", "5%", "10%", "25%", "over",
		"under", "unknown");
	for (unsigned i = 0; i < CHIPS; i++) {
		const struct tally *t = &tally[i];
		double all = (double)(t->blocks ? t->blocks : 1) / 100;

		printf("%-20s %8zu %6.1f %6.1f %6.1f %6.1f %6.1f %8zu\n", model_name(models[i]),
			t->blocks, (double)t->within5 / all, (double)t->within10 / all,
			(double)t->within25 / all, (double)t->over / all, (double)t->under / all,
			t->unknown);
		scoreboard_destroy(boards[i]);
	}
	return 0;
}
