/* Finds and makes records of contexts (context.h). No libc: only system calls. */
#include "rt/context.h"
#include "rt/runtime.h"
#include "rt/sys.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PAGE      4096
#define CHUNK     ((uint64_t)1 << 20) /* the file grows by whole ones */
#define MORE_MOST ((uint64_t)64 << 20)

/* One procedure that is looked for in a slot. */
struct wanted {
	uint64_t procedure;
	struct context_shape shape;
	struct context_record *made; /* but not yet in a slot */
};

static struct context_arena *arena(void)
{
	return (struct context_arena *)CONTEXT_ARENA;
}

static struct context_record *record_at(uint64_t address)
{
	return (struct context_record *)address;
}

static uint64_t read_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool replace(uint64_t *word, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(
		word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* It was made before the program was started (context/arena.h). */
static long open_file(void)
{
	return sys_call(SYS_openat, AT_FDCWD, (long)rt_header.path, O_RDWR | O_CLOEXEC, 0);
}

/* ---- room ---- */

/* A file beyond the limit would be a signal, one with holes on a full disk another. */
static bool grow_file(uint64_t from, uint64_t to)
{
	struct rlimit limit;
	struct stat st;
	long fd, result = sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);

	if (sys_failed(result) || limit.rlim_cur < to)
		return false;
	fd = open_file();
	if (sys_failed(fd))
		return false;
	result = sys_call(SYS_fstat, fd, (long)&st, 0, 0);
	if (!sys_failed(result) && (st.st_dev != arena()->device || st.st_ino != arena()->inode))
		result = -ESTALE;
	if (!sys_failed(result))
		result = sys_call(SYS_fallocate, fd, 0, (long)from, (long)(to - from));
	sys_close(fd);
	return !sys_failed(result);
}

static bool make_there(uint64_t end)
{
	uint64_t there = read_word(&arena()->there);
	uint64_t more = there / 4 < MORE_MOST ? there / 4 : MORE_MOST;
	uint64_t to = ((end + more) / CHUNK + 1) * CHUNK;

	if (end <= there)
		return true;
	if (arena()->full || to > CONTEXT_WINDOW || !grow_file(there, to)) {
		arena()->full = 1;
		return false;
	}
	while (there < to && !replace(&arena()->there, there, to))
		there = read_word(&arena()->there);
	return true;
}

/* Zeros; 0 when there is no room. */
static uint64_t take_room(uint64_t size)
{
	uint64_t at;

	if (arena()->full)
		return 0;
	size = (size + CONTEXT_LINE - 1) / CONTEXT_LINE * CONTEXT_LINE;
	at = __atomic_fetch_add(&arena()->used, size, __ATOMIC_RELAXED);
	return make_there(at + size) ? CONTEXT_ARENA + at : 0;
}

/* ---- records ---- */

static void set_record(
	struct context_record *r, uint64_t procedure, uint64_t parent, struct context_shape shape)
{
	r->procedure = procedure;
	r->body = (uint64_t)r;
	r->parent = parent;
	r->next = (uint64_t)r;
	r->counts = shape.counts;
	r->slots = shape.slots;
	for (uint32_t i = 0; i < shape.slots; i++)
		*context_slot(r, i) = (uint64_t)&r->nobody;
}

static struct context_record *owner_of(uint64_t content)
{
	struct context_record *r = record_at(content);

	if (r->procedure == CONTEXT_NOBODY)
		return record_at(content - offsetof(struct context_record, nobody));
	return record_at(r->parent);
}

/* Children of fork go on in their parent's tree: nobody else may have it then. */
static void look_at_root(struct context_root *root)
{
	uint64_t owner = read_word(&root->owner);
	uint64_t process = (uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0);

	if (owner != CONTEXT_SHARED && owner >> 32 != process)
		replace(&root->owner, owner, CONTEXT_SHARED);
}

/* The same procedure among those that are active: the paper's closing of recursion. */
static struct context_record *ancestor(struct context_record *from, uint64_t procedure)
{
	for (;;) {
		if (from->procedure == procedure)
			return from;
		if (!from->parent)
			break;
		from = record_at(from->parent);
	}
	if (from->procedure == CONTEXT_ROOT)
		look_at_root((struct context_root *)from);
	return NULL;
}

/* What entries look at is in one line of the cache with the words right before the record: of most
 * procedures all counters of paths. */
static uint64_t room_before(struct context_shape shape)
{
	uint64_t all = shape.counts * 8ul + CONTEXT_ALIGN + CONTEXT_LINE - 1;

	return all / CONTEXT_LINE * CONTEXT_LINE - CONTEXT_ALIGN;
}

static uint64_t room_from(struct context_shape shape)
{
	uint32_t far = shape.slots < CONTEXT_NEAR ? 0 : shape.slots - CONTEXT_NEAR;

	return sizeof(struct context_record) + far * 8ul;
}

static struct context_record *make_record(struct context_record *owner, const struct wanted *w)
{
	struct context_record *known = ancestor(owner, w->procedure), *r;
	struct context_shape shape = known ? (struct context_shape){0} : w->shape;
	uint64_t before = room_before(shape);
	uint64_t at = take_room(before + room_from(shape));

	if (!at)
		return NULL;
	r = record_at(at + before);
	set_record(r, w->procedure, (uint64_t)owner, shape);
	if (known) {
		r->procedure = -w->procedure;
		r->body = (uint64_t)known;
	}
	return r;
}

/* Made once, however often it has to be tried to put it into its slot. */
static bool have_record(struct wanted *w, struct context_record *owner)
{
	if (!w->made)
		w->made = make_record(owner, w);
	return w->made;
}

/* ---- slots ---- */

/* A site that called somebody else before: both get a place. False without room. */
static bool make_fan(uint64_t *slot, uint64_t content, struct context_record *owner)
{
	struct context_fan *fan = (struct context_fan *)take_room(sizeof *fan);

	if (!fan)
		return false;
	fan->kind = CONTEXT_FAN;
	fan->parent = (uint64_t)owner;
	for (uint32_t i = 0; i < CONTEXT_PLACES; i++)
		fan->place[i] = (uint64_t)&owner->nobody;
	fan->place[context_named(record_at(content)) % CONTEXT_PLACES] = content;
	replace(slot, content, (uint64_t)fan); /* or somebody else did */
	return true;
}

static struct context_record *find_in_ring(struct context_record *first, uint64_t procedure)
{
	struct context_record *r = first;

	do {
		if (context_named(r) == procedure)
			return r;
		r = record_at(read_word(&r->next));
	} while (r != first);
	return NULL;
}

static bool join_ring(struct context_record *first, struct context_record *new)
{
	uint64_t next = read_word(&first->next);

	new->next = next;
	return replace(&first->next, next, (uint64_t) new);
}

/* The record in a place of a fan; what was used last is in front. NULL: try again, or no room. */
static struct context_record *find_in_place(
	uint64_t *place, struct context_record *owner, struct wanted *w)
{
	uint64_t content = read_word(place);
	struct context_record *first = record_at(content), *found;

	found = first->procedure == CONTEXT_NOBODY ? NULL : find_in_ring(first, w->procedure);
	if (!found) {
		if (!have_record(w, owner))
			return NULL;
		if (first->procedure == CONTEXT_NOBODY)
			return replace(place, content, (uint64_t)w->made) ? w->made : NULL;
		if (!join_ring(first, w->made))
			return NULL;
		found = w->made;
	}
	__atomic_store_n(place, (uint64_t)found, __ATOMIC_RELEASE);
	return found;
}

static struct context_record *find_in_slot(uint64_t *slot, struct wanted *w)
{
	for (;;) {
		uint64_t content = read_word(slot);
		struct context_record *r = record_at(content), *owner = owner_of(content);

		if (context_named(r) == w->procedure)
			return r;
		if (owner->procedure == CONTEXT_LOST)
			return owner;
		if (r->procedure == CONTEXT_FAN) {
			struct context_fan *fan = (struct context_fan *)r;

			r = find_in_place(&fan->place[w->procedure % CONTEXT_PLACES], owner, w);
			if (r)
				return r;
		} else if (r->procedure != CONTEXT_NOBODY) {
			make_fan(slot, content, owner);
		} else if (have_record(w, owner)) {
			if (replace(slot, content, (uint64_t)w->made))
				return w->made;
		}
		if (arena()->full)
			return record_at(CONTEXT_ARENA + CONTEXT_LOST_AT);
	}
}

/* ---- paths ---- */

/* Made once, however often it has to be tried to put it into its place. */
static struct context_path *make_path(uint64_t number)
{
	struct context_path *p = (struct context_path *)take_room(sizeof *p);

	if (p)
		p->number = number;
	return p;
}

static struct context_path *find_path(uint64_t *place, uint64_t number)
{
	struct context_path *made = NULL;

	for (uint64_t hash = context_path_hash(number);;) {
		struct context_path *p = (struct context_path *)read_word(place);

		if (!p) {
			if (!made && !(made = make_path(number)))
				return NULL;
			if (replace(place, 0, (uint64_t)made))
				return made;
		} else if (p->number == number) {
			return p;
		} else {
			place = &p->child[hash >> 62];
			hash <<= 2;
		}
	}
}

/* ---- roots ---- */

static bool is_gone(uint64_t process, uint64_t thread)
{
	return sys_call(SYS_tgkill, (long)process, (long)thread, 0, 0) == -ESRCH;
}

/*
 * A root can be had when nobody comes back to it: its process has gone, or its thread and the
 * memory of its thread's word with it (a new thread on an old one's stack finds the old word and
 * goes on).
 */
static bool is_free(const struct context_root *r, uint64_t me, uint64_t thread)
{
	uint64_t owner = r->owner, process = owner >> 32;
	unsigned char resident;

	if (owner == CONTEXT_SHARED)
		return false;
	if (process != me >> 32)
		return is_gone(process, process);
	if (r->thread == thread)
		return true;
	return is_gone(process, (uint32_t)owner) &&
	       sys_call(SYS_mincore, (long)(r->thread / PAGE * PAGE), PAGE, (long)&resident, 0) ==
		       -ENOMEM;
}

static struct context_root *make_root(uint64_t me, uint64_t thread)
{
	uint64_t at = take_room(CONTEXT_ALIGN + sizeof(struct context_root));
	struct context_root *r = (struct context_root *)(at + CONTEXT_ALIGN);

	if (!at)
		return NULL;
	set_record(&r->record, CONTEXT_ROOT, 0, (struct context_shape){RT_METRICS - 1, 1});
	r->owner = me;
	r->thread = thread;
	do
		r->link = read_word(&arena()->roots);
	while (!replace(&arena()->roots, r->link, (uint64_t)r));
	return r;
}

static struct context_root *find_root(void)
{
	uint64_t me = (uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0) << 32 |
		      (uint64_t)sys_call(SYS_gettid, 0, 0, 0, 0);
	struct context_root *r = (struct context_root *)read_word(&arena()->roots);
	uint64_t thread = rt_thread_pointer();

	for (; r; r = (struct context_root *)r->link) {
		uint64_t owner = read_word(&r->owner);

		if (is_free(r, me, thread) && replace(&r->owner, owner, me)) {
			r->thread = thread;
			return r;
		}
	}
	return make_root(me, thread);
}

/* ---- the arena ---- */

/* By us, or by another image of this process. */
static bool is_mapped(void)
{
	unsigned char resident;

	return sys_call(SYS_mincore, CONTEXT_ARENA, PAGE, (long)&resident, 0) != -ENOMEM &&
	       arena()->magic == CONTEXT_MAGIC;
}

static bool have_arena(void)
{
	long fd, at;

	if (is_mapped())
		return true;
	fd = open_file();
	if (sys_failed(fd)) {
		rt_complain(rt_header.path, fd);
		return false;
	}
	at = sys_map(CONTEXT_ARENA, CONTEXT_WINDOW, MAP_FIXED_NOREPLACE, fd, 0);
	sys_close(fd);
	if (!sys_failed(at) && at != CONTEXT_ARENA) /* kernels that do not know the flag */
		sys_unmap((uint64_t)at, CONTEXT_WINDOW);
	if (is_mapped())
		return true;
	rt_complain(rt_header.path, sys_failed(at) ? at : -EBADMSG);
	return false;
}

/* A record for what is lost of this thread alone, in memory that nobody reads. */
static uint64_t *slot_in_vain(void)
{
	long at = sys_map(0, CONTEXT_FIRST, MAP_ANONYMOUS, -1, 0);
	struct context_record *r = record_at((uint64_t)at + CONTEXT_LOST_AT);

	if (sys_failed(at))
		__builtin_trap();
	set_record(r, CONTEXT_LOST, (uint64_t)r, (struct context_shape){0, CONTEXT_SLOTS_MAX});
	return context_slot(r, 0);
}

/* For a thread that has none yet. */
static uint64_t *first_slot(void)
{
	struct context_root *root;

	if (!have_arena())
		return slot_in_vain();
	root = find_root();
	return context_slot(root ? &root->record : record_at(CONTEXT_ARENA + CONTEXT_LOST_AT), 0);
}

/* ---- for programs ---- */

/* What is measured from here on. */
static void read_metrics(void)
{
	const struct rt_metrics *m = (const void *)((uint64_t)&rt_header + rt_header.metrics);
	uint64_t events = rt_header.metrics ? m->events : 0;
	uint64_t *words = (uint64_t *)(rt_thread_pointer() + RT_WORD(RT_WORD_CLOCK));

	for (unsigned i = 0; i < RT_METRICS; i++)
		words[i] = events >> i & 1 ? rt_metric(i) : __builtin_ia32_rdtsc();
}

uint64_t rt_context_enter(uint64_t number)
{
	const struct context_shape *shapes =
		(const void *)((uint64_t)&rt_header + rt_header.context.shapes);
	struct wanted w = {.procedure = rt_header.context.first + number, .shape = shapes[number]};
	uint64_t slot;

	__asm__("mov %%fs:%c1, %0" : "=r"(slot) : "i"(CONTEXT_WORD));
	if (!slot) {
		slot = (uint64_t)first_slot();
		read_metrics();
		__asm__ volatile("mov %0, %%fs:%c1" : : "r"(slot), "i"(CONTEXT_WORD) : "memory");
	}
	return (uint64_t)find_in_slot((uint64_t *)slot, &w);
}

uint64_t rt_context_path(uint64_t record, uint64_t number)
{
	struct context_record *r = record_at(record);
	struct context_path *p = NULL;

	if (r->procedure != CONTEXT_LOST) {
		p = find_path((uint64_t *)r - 1, number);
		r = record_at(CONTEXT_ARENA + CONTEXT_LOST_AT);
	}
	return (uint64_t)(p ? &p->count : (uint64_t *)r - CONTEXT_COUNTS_MAX);
}
