#include "collect/attribute_sums.h"

#include "base/mem.h"
#include "collect/process.h"

#include <string.h>

enum {
	PCS_MOST = 1 << 20,     /* entries; 11 to 22 MB, as full as their tables are */
	TOTALS_MOST = 96 << 10, /* rows of single threads; more are summed by name */
	WHO_MOST = 64 << 10,
	PCS_ENOUGH = 256 << 10, /* entries: 3 to 5 MB */
	TOTALS_ENOUGH = 48 << 10,
	NAMES_MOST = 16 << 10,
	FOLD_ABOVE = 8 << 10, /* rows of totals; below, every process keeps its own */
	FOLD_BELOW = 32,      /* samples of a process */
};

#define OTHER_NAMES "[other]"

struct name_entry {
	char comm[PROCFS_COMM];
	uint32_t who;
};

#define TOTAL_KEY offsetof(struct sum_total, thread)

void sums_init(struct sums *s, bool by_process)
{
	*s = (struct sums){.by_process = by_process, .turn = 1};
	pcs_init(&s->pcs);
	hmap_init(&s->totals, sizeof(struct sum_total), TOTAL_KEY);
	hmap_init(&s->names, sizeof(struct name_entry), sizeof(char[PROCFS_COMM]));
}

void sums_deinit(struct sums *s)
{
	pcs_deinit(&s->pcs);
	hmap_deinit(&s->totals);
	hmap_deinit(&s->names);
	vec_deinit(&s->who);
	vec_deinit(&s->free_who);
	strtab_deinit(&s->strings);
}

static uint32_t new_who(struct sums *s)
{
	if (s->free_who.n)
		return s->free_who.p[--s->free_who.n];
	vec_add(&s->who);
	return (uint32_t)s->who.n - 1;
}

static uint32_t name_who(struct sums *s, const char *comm)
{
	char key[PROCFS_COMM] = {0};
	struct name_entry *entry;
	bool fresh;

	memcpy(key, comm, strnlen(comm, sizeof key - 1));
	if (s->names.n >= NAMES_MOST && !hmap_get(&s->names, key)) {
		memset(key, 0, sizeof key);
		strcpy(key, OTHER_NAMES);
	}
	entry = hmap_put(&s->names, key, &fresh);
	if (fresh) {
		entry->who = new_who(s);
		s->who.p[entry->who] = (struct who){.name = entry->who};
		memcpy(s->who.p[entry->who].comm, key, sizeof key);
	}
	return entry->who;
}

uint32_t sums_who(struct sums *s, struct process *p)
{
	uint32_t n;

	if (p->filed_turn == s->turn && s->who.p[p->filed].serial == p->serial)
		return p->filed;
	n = name_who(s, p->comm);
	if (s->who.n - s->free_who.n < WHO_MOST) {
		uint32_t name = n;

		n = new_who(s);
		s->who.p[n] = (struct who){
			.pid = p->pid, .serial = p->serial, .started = p->started, .name = name};
		memcpy(s->who.p[n].comm, p->comm, sizeof p->comm);
	}
	p->filed = n;
	p->filed_turn = s->turn;
	return n;
}

/* By name when there are too many. */
static struct sum_total *total_row(struct sums *s, const struct sum_sample *x, bool *fresh)
{
	struct sum_total key = {.who = x->who,
		.tid = x->tid,
		.image = x->image,
		.cgroup_id = x->cgroup_id,
		.cpu = (uint16_t)x->cpu,
		.event = x->event};

	if (s->totals.n >= TOTALS_MOST && !hmap_get(&s->totals, &key)) {
		key.who = s->who.p[x->who].name;
		key.tid = 0;
	}
	return hmap_put(&s->totals, &key, fresh);
}

struct sum_total *sums_add(struct sums *s, const struct sum_sample *x, bool *fresh)
{
	struct who *who = &s->who.p[x->who];
	uint32_t filed = s->by_process ? x->who : who->name;
	struct sum_total *row;

	if (!pcs_add(&s->pcs, x->image, filed | (uint32_t)x->event << SUM_EVENT_SHIFT, x->offset,
		    x->count, PCS_MOST))
		return NULL;
	who->samples += x->count;
	row = total_row(s, x, fresh);
	row->samples += x->count;
	return row;
}

static bool folds(const struct sums *s, const struct who *who, const struct process_table *t)
{
	return who->serial && who != &s->who.p[who->name] && who->samples < FOLD_BELOW &&
	       process_ended(t, who->pid, who->serial);
}

static void fold_row(struct sums *s, struct hmap *into, const struct sum_total *row, bool by_name)
{
	struct sum_total key = *row, *to;
	bool fresh;

	if (by_name) {
		key.who = s->who.p[row->who].name;
		key.tid = 0;
	}
	to = hmap_put(into, &key, &fresh);
	if (fresh) {
		to->thread =
			by_name ? strtab_add(&s->strings, s->who.p[row->who].comm) : row->thread;
		to->cgroup = row->cgroup;
	}
	to->samples += row->samples;
}

void sums_fold(struct sums *s, const struct process_table *t)
{
	_cleanup_free_ bool *fold = NULL;
	struct hmap into;

	if (s->by_process || s->totals.n < FOLD_ABOVE)
		return;
	fold = xcalloc(s->who.n, sizeof *fold);
	for (size_t i = 0; i < s->who.n; i++)
		fold[i] = folds(s, &s->who.p[i], t);
	hmap_init(&into, sizeof(struct sum_total), TOTAL_KEY);
	for (const struct sum_total *row = NULL; (row = hmap_next(&s->totals, row));)
		fold_row(s, &into, row, fold[row->who]);
	hmap_deinit(&s->totals);
	s->totals = into;
	for (size_t i = 0; i < s->who.n; i++) {
		if (!fold[i])
			continue;
		s->who.p[i] = (struct who){0};
		*vec_add(&s->free_who) = (uint32_t)i;
	}
}

void sums_clear(struct sums *s)
{
	pcs_clear(&s->pcs);
	hmap_clear(&s->totals);
	hmap_clear(&s->names);
	vec_deinit(&s->who);
	vec_deinit(&s->free_who);
	strtab_deinit(&s->strings);
	s->turn++;
}

bool sums_full(const struct sums *s)
{
	return s->pcs.n >= PCS_ENOUGH || s->totals.n >= TOTALS_ENOUGH;
}

size_t sums_memory(const struct sums *s)
{
	return pcs_memory(&s->pcs) +
	       s->totals.slots * (sizeof(struct sum_total) + sizeof(uint32_t)) +
	       s->names.slots * (sizeof(struct name_entry) + sizeof(uint32_t)) +
	       s->who.space * sizeof *s->who.p + s->free_who.space * sizeof *s->free_who.p +
	       s->strings.space * sizeof(char *) + s->strings.nslots * sizeof(uint32_t);
}
