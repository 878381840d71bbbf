#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "flow/solver_internal.h"

enum { ROWS_MOST = 3 << 20 };

typedef VEC(uint32_t) numbers;

/* The graph of what is left to eliminate. Neighbours that are gone stay in the lists. */
struct elimination {
	uint32_t n, last;
	numbers *near;    /* by site */
	uint32_t *degree; /* by site, of those that are left */
	uint32_t *place;  /* by site; GRAPH_NONE while it is left */
	uint32_t *head;   /* by degree: list of sites */
	uint32_t *next, *before;
	struct hmap pairs; /* that are near, the lower site first */
	numbers column;    /* rows of all columns, as sites */
	uint32_t *first;
};

static void unlink_site(struct elimination *m, uint32_t a)
{
	if (a == m->last)
		return;
	if (m->before[a] == GRAPH_NONE)
		m->head[m->degree[a]] = m->next[a];
	else
		m->next[m->before[a]] = m->next[a];
	if (m->next[a] != GRAPH_NONE)
		m->before[m->next[a]] = m->before[a];
}

static void link_site(struct elimination *m, uint32_t a)
{
	uint32_t *head = &m->head[m->degree[a]];

	if (a == m->last)
		return;
	m->next[a] = *head;
	m->before[a] = GRAPH_NONE;
	if (*head != GRAPH_NONE)
		m->before[*head] = a;
	*head = a;
}

static void make_near(struct elimination *m, uint32_t a, uint32_t b)
{
	uint32_t pair[2] = {a < b ? a : b, a < b ? b : a};
	bool fresh = false;

	if (a != b)
		hmap_put(&m->pairs, pair, &fresh);
	if (!fresh)
		return;
	*vec_add(&m->near[a]) = b;
	*vec_add(&m->near[b]) = a;
	m->degree[a]++;
	m->degree[b]++;
}

/* Those that are left near a become its rows, and near each other. */
static void eliminate(struct elimination *m, uint32_t a, uint32_t column)
{
	uint32_t begin = m->column.n;

	m->place[a] = column;
	m->first[column] = begin;
	vec_each (b, &m->near[a])
		if (m->place[*b] == GRAPH_NONE)
			*vec_add(&m->column) = *b;
	vec_deinit(&m->near[a]);
	for (uint32_t i = begin; i < m->column.n; i++) {
		unlink_site(m, m->column.p[i]);
		m->degree[m->column.p[i]]--;
	}
	for (uint32_t i = begin; i < m->column.n; i++)
		for (uint32_t j = begin; j < i; j++)
			make_near(m, m->column.p[i], m->column.p[j]);
	for (uint32_t i = begin; i < m->column.n; i++)
		link_site(m, m->column.p[i]);
}

static int eliminate_all(struct elimination *m)
{
	uint32_t least = 0, column = 0;

	for (uint32_t a = 0; a < m->n; a++)
		link_site(m, a);
	for (; column + 1 < m->n; column++) {
		while (m->head[least] == GRAPH_NONE)
			least++;
		uint32_t a = m->head[least];

		unlink_site(m, a);
		eliminate(m, a, column);
		if (m->column.n > ROWS_MOST)
			return -E2BIG;
		least -= least > 0;
	}
	eliminate(m, m->last, column);
	m->first[m->n] = m->column.n;
	return 0;
}

static void elimination_init(struct elimination *m, uint32_t n, uint32_t last)
{
	*m = (struct elimination){
		.n = n,
		.last = last,
		.near = xcalloc((size_t)n + 1, sizeof *m->near),
		.degree = graph_numbers(n, 0),
		.place = graph_numbers(n, GRAPH_NONE),
		.head = graph_numbers(n + 1, GRAPH_NONE),
		.next = graph_numbers(n, GRAPH_NONE),
		.before = graph_numbers(n, GRAPH_NONE),
		.first = graph_numbers(n + 1, 0),
	};
	hmap_init(&m->pairs, 2 * sizeof(uint32_t), 2 * sizeof(uint32_t));
}

static void elimination_deinit(struct elimination *m)
{
	for (uint32_t a = 0; a < m->n; a++)
		vec_deinit(&m->near[a]);
	free(m->near);
	free(m->degree);
	free(m->head);
	free(m->next);
	free(m->before);
	hmap_deinit(&m->pairs);
	vec_deinit(&m->column);
	free(m->place);
	free(m->first);
}

/* Turns columns of rows into rows of columns; done twice, rows ascend. */
static void transpose(uint32_t n, const uint32_t *first, const uint32_t *row, uint32_t *to_first,
	uint32_t *to_row)
{
	for (uint32_t i = 0; i < n + 2; i++)
		to_first[i] = 0;
	for (uint32_t i = 0; i < first[n]; i++)
		to_first[row[i] + 2]++;
	for (uint32_t i = 0; i < n; i++)
		to_first[i + 1] += to_first[i];
	for (uint32_t column = 0; column < n; column++)
		for (uint32_t i = first[column]; i < first[column + 1]; i++)
			to_row[to_first[row[i] + 1]++] = column;
}

static void take_rows(struct pattern *p, struct elimination *m)
{
	uint32_t n = m->n, rows = m->column.n;
	_cleanup_free_ uint32_t *first = graph_numbers(n + 1, 0);
	_cleanup_free_ uint32_t *row = graph_numbers(rows, 0);

	vec_each (r, &m->column)
		*r = m->place[*r];
	*p = (struct pattern){
		.n = n,
		.place = m->place,
		.first = graph_numbers(n + 1, 0),
		.row = graph_numbers(rows, 0),
	};
	m->place = NULL;
	transpose(n, m->first, m->column.p, first, row);
	transpose(n, first, row, p->first, p->row);
}

int pattern_init(
	struct pattern *p, uint32_t n, const struct graph_edge *pair, size_t pairs, uint32_t last)
{
	struct elimination m;
	int r;

	elimination_init(&m, n, last);
	for (size_t i = 0; i < pairs; i++)
		make_near(&m, pair[i].from, pair[i].to);
	r = eliminate_all(&m);
	if (!r)
		take_rows(p, &m);
	elimination_deinit(&m);
	return r;
}

void pattern_deinit(struct pattern *p)
{
	free(p->place);
	free(p->first);
	free(p->row);
	*p = (struct pattern){0};
}

uint32_t pattern_slot(const struct pattern *p, uint32_t a, uint32_t b)
{
	uint32_t column = a < b ? a : b, row = a < b ? b : a;
	uint32_t low = p->first[column], high = p->first[column + 1];

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (p->row[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}
