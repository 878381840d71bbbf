/*
 * Exact counts of blocks and edges as the text of `culprit export -f counts`, from what callgrind
 * counted.
 *
 *   exact_counts CALLGRIND.OUT
 *
 * Blocks are those of culprit's own graphs, so that estimates compare one to one. libc, libm and
 * ld.so are left out: under valgrind they choose other variants of their routines. What does not
 * conserve (into a block as out of it) is counted on standard error; it should be next to nothing.
 */
#include "base/err.h"
#include "base/vec.h"
#include "callgrind.h"
#include "flow/program.h"

struct totals {
	uint64_t procedures, blocks, instructions, executed, lost;
};

struct exact {
	const struct callgrind *callgrind;
	uint32_t object;
	VEC(uint64_t) executed; /* addresses of the object's instructions that were, ascending */
	const struct flow *flow;
	uint64_t *block; /* counts, by block */
	struct totals totals;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_left_out(const char *path)
{
	static const char *const names[] = {"libc.so", "libm.so", "ld-linux", "vgpreload_"};
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (slash && !strncmp(slash + 1, names[i], strlen(names[i])))
			return true;
	return !slash;
}

static bool was_executed(const struct exact *x, const struct procedure *p)
{
	for (uint32_t i = 0; i < p->nranges; i++) {
		size_t low = 0, high = x->executed.n;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (x->executed.p[middle] < p->ranges[i].start)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < x->executed.n &&
			x->executed.p[low] - p->ranges[i].start < p->ranges[i].size)
			return true;
	}
	return false;
}

/* The least of its instructions': those with a rep prefix are counted at every repetition. */
static uint64_t block_count(const struct exact *x, const struct flow_block *b)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		uint64_t n = callgrind_count(x->callgrind, x->object, x->flow->insns[i].address);

		least = n < least ? n : least;
	}
	return b->count ? least : 0;
}

static const struct flow_insn *last_insn(const struct exact *x, uint32_t block)
{
	const struct flow_block *b = &x->flow->blocks[block];

	return &x->flow->insns[b->first + b->count - 1];
}

/* How often the branch at the end of a block was taken. */
static uint64_t taken(const struct exact *x, uint32_t block)
{
	const struct flow_insn *last = last_insn(x, block);
	uint64_t n = callgrind_went(x->callgrind, x->object, last->address, flow_target(last));

	return n < x->block[block] ? n : x->block[block];
}

static uint64_t edge_count(const struct exact *x, uint32_t edge)
{
	const struct graph_edge *e = &x->flow->graph.edge[edge];
	const struct flow_block *from = &x->flow->blocks[e->from];

	if (x->flow->edge_kind[edge] == FLOW_EDGE_TABLE)
		return callgrind_went(x->callgrind, x->object, last_insn(x, e->from)->address,
			x->flow->blocks[e->to].start);
	if (from->end != FLOW_BRANCHES)
		return x->block[e->from];
	if (x->flow->edge_kind[edge] == FLOW_EDGE_JUMP)
		return taken(x, e->from);
	return x->block[e->from] - taken(x, e->from);
}

static bool is_inside(const struct flow *f, uint32_t edge)
{
	return f->graph.edge[edge].from < f->nblocks && f->graph.edge[edge].to < f->nblocks;
}

/* Adds to the totals how far what comes into blocks is from what they count. */
static void check_block(struct exact *x, uint32_t block)
{
	uint64_t in = 0, count = x->block[block];
	bool entered = false;

	graph_each_in (e, &x->flow->graph, block) {
		entered |= !is_inside(x->flow, *e);
		in += is_inside(x->flow, *e) ? edge_count(x, *e) : 0;
	}
	x->totals.executed += count;
	if (!entered || in > count)
		x->totals.lost += in > count ? in - count : count - in;
}

static void print_flow(struct exact *x)
{
	const struct flow *f = x->flow;

	printf("procedure 0x%" PRIx64 " exact\n", f->entry);
	for (uint32_t i = 0; i < f->nblocks; i++) {
		const struct flow_block *b = &f->blocks[i];

		if (b->marks & FLOW_PADDING)
			continue;
		printf("block 0x%" PRIx64 " %u %" PRIu64 " exact\n", b->start, b->size,
			x->block[i]);
		check_block(x, i);
		x->totals.blocks++;
		x->totals.instructions += b->count * x->block[i];
	}
	for (uint32_t i = 0; i < f->graph.edges; i++)
		if (is_inside(f, i))
			printf("edge 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 " exact\n",
				last_insn(x, f->graph.edge[i].from)->address,
				f->blocks[f->graph.edge[i].to].start, edge_count(x, i));
	x->totals.procedures++;
}

static void count_procedure(struct exact *x, struct program *program, const struct procedure *p)
{
	struct flow *f;

	if (!was_executed(x, p) || program_flow(program, p, &f, NULL) < 0)
		return;
	x->flow = f;
	x->block = xcalloc(f->nblocks, sizeof *x->block);
	for (uint32_t i = 0; i < f->nblocks; i++)
		x->block[i] = block_count(x, &f->blocks[i]);
	print_flow(x);
	free(x->block);
	flow_destroy(f);
}

static void count_image(struct exact *x, struct image *im)
{
	const struct procedure *list;
	size_t n = image_procedures(im, &list);
	struct program *program;
	char id[IMAGE_ID_TEXT];

	x->executed.n = 0;
	for (struct callgrind_insn *i = NULL; (i = hmap_next(&x->callgrind->insns, i));)
		if (i->object == x->object)
			*vec_add(&x->executed) = i->address;
	vec_sort(&x->executed, by_value);
	printf("image %s %s\n", image_id_text(image_id(im), id), image_path(im));
	program_create(im, &program);
	for (size_t i = 0; i < n; i++)
		count_procedure(x, program, &list[i]);
	program_destroy(program);
}

static void count_objects(struct exact *x)
{
	const struct strtab *objects = &x->callgrind->objects;

	for (x->object = 0; x->object < objects->n; x->object++) {
		struct image *im;

		if (is_left_out(objects->strings[x->object]) ||
			image_open_path(objects->strings[x->object], &im, NULL) < 0)
			continue;
		count_image(x, im);
		image_destroy(im);
	}
}

int main(int argc, char **argv)
{
	struct callgrind c;
	struct exact x = {.callgrind = &c};

	if (argc != 2)
		errx(2, "usage: exact_counts CALLGRIND.OUT");
	callgrind_open(&c, argv[1]);
	count_objects(&x);
	fprintf(stderr,
		"procedures=%" PRIu64 " blocks=%" PRIu64 " instructions=%" PRIu64
		" executed=%" PRIu64 " not_conserved=%" PRIu64 "\n",
		x.totals.procedures, x.totals.blocks, x.totals.instructions, x.totals.executed,
		x.totals.lost);
	vec_deinit(&x.executed);
	callgrind_deinit(&c);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
