/*
 * How long lines of code take to be fetched, by how much code is gone through.
 *
 *   fetch BYTES...
 *
 * Prints for each size the least ns of a line. Each line has a few cycles of dependent work, as
 * code has, and a jump to the next; lines come in an order that no prefetcher follows, but every
 * branch is foreseen as far as the core remembers so many.
 */
#include "circle.h"

#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, LINES = 200000, TRIES = 60, WORK = 7 };

/* add $1, %rax so many times, and a jump; what the counter in %rdi ends is the first line's. */
static void write_line(uint8_t *at, const uint8_t *next)
{
	static const uint8_t add[] = {0x48, 0x83, 0xc0, 0x01};
	int32_t by;

	for (int i = 0; i < WORK; i++, at += sizeof add)
		memcpy(at, add, sizeof add);
	*at++ = 0xe9;
	by = (int32_t)(next - (at + 4));
	memcpy(at, &by, sizeof by);
}

/* sub $1, %rdi; jne 1f; ret; 1: jmp next */
static void write_first(uint8_t *at, const uint8_t *next)
{
	static const uint8_t head[] = {0x48, 0x83, 0xef, 0x01, 0x75, 0x01, 0xc3};
	int32_t by;

	memcpy(at, head, sizeof head);
	at += sizeof head;
	*at++ = 0xe9;
	by = (int32_t)(next - (at + 4));
	memcpy(at, &by, sizeof by);
}

static void write_circle(uint8_t *code, size_t n)
{
	size_t *next = circle(n);

	write_first(code, code + next[0] * LINE);
	for (size_t i = 1; i < n; i++)
		write_line(code + i * LINE, code + next[i] * LINE);
	free(next);
}

static double fetch(size_t bytes)
{
	size_t n = bytes / LINE, rounds = 1 + LINES / n;
	uint8_t *code = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(uint64_t) = (void (*)(uint64_t))code;
	double best = 1e9;

	if (code == MAP_FAILED)
		err(1, "%zu bytes", bytes);
	madvise(code, bytes, MADV_HUGEPAGE);
	write_circle(code, n);
	for (int i = 0; i < TRIES; i++) {
		double start = now(), took;

		run(rounds + 1);
		took = (now() - start) / (double)(rounds * n);
		best = took < best ? took : best;
	}
	munmap(code, bytes);
	return best;
}

int main(int argc, char **argv)
{
	print_sizes(argc, argv, fetch);
	return 0;
}
