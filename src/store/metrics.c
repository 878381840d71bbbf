#include "store/metrics.h"

#include "base/buf.h"

#include <errno.h>
#include <string.h>

bool metric_is_beside(const char *name)
{
	return !strcmp(name, METRIC_READINGS) || !strcmp(name, METRIC_MEASURING);
}

const char *metric_first(const struct metric_names *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (!metric_is_beside(m->name[i]))
			return m->name[i];
	return NULL;
}

int metric_find(const struct metric_names *m, const char *name)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (!strcmp(m->name[i], name))
			return (int)i;
	return -1;
}

bool metric_add(struct metric_names *m, const char *name)
{
	size_t size = strlen(name) + 1;
	uint32_t at = m->n;

	if (size == 1 || size > METRIC_NAME)
		return false;
	if (metric_find(m, name) >= 0)
		return true;
	if (m->n == METRICS_MOST)
		return false;
	for (; at && strcmp(m->name[at - 1], name) > 0; at--)
		memcpy(m->name[at], m->name[at - 1], METRIC_NAME);
	memset(m->name[at], 0, METRIC_NAME);
	memcpy(m->name[at], name, size);
	m->n++;
	return true;
}

void metric_unite(
	const struct metric_names *a, const struct metric_names *b, struct metric_names *out)
{
	uint32_t i = 0, j = 0;

	*out = (struct metric_names){0};
	while (out->n < METRICS_MOST && (i < a->n || j < b->n)) {
		int order = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->name[i], b->name[j]);

		memcpy(out->name[out->n++], order <= 0 ? a->name[i] : b->name[j], METRIC_NAME);
		i += order <= 0;
		j += order >= 0;
	}
}

void metric_reorder(const struct metric_names *from, const uint64_t *values,
	const struct metric_names *to, uint64_t *out)
{
	uint64_t moved[METRICS_MOST] = {0};

	for (uint32_t i = 0; i < from->n; i++) {
		int at = metric_find(to, from->name[i]);

		if (at >= 0)
			moved[at] = values[i];
	}
	memcpy(out, moved, sizeof moved);
}

void metric_names_put(const struct metric_names *m, struct buf *out)
{
	buf_u8(out, (uint8_t)m->n);
	for (uint32_t i = 0; i < m->n; i++)
		buf_str(out, m->name[i]);
}

int metric_names_read(struct metric_names *m, struct cursor *c)
{
	uint8_t n = cursor_u8(c);

	*m = (struct metric_names){0};
	if (n > METRICS_MOST)
		return -EBADMSG;
	for (; m->n < n; m->n++) {
		const char *name = cursor_str(c);
		size_t size = strlen(name) + 1;

		if (c->failed || size == 1 || size > METRIC_NAME ||
			(m->n && strcmp(m->name[m->n - 1], name) >= 0))
			return -EBADMSG;
		memcpy(m->name[m->n], name, size);
	}
	return c->failed ? -EBADMSG : 0;
}

uint64_t metric_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
