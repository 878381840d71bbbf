/*
 * Instructions that see values of known distribution, for 'culprit values':
 *
 *   scale      argument 2 is 48 in 31 of 32 calls, else 7
 *   divide     the divisor is 10, but 3 in one of 64 divisions
 *   shapes     calls through a pointer: circle 63 of 64 times, else square
 *   gather     reads every 256th byte of 64 MB, over and over
 *   bound      reads a limit from the same place in every turn of its loop
 *   copies     memcpy of 40 bytes, as a call
 *
 * values SECONDS runs each for an equal part of the time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "burn.h"

#define LOUD __attribute__((noinline, noclone))

enum { TURNS = 20000, TABLE = 64 << 20 };

static volatile uint64_t sink;
static uint8_t *table;

LOUD uint64_t scale(uint64_t x, uint64_t by)
{
	uint64_t sum = x;

	for (int i = 0; i < 16; i++)
		sum = sum * by + (sum >> 3);
	return sum;
}

static void scales(void)
{
	for (uint64_t i = 0; i < TURNS; i++)
		sink += scale(i, i % 32 ? 48 : 7);
}

LOUD void divide(void)
{
	uint64_t sum = sink | 1;

	for (uint64_t i = 0; i < TURNS; i++) {
		volatile uint64_t by = i % 64 ? 10 : 3;

		sum = (sum + i * 12345) / by + (i << 20);
	}
	sink = sum;
}

LOUD static uint64_t circle(uint64_t x)
{
	return x * 3 + 1;
}

LOUD static uint64_t square(uint64_t x)
{
	return x * x;
}

LOUD void shapes(void)
{
	static uint64_t (*volatile const draw[2])(uint64_t) = {circle, square};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < TURNS; i++)
		sum += draw[i % 64 == 0](i);
	sink = sum;
}

LOUD void gather(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TABLE; i += 256)
		sum += table[i];
	sink = sum;
}

struct box {
	volatile uint32_t limit;
	uint32_t used;
};

LOUD void bound(struct box *box)
{
	for (uint32_t i = 0; i < TURNS; i++)
		if (i < box->limit)
			sink = i;
}

LOUD void copies(void)
{
	static uint8_t from[4096], to[4096];
	volatile size_t size = 40;

	for (size_t i = 0; i < TURNS; i++)
		memcpy(to + i % 1024, from + i % 512, size);
	sink += to[7];
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, each = seconds / 6;
	struct box box = {.limit = 12345678};
	double end;

	table = calloc(TABLE, 1);
	if (!table)
		return 1;
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		scales();
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		divide();
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		shapes();
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		gather();
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		bound(&box);
	for (end = burn_cpu_seconds() + each; burn_cpu_seconds() < end;)
		copies();
	free(table);
	return 0;
}
