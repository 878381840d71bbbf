#include "flow/solver_internal.h"

#include <float.h>

/*
 * Takes a column out of the chain: ways through it become ways past it. Its probability to go on
 * is a sum and not 1 less the one to stay, so nothing cancels (Grassmann, Taksar and Heyman).
 */
static void take_out(
	const struct pattern *p, uint32_t column, double *down, double *up, double *out)
{
	uint32_t first = p->first[column], end = p->first[column + 1];
	double on = out[column];

	for (uint32_t i = first; i < end; i++)
		on += down[i];
	if (on < DBL_MIN)
		on = DBL_MIN;
	for (uint32_t i = first; i < end; i++) {
		uint32_t slot = p->first[p->row[i]];

		up[i] /= on;
		out[p->row[i]] += up[i] * out[column];
		for (uint32_t j = i + 1; j < end; j++) {
			while (p->row[slot] != p->row[j])
				slot++;
			down[slot] += up[i] * down[j];
			up[slot] += up[j] / on * down[i];
		}
	}
}

void chain_solve(const struct pattern *p, double *down, double *up, double *out, double *flow)
{
	for (uint32_t column = 0; column + 1 < p->n; column++)
		take_out(p, column, down, up, out);
	flow[p->n - 1] = 1;
	for (uint32_t column = p->n - 1; column-- > 0;) {
		flow[column] = 0;
		for (uint32_t i = p->first[column]; i < p->first[column + 1]; i++)
			flow[column] += flow[p->row[i]] * up[i];
	}
}
