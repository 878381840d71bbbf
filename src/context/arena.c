#include "context/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "calls/tree.h"
#include "rt/context.h"

#define FIRST_ROOM ((uint64_t)1 << 20)

/* ---- making ---- */

/* The record for what is lost: all its slots are empty. */
static void put_lost(uint8_t *from)
{
	struct context_record *r = (struct context_record *)(from + CONTEXT_LOST_AT);
	uint64_t address = CONTEXT_ARENA + CONTEXT_LOST_AT;

	*r = (struct context_record){.procedure = CONTEXT_LOST,
		.body = address,
		.parent = address,
		.next = address,
		.slots = CONTEXT_SLOTS_MAX};
	for (uint32_t i = 0; i < CONTEXT_SLOTS_MAX; i++)
		*context_slot(r, i) = address + offsetof(struct context_record, nobody);
}

int context_arena_create(const char *path, struct err *e)
{
	_cleanup_free_ uint8_t *head = xcalloc(1, CONTEXT_FIRST);
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s: cannot be made", path);
	*(struct context_arena *)head = (struct context_arena){.magic = CONTEXT_MAGIC,
		.used = CONTEXT_FIRST,
		.there = FIRST_ROOM,
		.device = st.st_dev,
		.inode = st.st_ino};
	put_lost(head);
	rc = -posix_fallocate(fd, 0, FIRST_ROOM);
	if (!rc)
		rc = io_pwrite_full(fd, head, CONTEXT_FIRST, 0);
	return rc ? err_errno(e, rc, "%s: no room for contexts", path) : 0;
}

/* ---- reading ---- */

/* A record whose callees are being read. */
struct level {
	const struct context_record *record;
	uint64_t at;        /* its offset */
	uint32_t node;      /* in the tree, CALL_NONE for a root */
	uint32_t next_slot; /* then: a place of the fan in it, and where its ring goes on */
	uint32_t next_place;
	uint64_t next_ring, ring;
};

struct reading {
	const uint8_t *p;
	uint64_t n;
	const struct context_map *maps;
	size_t nmaps;
	uint64_t *keys; /* of their images */
	uint8_t *seen;  /* a bit for each place where an object can be */
	struct call_tree *tree;
	const struct context_sink *sink;
	struct context_summary *sum;
	VEC(struct level) stack;
};

/* An object of the given size, or NULL. */
static const void *object_at(const struct reading *r, uint64_t address, uint64_t size)
{
	uint64_t at = address - CONTEXT_ARENA;

	if (at % CONTEXT_ALIGN || at < CONTEXT_FIRST || at > r->n || size > r->n - at)
		return NULL;
	return r->p + at;
}

static const struct context_record *new_record(struct reading *r, uint64_t address)
{
	const struct context_record *record = object_at(r, address, sizeof *record);
	uint64_t at = address - CONTEXT_ARENA, bit = at / CONTEXT_ALIGN;

	if (!record || context_slot_at(record->slots) > r->n - at ||
		record->counts > (at - CONTEXT_FIRST) / 8 || r->seen[bit / 8] & 1u << bit % 8)
		return NULL;
	r->seen[bit / 8] |= (uint8_t)(1u << bit % 8);
	return record;
}

static const struct context_map *map_of(const struct reading *r, uint64_t procedure)
{
	for (size_t i = 0; i < r->nmaps; i++)
		if (procedure >= r->maps[i].first &&
			procedure - r->maps[i].first < r->maps[i].procedures.n)
			return &r->maps[i];
	return NULL;
}

static const struct context_procedure *procedure_of(
	const struct reading *r, uint64_t number, const struct context_map **map)
{
	*map = map_of(r, number);
	return *map ? &(*map)->procedures.p[number - (*map)->first] : NULL;
}

static struct call_place place_of(const struct reading *r, uint64_t number, uint64_t site)
{
	const struct context_map *map;
	const struct context_procedure *p = procedure_of(r, number, &map);

	return (struct call_place){.image = p ? r->keys[map - r->maps] : 0,
		.procedure = p ? p->start : number,
		.site = site};
}

static uint64_t site_of(const struct reading *r, const struct context_record *record, uint32_t slot)
{
	const struct context_map *map;
	const struct context_procedure *p = procedure_of(r, record->procedure, &map);

	return p && slot < p->slots ? map->sites.p[p->site + p->counts + slot].at : 0;
}

static uint32_t add_count(struct reading *r, uint32_t parent, struct call_place at, uint64_t count)
{
	uint32_t node = call_tree_child(r->tree, parent, &at);

	call_tree_node(r->tree, node)->count += count;
	return node;
}

/* ---- paths ---- */

static void give(struct reading *r, const struct context_ran *ran)
{
	if (r->sink && ran->count)
		r->sink->take(r->sink->arg, ran);
}

static void give_entries(struct reading *r, const struct context_map *map, size_t procedure,
	uint32_t node, uint64_t count)
{
	if (map->stride)
		give(r, &(struct context_ran){
				(size_t)(map - r->maps), procedure, node, 0, count, NULL});
}

/* Each object is come to once, so there are no circles. */
static int give_tree(struct reading *r, struct context_ran *ran, uint64_t root)
{
	VEC(uint64_t) left = {0};
	int rc = 0;

	*vec_add(&left) = root;
	while (left.n && !rc) {
		uint64_t address = left.p[--left.n], bit;
		const struct context_path *p = object_at(r, address, sizeof *p);

		if (!address)
			continue;
		bit = (address - CONTEXT_ARENA) / CONTEXT_ALIGN;
		if (!p || r->seen[bit / 8] & 1u << bit % 8) {
			rc = -EBADMSG;
			break;
		}
		r->seen[bit / 8] |= (uint8_t)(1u << bit % 8);
		ran->number = p->number;
		ran->count = p->count;
		ran->sums = p->sums;
		give(r, ran);
		for (int i = 0; i < 4; i++)
			*vec_add(&left) = p->child[i];
	}
	vec_deinit(&left);
	return rc;
}

static int give_paths(
	struct reading *r, const struct context_map *map, uint32_t node, const uint64_t *record)
{
	const struct context_record *head = (const struct context_record *)record;
	struct context_ran ran = {
		(size_t)(map - r->maps), head->procedure - map->first, node, 0, 0, NULL};
	const struct context_procedure *p = &map->procedures.p[ran.procedure];
	const uint64_t *words = record - p->paths;

	if (p->tree)
		return give_tree(r, &ran, *words);
	for (uint32_t i = 0; i + map->stride <= p->paths; i += map->stride) {
		ran.number = i / map->stride;
		ran.count = words[i];
		ran.sums = words + i + 1;
		give(r, &ran);
	}
	return 0;
}

/* ---- counts ---- */

/* Calls of procedures that themselves call nobody. */
static void read_counts(struct reading *r, const struct level *l)
{
	const struct context_map *map;
	const struct context_procedure *p = procedure_of(r, l->record->procedure, &map);
	const uint64_t *count = (const uint64_t *)l->record;

	if (!p)
		return;
	count -= context_map_before(map) + p->paths;
	for (uint32_t i = 0; i < p->counts; i++) {
		const struct context_site *s = &map->sites.p[p->site + i];

		if (!count[-1 - (int64_t)i])
			continue;
		r->sum->counted++;
		give_entries(r, map, s->callee,
			add_count(r, l->node, place_of(r, map->first + s->callee, s->at),
				count[-1 - (int64_t)i]),
			count[-1 - (int64_t)i]);
	}
}

static void enter_record(
	struct reading *r, const struct context_record *record, uint64_t address, uint32_t node)
{
	struct level *l = vec_add(&r->stack);

	*l = (struct level){.record = record, .at = address - CONTEXT_ARENA, .node = node};
	if (node != CALL_NONE)
		read_counts(r, l);
}

/* The record of a procedure, if it is active; NULL. */
static const struct level *active(const struct reading *r, uint64_t address, uint64_t procedure)
{
	vec_each (l, &r->stack)
		if (l->at == address - CONTEXT_ARENA)
			return l->record->procedure == procedure ? l : NULL;
	return NULL;
}

static int read_stand_in(
	struct reading *r, const struct context_record *record, uint32_t parent, uint64_t site)
{
	uint64_t procedure = context_named(record);
	struct call_place at = place_of(r, procedure, site);
	const struct level *body = active(r, record->body, procedure);
	const struct context_map *map;
	const struct context_procedure *p = procedure_of(r, procedure, &map);

	if (!body)
		return -EBADMSG;
	at.recursive = true;
	r->sum->stand_ins++;
	add_count(r, parent, at, record->count);
	if (p && !p->paths)
		give_entries(r, map, procedure - map->first, body->node, record->count);
	return 0;
}

/* Also a record that nothing was counted in yet. */
static int read_record(
	struct reading *r, uint64_t address, const struct level *owner, uint64_t site)
{
	const struct context_record *record = new_record(r, address);
	const struct context_map *map;
	const struct context_procedure *p;
	struct call_place at;
	uint32_t node;
	int rc = 0;

	if (!record || record->parent != CONTEXT_ARENA + owner->at ||
		context_named(record) < CONTEXT_PROCEDURES ||
		(record->body == address) != (record->procedure == context_named(record)))
		return -EBADMSG;
	if (record->body != address)
		return read_stand_in(r, record, owner->node, site);
	p = procedure_of(r, record->procedure, &map);
	if (p && (record->counts != (uint32_t)p->counts + p->paths + context_map_before(map) ||
			 record->slots != p->slots))
		return -EBADMSG;
	at = place_of(r, record->procedure, site);
	node = call_tree_child(r->tree, owner->node, &at);
	call_tree_node(r->tree, node)->count += record->count;
	call_tree_node(r->tree, node)->metrics[0] += record->metric;
	if (p && context_map_before(map))
		call_tree_node(r->tree, node)->metrics[1] += ((const uint64_t *)record)[-1];
	r->sum->records++;
	if (p && p->paths)
		rc = give_paths(r, map, node, (const uint64_t *)record);
	else if (p)
		give_entries(r, map, record->procedure - map->first, node, record->count);
	enter_record(r, record, address, node);
	return rc;
}

/* ---- what is in slots ---- */

static bool is_nobody(const struct level *l, uint64_t content)
{
	return content == CONTEXT_ARENA + l->at + offsetof(struct context_record, nobody);
}

/* The next of a ring; -EBADMSG. */
static int read_ring(struct reading *r, struct level *l)
{
	uint64_t address = l->next_ring;
	const struct context_record *record = object_at(r, address, sizeof *record);

	if (!record)
		return -EBADMSG;
	l->next_ring = record->next == l->ring ? 0 : record->next;
	return read_record(r, address, &(struct level){.at = l->at, .node = l->node},
		site_of(r, l->record, l->next_slot));
}

static int read_place(struct reading *r, struct level *l, const struct context_fan *fan)
{
	uint64_t content = fan->place[l->next_place];

	if (l->next_ring)
		return read_ring(r, l);
	if (l->ring || is_nobody(l, content)) {
		l->ring = 0;
		l->next_place++;
		return 0;
	}
	l->ring = l->next_ring = content;
	return content ? 0 : -EBADMSG;
}

static int read_fan(struct reading *r, struct level *l, const struct context_fan *fan)
{
	if (l->next_place < CONTEXT_PLACES)
		return read_place(r, l, fan);
	l->next_place = 0;
	l->next_slot++;
	return 0;
}

/* One step of the topmost record; records that it comes to are put on top. */
static int read_slot(struct reading *r, struct level *l)
{
	uint64_t content = *context_slot(l->record, l->next_slot);
	const struct context_fan *fan = object_at(r, content, sizeof(struct context_fan));
	uint32_t slot = l->next_slot;

	if (fan && fan->kind == CONTEXT_FAN)
		return fan->parent == CONTEXT_ARENA + l->at ? read_fan(r, l, fan) : -EBADMSG;
	l->next_slot++;
	if (is_nobody(l, content))
		return 0;
	return read_record(r, content, &(struct level){.at = l->at, .node = l->node},
		site_of(r, l->record, slot));
}

static int read_tree(struct reading *r, const struct context_root *root, uint64_t address)
{
	int rc = 0;

	enter_record(r, &root->record, address, CALL_NONE);
	while (r->stack.n && !rc) {
		struct level *top = &r->stack.p[r->stack.n - 1];

		if (top->next_slot < top->record->slots)
			rc = read_slot(r, top);
		else
			r->stack.n--;
	}
	return rc;
}

static int read_roots(struct reading *r, uint64_t address)
{
	int rc = 0;

	while (address && !rc) {
		const struct context_root *root = object_at(r, address, sizeof *root);

		if (!root || !new_record(r, address) || root->record.procedure != CONTEXT_ROOT ||
			root->record.slots != 1)
			return -EBADMSG;
		r->sum->roots++;
		r->sum->shared |= root->owner == CONTEXT_SHARED;
		rc = read_tree(r, root, address);
		address = root->link;
	}
	return rc;
}

/* Entries, and calls that only their callers count, unless these lie among paths. */
static uint64_t count_lost(const uint8_t *p, const struct context_map *map)
{
	const struct context_record *lost = (const struct context_record *)(p + CONTEXT_LOST_AT);
	const uint64_t *counts = (const uint64_t *)lost - CONTEXT_COUNTS_MAX;
	uint64_t n = lost->count;

	if (!map || map->stride)
		return n;
	for (size_t i = 0; i < CONTEXT_COUNTS_MAX - context_map_before(map); i++)
		n += counts[i];
	return n;
}

static void find_keys(struct reading *r)
{
	r->keys = xcalloc(r->nmaps + 1, sizeof *r->keys);
	for (size_t i = 0; i < r->nmaps; i++)
		r->keys[i] = context_map_key(&r->maps[i]);
}

int context_arena_read(const void *p, size_t n, const struct context_map *maps, size_t nmaps,
	struct call_tree *out, const struct context_sink *sink, struct context_summary *sum)
{
	const struct context_arena *head = p;
	struct reading r = {
		.p = p, .maps = maps, .nmaps = nmaps, .tree = out, .sink = sink, .sum = sum};
	int rc;

	*sum = (struct context_summary){0};
	if (n < CONTEXT_FIRST || head->magic != CONTEXT_MAGIC)
		return -EBADMSG;
	r.n = head->used < n ? head->used : n;
	if (r.n < CONTEXT_FIRST)
		return -EBADMSG;
	sum->bytes = r.n;
	sum->lost = count_lost(p, nmaps ? &maps[0] : NULL);
	r.seen = xcalloc(1, r.n / CONTEXT_ALIGN / 8 + 1);
	find_keys(&r);
	rc = read_roots(&r, head->roots);
	free(r.seen);
	free(r.keys);
	vec_deinit(&r.stack);
	return rc;
}

int context_arena_load(const char *path, const struct context_map *maps, size_t nmaps,
	struct call_tree *out, const struct context_sink *sink, struct context_summary *sum,
	struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {0};
	void *p;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s: cannot be read", path);
	p = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (p == MAP_FAILED)
		return err_errno(e, -errno, "%s: cannot be read", path);
	rc = context_arena_read(p, (size_t)st.st_size, maps, nmaps, out, sink, sum);
	munmap(p, (size_t)st.st_size);
	return rc ? err_set(e, rc, "%s: the contexts in it are damaged", path) : 0;
}
