/*
 * Loads of known kinds, each in a loop of its own for some CPU time:
 *	plugin_loads near|far|blocked|forwarded|alias|denormal|integer|nan SECONDS
 * Prints the address of the load or operation that a plug-in is to say something about.
 */
#include "burn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REPEAT_WHILE_TIME(seconds, statement)                                          \
	for (double end_ = burn_cpu_seconds() + (seconds); burn_cpu_seconds() < end_;) \
		for (int i_ = 0; i_ < 20000; i_++)                                     \
	statement

extern const char chase_at[], blocked_at[], forwarded_at[], alias_at[], float_at[];

struct link {
	struct link *next;
	char pad[248];
};

/* A ring through n links in an order that no prefetcher knows. */
static struct link *make_ring(size_t n)
{
	struct link *ring = mmap(
		NULL, n * sizeof *ring, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t *order = malloc(n * sizeof *order);

	madvise(ring, n * sizeof *ring, MADV_HUGEPAGE);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = (size_t)(((uint64_t)rand() << 31 | (uint64_t)rand()) % (i + 1)),
		       t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (size_t i = 0; i < n; i++)
		ring[order[i]].next = &ring[order[(i + 1) % n]];
	free(order);
	return ring;
}

static __attribute__((noinline, noclone)) struct link *chase(struct link *l, double seconds)
{
	REPEAT_WHILE_TIME(seconds, __asm__ volatile(".globl chase_at\nchase_at: mov (%0), %0"
						    : "+r"(l)::"memory"));
	return l;
}

/* Eight bytes of which the last store wrote one. */
static __attribute__((noinline, noclone)) void blocked(char *p, double seconds)
{
	uint64_t x;

	REPEAT_WHILE_TIME(seconds,
		__asm__ volatile("movb $1, 3(%1)\n.globl blocked_at\nblocked_at: mov (%1), %0"
				 : "=r"(x)
				 : "r"(p)
				 : "memory"));
}

static __attribute__((noinline, noclone)) void forwarded(char *p, double seconds)
{
	uint64_t x = 0;

	REPEAT_WHILE_TIME(seconds,
		__asm__ volatile(
			"mov %0, (%1)\n.globl forwarded_at\nforwarded_at: movzbl 3(%1), %k0"
			: "+r"(x)
			: "r"(p)
			: "memory"));
}

static __attribute__((noinline, noclone)) void alias(char *p, double seconds)
{
	uint64_t x = 0;

	REPEAT_WHILE_TIME(seconds,
		__asm__ volatile("mov %0, (%1)\n.globl alias_at\nalias_at: mov 4096(%1), %0"
				 : "+r"(x)
				 : "r"(p)
				 : "memory"));
}

static __attribute__((noinline, noclone)) void add(double a, const double *b, double seconds)
{
	REPEAT_WHILE_TIME(seconds, {
		double x = a;

		__asm__ volatile(".globl float_at\nfloat_at: addsd (%1), %0" : "+x"(x) : "r"(b));
	});
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 0.5, operand = 0;
	char *room = aligned_alloc(4096, 16384);
	const char *at = float_at;

	memset(room, 0, 16384);
	if (!strcmp(what, "near")) {
		chase(make_ring(8), seconds);
		at = chase_at;
	} else if (!strcmp(what, "far")) {
		chase(make_ring(1 << 19), seconds);
		at = chase_at;
	} else if (!strcmp(what, "blocked")) {
		blocked(room, seconds);
		at = blocked_at;
	} else if (!strcmp(what, "forwarded")) {
		forwarded(room, seconds);
		at = forwarded_at;
	} else if (!strcmp(what, "alias")) {
		alias(room, seconds);
		at = alias_at;
	} else {
		operand = !strcmp(what, "denormal") ? 3e-320
			  : !strcmp(what, "nan")    ? -__builtin_nan("")
						    : 42;
		add(1.5, &operand, seconds);
	}
	printf("%p\n", (void *)at);
	return 0;
}
