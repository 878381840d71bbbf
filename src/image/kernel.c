#include "image/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/io.h"
#include "image/elf_file.h"
#include "image/image_internal.h"
#include "image/kallsyms.h"
#include "image/symbols.h"

#define KERNEL_PATH "[kernel]"
#define KERNEL_HALF (UINT64_C(1) << 63) /* of the address space, as the kernel sees it */

enum {
	PAGE = 4096,
	MODULES_TEXT_MAX = 1 << 20,
	NOTES_MAX = 1 << 14,
	NAME_SIZE_MAX = (1 << 14) - 1,
	BPF_SIZE_MAX = 1 << 20, /* of the last program before a hole */
	PATIENCE_MAX = 1 << 20,
};

struct module {
	char *name; /* with brackets */
	struct image *im;
	bool made; /* by the kernel itself, [bpf] and others: offsets are addresses */
	bool here; /* seen in the last reading */
	uint64_t start, end;
};

struct kernel {
	char *root; /* NULL: of a copy of kallsyms; nothing else of that machine is here */
	bool hidden;
	uint64_t text, text_end, init, init_end;
	struct image *vmlinux;
	VEC(struct module) modules; /* in order of appearance; images stay when their module goes */
	VEC(uint32_t) by_start;     /* the loaded ones */
	uint64_t signature;         /* of /proc/modules */
	uint64_t symbols;           /* of the symbols that are not the kernel's own */
	uint64_t misses, patience;  /* addresses that nothing covered, and how many are too many */
};

/* A symbol while kallsyms is read. */
struct raw_symbol {
	uint64_t address;
	uint32_t name;
	uint16_t name_size : 14, rank : 2;
	uint16_t module; /* 0: the kernel itself, else one more than in modules */
};

struct reading {
	struct kernel *k;
	bool modules_only;
	VEC(struct raw_symbol) list;
	struct buf names;
	bool any_address;
};

/* ---- reading kallsyms ---- */

static uint16_t module_number(struct kernel *k, const char *name)
{
	if (!*name)
		return 0;
	size_t i = k->modules.n; /* symbols of one module follow each other: the last is likely */
	while (i > 0 && strcmp(k->modules.p[i - 1].name, name))
		i--;
	if (!i && k->modules.n < UINT16_MAX - 1) {
		*vec_add(&k->modules) = (struct module){.name = xstrdup(name)};
		i = k->modules.n;
	}
	return (uint16_t)i;
}

/* Where the linker script begins and ends things; true when the name is such a marker. */
static bool note_marker(struct kernel *k, const struct kallsym *s)
{
	const struct {
		const char *name;
		uint64_t *address;
	} markers[] = {{"_text", &k->text}, {"_etext", &k->text_end}, {"_sinittext", &k->init},
		{"_einittext", &k->init_end}};
	for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
		if (!strcmp(s->name, markers[i].name)) {
			*markers[i].address = s->address;
			return true;
		}
	}
	if (!strcmp(s->name, "_stext")) {
		k->text = k->text ? k->text : s->address;
		return true;
	}
	return strstr(s->name, "text_start") || strstr(s->name, "text_end");
}

static void gather(void *arg, const struct kallsym *s)
{
	struct reading *r = arg;
	bool own = !*s->module;
	if (!s->address || (own && r->modules_only))
		return;
	r->any_address = true;
	bool marker = own && *s->name == '_' && note_marker(r->k, s);
	if (marker || !strchr("TtWw", s->type))
		return;
	size_t n = strlen(s->name);
	struct raw_symbol raw = {
		.address = s->address,
		.name = (uint32_t)r->names.n,
		.name_size = (uint16_t)(n < NAME_SIZE_MAX ? n : NAME_SIZE_MAX),
		.rank = s->type == 'T'   ? 0
			: s->type == 't' ? 2
					 : 1,
		.module = module_number(r->k, s->module),
	};
	if ((raw.module == 0) != own || r->names.n > UINT32_MAX - 2 * NAME_SIZE_MAX)
		return;
	buf_put(&r->names, s->name, raw.name_size);
	*vec_add(&r->list) = raw;
}

static int compare_raw(const void *x, const void *y, void *arg)
{
	const struct raw_symbol *a = x, *b = y;
	const char *names = arg;
	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return symbol_name_compare(
		a->rank, names + a->name, a->name_size, b->rank, names + b->name, b->name_size);
}

static void sort_range(struct reading *r, size_t from, size_t to)
{
	if (to - from > 1)
		qsort_r(r->list.p + from, to - from, sizeof *r->list.p, compare_raw, r->names.p);
}

/* The kernel lists its own symbols by address, and few of them share one: only those of modules,
 * which follow, are to be sorted. */
static void sort_symbols(struct reading *r)
{
	const struct raw_symbol *s = r->list.p;
	size_t n = r->list.n, same = 0, i = 0;

	for (; i < n && !s[i].module && (!i || s[i].address >= s[i - 1].address); i++) {
		if (s[i].address != s[same].address) {
			sort_range(r, same, i);
			same = i;
		}
	}
	sort_range(r, same, i);
	for (size_t k = i; k < n; k++) {
		if (!s[k].module)
			i = 0;
	}
	sort_range(r, i, n);
}

static int read_kallsyms(struct reading *r, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* as if all was hidden */
	int result = kallsyms_read(fd, gather, r);
	sort_symbols(r);
	return result;
}

/* ---- identity ---- */

static void read_build_id(const char *root, const char *path, struct image_id *id)
{
	_cleanup_free_ char *full = xasprintf("%s%s", root, path);
	struct buf notes = {0};
	if (io_read_file(AT_FDCWD, full, NOTES_MAX, &notes) == 0)
		notes_build_id(notes.p, notes.n, 4, id);
	buf_deinit(&notes);
}

/* ---- tables ---- */

/* Symbols [i, end) as rows; each ends where the next begins, the last at `last_end`. */
static void add_rows(struct image *im, const struct reading *r, size_t i, size_t end, uint64_t base,
	uint64_t last_end, uint64_t size_max)
{
	const struct raw_symbol *s = r->list.p;
	while (i < end) {
		size_t next = i + 1;
		while (next < end && s[next].address == s[i].address)
			next++;
		uint64_t stop = next < end ? s[next].address : last_end;
		uint64_t size = stop > s[i].address ? stop - s[i].address : 0;
		procedures_add(&im->procedures, s[i].address - base,
			size < size_max ? size : size_max, PROCEDURE_SYMBOL,
			(const char *)r->names.p + s[i].name, s[i].name_size);
		i = next;
	}
}

static void add_segment(struct image *im, uint64_t offset, uint64_t size, uint64_t vaddr)
{
	*vec_add(&im->segments) = (struct segment){.offset = offset, .size = size, .vaddr = vaddr};
}

/* The first symbol of the module at or above an address. */
static size_t find_symbol(const struct reading *r, uint16_t module, uint64_t address)
{
	size_t low = 0, high = r->list.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct raw_symbol *s = &r->list.p[middle];
		if (s->module < module || (s->module == module && s->address < address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_vmlinux_range(
	struct kernel *k, const struct reading *r, uint64_t start, uint64_t end)
{
	uint64_t offset = start - k->text;
	if (start >= end)
		return;
	add_segment(k->vmlinux, offset, end - start, KERNEL_LINK_BASE + offset);
	procedures_add_area(&k->vmlinux->procedures, KERNEL_LINK_BASE + offset, end - start);
	add_rows(k->vmlinux, r, find_symbol(r, 0, start), find_symbol(r, 0, end), k->vmlinux->bias,
		end, UINT64_MAX);
}

/* Where the kernel does not say where its text is, it is where its symbols are. */
static void find_text(struct kernel *k, const struct reading *r)
{
	size_t n = find_symbol(r, 1, 0);
	if (!k->text && n)
		k->text = r->list.p[0].address;
	if (k->text_end <= k->text && n)
		k->text_end = (r->list.p[n - 1].address | (PAGE - 1)) + 1;
	if (k->init < k->text_end)
		k->init = k->init_end = 0;
}

static void make_vmlinux(struct kernel *k, const struct reading *r)
{
	struct image *im = k->vmlinux = image_create(IMAGE_KERNEL, KERNEL_PATH);
	im->has_functions = true;
	if (k->hidden) {
		add_segment(im, KERNEL_HALF, KERNEL_HALF - 1, KERNEL_HALF);
		procedures_add_area(&im->procedures, KERNEL_HALF, KERNEL_HALF - 1);
	} else {
		find_text(k, r);
		im->bias = k->text - KERNEL_LINK_BASE;
		if (k->root) {
			im->root = xstrdup(k->root);
			read_build_id(k->root, "/sys/kernel/notes", &im->id);
		}
		add_vmlinux_range(k, r, k->text, k->text_end);
		add_vmlinux_range(k, r, k->init, k->init_end);
	}
	procedures_finish(&im->procedures);
}

/* ---- modules ---- */

/*
 * The names and addresses in /proc/modules ("NAME SIZE REFS USERS STATE 0xADDRESS"); reference
 * counts change all the time and do not count.
 */
struct loaded {
	char name[80];
	uint64_t address;
};
typedef VEC(struct loaded) loaded_list;

static uint64_t read_modules(const struct kernel *k, loaded_list *out)
{
	_cleanup_free_ char *path = xasprintf("%s/proc/modules", k->root ? k->root : "");
	struct buf text = {0};
	uint64_t signature = 0;
	if (k->root && io_read_file(AT_FDCWD, path, MODULES_TEXT_MAX, &text) == 0) {
		char *save, *line = strtok_r((char *)buf_cstr(&text), "\n", &save);
		for (; line; line = strtok_r(NULL, "\n", &save)) {
			struct loaded m = {0};
			unsigned long long address;
			if (sscanf(line, "%63s %*s %*s %*s %*s 0x%llx", m.name + 1, &address) != 2)
				continue;
			m.name[0] = '[';
			strcat(m.name, "]");
			m.address = address;
			*vec_add(out) = m;
			uint64_t pair[2] = {signature, hash_bytes(&m, sizeof m)};
			signature = hash_bytes(pair, sizeof pair);
		}
	}
	buf_deinit(&text);
	return signature;
}

static uint64_t loaded_address(const loaded_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!strcmp(list->p[i].name, name))
			return list->p[i].address;
	}
	return 0;
}

static struct image *module_image(struct kernel *k, struct module *m)
{
	if (!m->im) {
		m->im = image_create(IMAGE_MODULE, m->name);
		m->im->has_functions = true;
		m->im->root = k->root ? xstrdup(k->root) : NULL;
		_cleanup_free_ char *notes = xasprintf("/sys/module/%.*s/notes/.note.gnu.build-id",
			(int)strlen(m->name) - 2, m->name + 1);
		if (k->root && !m->made && !strchr(m->name, '/'))
			read_build_id(k->root, notes, &m->im->id);
	}
	procedures_deinit(&m->im->procedures);
	m->im->segments.n = 0;
	return m->im;
}

/* The text of a module begins at the address that /proc/modules shows, on a page of its own. */
static void make_module(struct kernel *k, struct module *m, const struct reading *r, size_t first,
	size_t end, const loaded_list *loaded)
{
	uint64_t low = r->list.p[first].address, high = r->list.p[end - 1].address;
	uint64_t address = loaded_address(loaded, m->name);
	m->made = !address && (!strcmp(m->name, "[bpf]") || !strncmp(m->name, "[__builtin__", 12));
	m->start = address && address <= low ? address : low & ~(uint64_t)(PAGE - 1);
	m->end = (high | (PAGE - 1)) + 1;
	m->here = true;
	struct image *im = module_image(k, m);
	if (m->made) {
		im->bias = 0;
		add_segment(im, KERNEL_HALF, KERNEL_HALF - 1, KERNEL_HALF);
		add_rows(im, r, first, end, 0, m->end, BPF_SIZE_MAX);
	} else {
		im->bias = m->start;
		add_segment(im, 0, m->end - m->start, 0);
		procedures_add_area(&im->procedures, 0, m->end - m->start);
		add_rows(im, r, first, end, m->start, m->end, UINT64_MAX);
	}
	procedures_finish(&im->procedures);
}

static int compare_starts(const void *x, const void *y, void *arg)
{
	const struct module *modules = arg;
	uint64_t a = modules[*(const uint32_t *)x].start, b = modules[*(const uint32_t *)y].start;
	return a < b ? -1 : a > b;
}

static void make_modules(struct kernel *k, const struct reading *r)
{
	loaded_list loaded = {0};
	k->signature = read_modules(k, &loaded);
	vec_each (m, &k->modules)
		m->here = false;
	for (size_t i = find_symbol(r, 1, 0); i < r->list.n;) {
		uint16_t module = r->list.p[i].module;
		size_t end = find_symbol(r, module + 1, 0);
		make_module(k, &k->modules.p[module - 1], r, i, end, &loaded);
		i = end;
	}
	vec_deinit(&loaded);

	k->by_start.n = 0;
	for (size_t i = 0; i < k->modules.n; i++) {
		if (k->modules.p[i].here && !k->modules.p[i].made)
			*vec_add(&k->by_start) = (uint32_t)i;
	}
	if (k->by_start.n)
		qsort_r(k->by_start.p, k->by_start.n, sizeof *k->by_start.p, compare_starts,
			k->modules.p);
}

/* ---- public ---- */

void kernel_destroy(struct kernel *k)
{
	if (!k)
		return;
	image_destroy(k->vmlinux);
	vec_each (m, &k->modules) {
		image_destroy(m->im);
		free(m->name);
	}
	vec_deinit(&k->modules);
	vec_deinit(&k->by_start);
	free(k->root);
	free(k);
}

static void reading_deinit(struct reading *r)
{
	vec_deinit(&r->list);
	buf_deinit(&r->names);
}

static int create(const char *root, const char *kallsyms, struct kernel **out, struct err *e)
{
	struct kernel *k = xcalloc(1, sizeof *k);
	k->root = root ? xstrdup(root) : NULL;
	k->patience = 1;
	_cleanup_(reading_deinit) struct reading r = {.k = k};
	int result = read_kallsyms(&r, kallsyms);
	if (result < 0) {
		kernel_destroy(k);
		return err_errno(e, result, "%s: cannot read it", kallsyms);
	}
	k->hidden = !r.any_address || !r.list.n;
	make_vmlinux(k, &r);
	if (!k->hidden)
		make_modules(k, &r);
	*out = k;
	return 0;
}

int kernel_create(const char *root, struct kernel **out, bool *hidden, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s/proc/kallsyms", root);
	int result = create(root, path, out, e);
	if (result == 0)
		*hidden = (*out)->hidden;
	return result;
}

int kernel_create_copy(
	const char *kallsyms, const struct image_id *id, struct kernel **out, struct err *e)
{
	struct kernel *k;
	int result = create(NULL, kallsyms, &k, e);
	if (result < 0)
		return result;
	if (k->hidden) {
		kernel_destroy(k);
		return err_set(e, -ENOENT, "%s: there are no addresses in it", kallsyms);
	}
	k->vmlinux->id = *id;
	*out = k;
	return 0;
}

static const struct module *module_at(const struct kernel *k, uint64_t address)
{
	size_t low = 0, high = k->by_start.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (k->modules.p[k->by_start.p[middle]].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct module *m = low ? &k->modules.p[k->by_start.p[low - 1]] : NULL;
	return m && address < m->end ? m : NULL;
}

struct image *kernel_image_at(struct kernel *k, uint64_t address, uint64_t *offset)
{
	*offset = k->hidden ? address : address - k->text;
	if (k->hidden || (address >= k->text && address < k->text_end) ||
		(address >= k->init && address < k->init_end))
		return k->vmlinux;
	const struct module *found = module_at(k, address);
	if (found) {
		*offset = address - found->start;
		return found->im;
	}
	vec_each (m, &k->modules) {
		if (m->here && m->made && image_procedure_at(m->im, address)) {
			*offset = address;
			return m->im;
		}
	}
	k->misses++;
	return k->vmlinux;
}

struct image *kernel_image(struct kernel *k, size_t n)
{
	if (n == 0)
		return k->vmlinux;
	vec_each (m, &k->modules) {
		if (m->here && m->im && --n == 0)
			return m->im;
	}
	return NULL;
}

/* BPF programs come and go unseen: an address that nothing covers may be a new one. */
int kernel_refresh(struct kernel *k)
{
	loaded_list loaded = {0};
	uint64_t signature = k->hidden ? k->signature : read_modules(k, &loaded);
	vec_deinit(&loaded);
	if (signature == k->signature && k->misses < k->patience)
		return -EAGAIN;

	_cleanup_(reading_deinit) struct reading r = {.k = k, .modules_only = true};
	_cleanup_free_ char *path = xasprintf("%s/proc/kallsyms", k->root);
	int result = read_kallsyms(&r, path);
	if (result < 0)
		return result;
	uint64_t symbols = hash_bytes(r.list.p, r.list.n * sizeof *r.list.p);
	bool changed = signature != k->signature || symbols != k->symbols;
	k->symbols = symbols;
	make_modules(k, &r);
	/* Reading again costs tens of milliseconds; in vain it becomes rarer. */
	k->patience = changed ? 1 : k->patience < PATIENCE_MAX ? k->patience * 8 : k->patience;
	k->misses = 0;
	return 0;
}
