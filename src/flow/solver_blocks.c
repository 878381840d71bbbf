#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "flow/solver_internal.h"

/* a -= l * b' */
static inline void subtract_product_t(struct block *a, const struct block *l, const struct block *b)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			a->a[i][j] -= l->a[i][0] * b->a[j][0] + l->a[i][1] * b->a[j][1];
}

/* a -= l * b */
static inline void subtract_product(struct block *a, const struct block *l, const struct block *b)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			a->a[i][j] -= l->a[i][0] * b->a[0][j] + l->a[i][1] * b->a[1][j];
}

/* a -= l' * b */
static inline void subtract_t_product(struct block *a, const struct block *l, const struct block *b)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			a->a[i][j] -= l->a[0][i] * b->a[0][j] + l->a[1][i] * b->a[1][j];
}

static struct block product(const struct block *a, const struct block *b)
{
	struct block c;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			c.a[i][j] = a->a[i][0] * b->a[0][j] + a->a[i][1] * b->a[1][j];
	return c;
}

static struct block inverse(const struct block *b)
{
	double scale = 1 / (b->a[0][0] * b->a[1][1] - b->a[0][1] * b->a[1][0]);

	return (struct block){{{b->a[1][1] * scale, -b->a[0][1] * scale},
		{-b->a[1][0] * scale, b->a[0][0] * scale}}};
}

void blocks_init(struct blocks *b, const struct pattern *p)
{
	*b = (struct blocks){
		.p = p,
		.diagonal = xcalloc((size_t)p->n + 1, sizeof *b->diagonal),
		.below = xcalloc((size_t)p->first[p->n] + 1, sizeof *b->below),
	};
}

void blocks_clear(struct blocks *b)
{
	memset(b->diagonal, 0, b->p->n * sizeof *b->diagonal);
	memset(b->below, 0, b->p->first[b->p->n] * sizeof *b->below);
}

void blocks_deinit(struct blocks *b)
{
	free(b->diagonal);
	free(b->below);
	*b = (struct blocks){0};
}

/* to[k] -= from[1 + k] * from[0]', where both columns have the same rows; most of the time goes
 * here. */
static void subtract_column(struct block *restrict to, const struct block *from, uint32_t n)
{
	typedef double pair __attribute__((vector_size(16)));
	const pair left = {from->a[0][0], from->a[1][0]}, right = {from->a[0][1], from->a[1][1]};

	for (uint32_t k = 0; k < n; k++)
		for (int i = 0; i < 2; i++) {
			const double *l = from[k + 1].a[i];
			pair sum = {to[k].a[i][0], to[k].a[i][1]};

			sum -= l[0] * left + l[1] * right;
			to[k].a[i][0] = sum[0];
			to[k].a[i][1] = sum[1];
		}
}

/* All that a column adds to those it reaches: any two of its rows meet in the column of the first.
 */
static void eliminate(struct blocks *b, uint32_t column)
{
	const struct pattern *p = b->p;
	uint32_t first = p->first[column], end = p->first[column + 1];

	b->diagonal[column] = inverse(&b->diagonal[column]);
	for (uint32_t i = first; i < end; i++) {
		struct block before = b->below[i];
		uint32_t row = p->row[i], slot = p->first[row];

		b->below[i] = product(&before, &b->diagonal[column]);
		subtract_product_t(&b->diagonal[row], &b->below[i], &before);
		/* Rows further on are not divided yet. */
		if (p->first[row + 1] - slot == end - i - 1)
			subtract_column(b->below + slot, b->below + i, end - i - 1);
		else
			for (uint32_t j = i + 1; j < end; j++) {
				while (p->row[slot] != p->row[j])
					slot++;
				subtract_product_t(&b->below[slot], &b->below[j], &b->below[i]);
			}
	}
}

void blocks_factor(struct blocks *b)
{
	for (uint32_t column = 0; column < b->p->n; column++)
		eliminate(b, column);
}

void blocks_solve(const struct blocks *b, double (*x)[2])
{
	const struct pattern *p = b->p;

	for (uint32_t c = 0; c < p->n; c++)
		for (uint32_t i = p->first[c]; i < p->first[c + 1]; i++)
			for (int k = 0; k < 2; k++)
				x[p->row[i]][k] -= b->below[i].a[k][0] * x[c][0] +
						   b->below[i].a[k][1] * x[c][1];
	for (uint32_t c = p->n; c-- > 0;) {
		const struct block *d = &b->diagonal[c];
		double y[2] = {x[c][0], x[c][1]};

		for (int k = 0; k < 2; k++)
			x[c][k] = d->a[k][0] * y[0] + d->a[k][1] * y[1];
		for (uint32_t i = p->first[c]; i < p->first[c + 1]; i++)
			for (int k = 0; k < 2; k++)
				x[c][k] -= b->below[i].a[0][k] * x[p->row[i]][0] +
					   b->below[i].a[1][k] * x[p->row[i]][1];
	}
}

/*
 * Takahashi, Fagan and Chen (1973): with Z the inverse, Z = D^-1 L^-1 + (I - L') Z; columns from
 * the last, each needs of Z only what the pattern has.
 */
void blocks_invert(struct blocks *b)
{
	const struct pattern *p = b->p;
	struct block *l = xmalloc(((size_t)p->n + 1) * sizeof *l);

	for (uint32_t c = p->n; c-- > 0;) {
		uint32_t first = p->first[c], n = p->first[c + 1] - first;
		struct block *z = b->below + first;

		memcpy(l, z, n * sizeof *l);
		memset(z, 0, n * sizeof *z);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t row = p->row[first + i], slot = p->first[row];

			subtract_product(&z[i], &b->diagonal[row], &l[i]);
			for (uint32_t j = i + 1; j < n; j++) {
				while (p->row[slot] != p->row[first + j])
					slot++;
				subtract_t_product(&z[i], &b->below[slot], &l[j]);
				subtract_product(&z[j], &b->below[slot], &l[i]);
			}
		}
		for (uint32_t i = 0; i < n; i++)
			subtract_t_product(&b->diagonal[c], &l[i], &z[i]);
	}
	free(l);
}
