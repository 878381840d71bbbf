#include "cmd/measuring.h"

#include "cmd/cmd.h"
#include "edit/measure.h"
#include "paths/calibrate.h"

#include <inttypes.h>
#include <string.h>

void measuring_calibrate(struct measuring *m)
{
	*m = (struct measuring){paths_calibrate(), paths_calibrate_reading()};
}

/* Which metrics there are, in the order of what was read, and in that of the profile. */
static void name_metrics(
	const struct metric_names *measured, struct metric_names *read, struct metric_names *out)
{
	*read = *out = *measured;
	if (!measured->n)
		return;
	strcpy(read->name[read->n++], METRIC_READINGS);
	metric_add(out, METRIC_READINGS);
	if (read->n == METRICS_MOST || metric_find(measured, MEASURE_CLOCK) < 0)
		return;
	strcpy(read->name[read->n++], METRIC_MEASURING);
	metric_add(out, METRIC_MEASURING);
}

/* Stretches of the clock become what measuring has added to them. */
void measuring_settle(const struct measuring *m, const struct metric_names *measured,
	struct path_rows *rows, struct metric_names *names)
{
	struct metric_names read;

	name_metrics(measured, &read, names);
	vec_each (row, &rows->list) {
		int at = metric_find(&read, METRIC_MEASURING);

		if (at >= 0)
			row->metrics[at] = (uint64_t)((double)row->metrics[at] * m->each);
		metric_reorder(&read, row->metrics, names, row->metrics);
	}
}

/* The floor: what readings alone cost, when nothing waits for anything else. */
static void say_readings(const struct measuring *m, const struct paths_read_summary *sum)
{
	int clock = metric_find(&sum->metrics, MEASURE_CLOCK);
	double stretches = m->each * (double)sum->stretches;

	if (clock < 0) {
		cmd_note("metrics were read %" PRIu64 " times", sum->readings);
		return;
	}
	cmd_note("the clock was read %" PRIu64 " times, at %.1f ticks each: %.0f million ticks at "
		 "least",
		sum->readings, m->reading, m->reading * (double)sum->readings / 1e6);
	cmd_note("what a path took includes about %.0f ticks of measuring, each time, and as much "
		 "for each call: %.0f%% of all ticks",
		m->each, sum->sums[clock] ? 100 * stretches / (double)sum->sums[clock] : 0);
}

void measuring_say(const struct measuring *m, const struct paths_read_summary *sum)
{
	if (sum->metrics.n)
		say_readings(m, sum);
	if (sum->unmeasured)
		cmd_note("%" PRIu64
			 " procedures have no room for readings: they are counted, and not "
			 "measured",
			sum->unmeasured);
}
