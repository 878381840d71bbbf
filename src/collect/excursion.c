#include "collect/excursion_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- copies of code ---- */

/* Everything that was learnt is gone, too, also what was looked at in the excursion under way. */
static void forget(struct excursion *x)
{
	chip_forget(&x->chip);
	for (size_t i = 0; i < EXCURSION_COPIES; i++)
		x->copies[i] = (struct excursion_copy){0};
}

/* Whether more may stand behind it without a look at the program. */
static bool is_of_registers(const struct transplant *t)
{
	return t->kind == TRANSPLANT_COPY && !t->size;
}

/* 0: there is no copy of it. */
static uint64_t place(struct excursion *x, const struct transplant *row, unsigned n)
{
	uint64_t at;

	if (row[0].kind != TRANSPLANT_COPY)
		return 0;
	at = chip_place(&x->chip, row, row + n);
	if (at)
		return at;
	forget(x);
	return chip_place(&x->chip, row, row + n);
}

bool excursion_learn(
	struct excursion *x, struct excursion_copy *c, uint64_t ip, const uint8_t *code, size_t n)
{
	struct transplant row[EXCURSION_ROW];
	size_t at = 0;
	unsigned count = 0;

	do {
		isa_transplant(code + at, n - at, ip + at, &row[count]);
		if (count && !is_of_registers(&row[count]))
			break;
		at += row[count++].length;
	} while (count < EXCURSION_ROW && is_of_registers(&row[count - 1]));
	if (!row[0].length) {
		x->end = n < 15 ? EXCURSION_FAULT : EXCURSION_STOPPED;
		return false;
	}
	*c = (struct excursion_copy){.ip = ip,
		.place = place(x, row, count),
		.t = row[0],
		.n = (uint8_t)count,
		.nbytes = (uint8_t)at};
	memcpy(c->bytes, code, at);
	return true;
}

unsigned excursion_count(const struct excursion_copy *c, size_t n)
{
	struct transplant t;
	unsigned count = 0;

	for (size_t at = 0; at < n; at += t.length, count++)
		isa_transplant(c->bytes + at, c->nbytes - at, c->ip + at, &t);
	return count;
}

/* ---- states ---- */

#define FLAG_CF 0x001u
#define FLAG_OF 0x800u
#define FLAG_DF 0x400u
#define FLAGS   0x0d5u /* SF, ZF, AF, PF, CF */

static void take_registers(struct excursion *x, const struct user_regs_struct *r)
{
	const uint64_t list[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	memcpy(x->chip.state->r, list, sizeof list);
	x->chip.state->flags = (r->eflags & FLAGS) << 8 | (r->eflags & FLAG_OF ? CHIP_OF : 0);
	x->down = r->eflags & FLAG_DF;
	x->ip = r->rip;
	x->base[0] = r->fs_base;
	x->base[1] = r->gs_base;
}

void excursion_registers(const struct excursion *x, struct user_regs_struct *out)
{
	const struct chip_state *s = x->chip.state;
	const uint64_t *r = s->r;

	*out = (struct user_regs_struct){.rax = r[0],
		.rcx = r[1],
		.rdx = r[2],
		.rbx = r[3],
		.rsp = r[4],
		.rbp = r[5],
		.rsi = r[6],
		.rdi = r[7],
		.r8 = r[8],
		.r9 = r[9],
		.r10 = r[10],
		.r11 = r[11],
		.r12 = r[12],
		.r13 = r[13],
		.r14 = r[14],
		.r15 = r[15],
		.rip = x->ip,
		.fs_base = x->base[0],
		.gs_base = x->base[1]};
	out->eflags = (s->flags >> 8 & FLAGS) | (s->flags & CHIP_OF ? FLAG_OF : 0) |
		      (x->down ? FLAG_DF : 0);
}

const void *excursion_vectors(const struct excursion *x)
{
	return x->vectors;
}

/* ---- the excursion ---- */

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void excursion_forget_caches(struct excursion *x)
{
	excursion_cache_forget(&x->data);
	excursion_cache_forget(&x->code);
	x->forgotten++;
	x->since = 0;
	x->nstays = 0;
	x->line = UINT64_MAX;
}

int excursion_create(struct excursion **out, struct err *e)
{
	struct excursion *x = xcalloc(1, sizeof *x);
	int rc = chip_init(&x->chip, e);

	x->memory = pages((size_t)EXCURSION_PAGES * 4096);
	x->vectors = pages(2 * EXCURSION_VECTORS);
	if (!rc && (!x->memory || !x->vectors))
		rc = err_errno(e, -errno, "cannot have memory for pages of programs");
	x->own = x->vectors + EXCURSION_VECTORS;
	x->pages = xcalloc(EXCURSION_PLACES, sizeof *x->pages);
	x->copies = xcalloc(EXCURSION_COPIES, sizeof *x->copies);
	x->places = xcalloc(EXCURSION_EDGES, sizeof *x->places);
	x->found = xcalloc(EXCURSION_EDGES, sizeof *x->found);
	x->edges = xcalloc(EXCURSION_EDGES, sizeof *x->edges);
	x->stay_places = xcalloc(EXCURSION_STAYS, sizeof *x->stay_places);
	x->stays_found = xcalloc(EXCURSION_STAYS, sizeof *x->stays_found);
	x->stays = xcalloc(EXCURSION_STAYS, sizeof *x->stays);
	excursion_cache_init(&x->data, sysconf(_SC_LEVEL1_DCACHE_SIZE));
	excursion_cache_init(&x->code, sysconf(_SC_LEVEL1_ICACHE_SIZE));
	excursion_forget_caches(x);
	if (!rc)
		rc = chip_catch(&x->chip, e);
	if (rc) {
		excursion_destroy(x);
		return rc;
	}
	*out = x;
	return 0;
}

void excursion_destroy(struct excursion *x)
{
	if (!x)
		return;
	chip_uncatch(&x->chip);
	chip_deinit(&x->chip);
	if (x->memory)
		munmap(x->memory, (size_t)EXCURSION_PAGES * 4096);
	if (x->vectors)
		munmap(x->vectors, 2 * EXCURSION_VECTORS);
	free(x->pages);
	free(x->copies);
	free(x->places);
	free(x->found);
	free(x->edges);
	free(x->stay_places);
	free(x->stays_found);
	free(x->stays);
	free(x);
}

static enum excursion_end run_part(struct excursion *x, const void *vectors, uint64_t instructions)
{
	x->part++;
	x->nedges = 0;
	x->done = 0;
	x->chip.state->trapped = 0;
	x->counts = x->since >= EXCURSION_WARM;
	excursion_walk(x, vectors, instructions);
	x->since += x->done;
	for (size_t i = 0; i < x->nedges; i++)
		x->edges[i] = x->places[x->found[i]].edge;
	return x->end;
}

enum excursion_end excursion_run(
	struct excursion *x, const struct excursion_start *start, uint64_t instructions)
{
	x->epoch++;
	x->npages = 0;
	x->strung = 0;
	x->read = start->read;
	x->arg = start->arg;
	take_registers(x, &start->registers);
	return run_part(x, start->vectors, instructions);
}

enum excursion_end excursion_go_on(struct excursion *x, uint64_t instructions)
{
	return run_part(x, x->vectors, instructions);
}

uint64_t excursion_instructions(const struct excursion *x)
{
	return x->done;
}

size_t excursion_edges(const struct excursion *x, const struct excursion_edge **out)
{
	*out = x->edges;
	return x->nedges;
}

size_t excursion_stays(const struct excursion *x, const struct excursion_stay **out)
{
	for (size_t i = 0; i < x->nstays; i++)
		x->stays[i] = x->stay_places[x->stays_found[i]].stay;
	*out = x->stays;
	return x->nstays;
}
