/*
 * How far two profiles of the same run agree: the samples of a perf.data against the procedures
 * that culprit reports.
 *
 *   overlap PERF_DATA ROWS FROM TO
 *
 * FROM and TO are seconds of CLOCK_MONOTONIC (perf record -k CLOCK_MONOTONIC): perf's samples
 * outside are left out, since two programs never start and stop together. ROWS has a line per
 * procedure: SAMPLES TAB START TAB IMAGE, START a file virtual address in hex (or empty for samples
 * without a procedure). perf does not know the procedures of stripped files, so its samples are
 * followed to (file, virtual address) through the MMAP2, FORK and COMM records of perf.data, in
 * time order, and each is given to the procedure of that file with the nearest start below. Kernel
 * addresses count from _text of /proc/kallsyms, as culprit shows them.
 *
 * Prints ours=, theirs= (samples), procedures=, overlap= (sum of the lesser share over the
 * procedures), self= (what two samples of this size from the same run can reach: the overlap of two
 * random halves of perf's, its loss divided by the square root of two), images= (overlap by image),
 * unmatched= (share of perf's samples in images that culprit does not have); and on standard error
 * the procedures that differ most.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_LINK_BASE 0xffffffff81000000ull
#define KERNEL           "[kernel]"
#define MAX_PID          (1 << 22)

struct procedure {
	uint64_t start;
	uint64_t ours, theirs[2]; /* two random halves of perf's samples */
};

/* An image, by path; rows without a start are its procedure 0. */
struct image {
	char *path;
	struct procedure *p;
	size_t n;
	Elf64_Phdr load[16];
	int nloads;
	bool ours;
};

struct map {
	uint64_t start, end, offset;
	size_t image;
};

struct space {
	struct map *m;
	size_t n;
};

struct entry {
	uint64_t time;
	const struct perf_event_header *h;
};

static struct image *images;
static size_t nimages;
static struct space *spaces[MAX_PID];

static void *grow(void *p, size_t n, size_t size)
{
	/* Doubles at every power of two. */
	if (n & (n - 1))
		return p;
	p = realloc(p, (n ? 2 * n : 1) * size);
	if (!p)
		err(1, "memory");
	return p;
}

/* ---- images ---- */

static void read_segments(struct image *im)
{
	int fd = open(im->path, O_RDONLY | O_NONBLOCK);
	Elf64_Ehdr e;
	if (fd < 0)
		return;
	if (pread(fd, &e, sizeof e, 0) == sizeof e && !memcmp(e.e_ident, ELFMAG, SELFMAG))
		for (int i = 0; i < e.e_phnum && im->nloads < 16; i++) {
			Elf64_Phdr *ph = &im->load[im->nloads];
			off_t at = e.e_phoff + (off_t)i * e.e_phentsize;
			if (pread(fd, ph, sizeof *ph, at) == sizeof *ph && ph->p_type == PT_LOAD)
				im->nloads++;
		}
	close(fd);
}

static size_t image_number(const char *path)
{
	for (size_t i = 0; i < nimages; i++)
		if (!strcmp(images[i].path, path))
			return i;
	images = grow(images, nimages, sizeof *images);
	struct image *im = &images[nimages];
	*im = (struct image){.path = strdup(path), .p = calloc(1, sizeof *im->p), .n = 1};
	read_segments(im);
	return nimages++;
}

static struct image *find_image(const char *path)
{
	size_t i = image_number(path);
	return &images[i];
}

static uint64_t virtual_address(const struct image *im, uint64_t offset)
{
	for (int i = 0; i < im->nloads; i++)
		if (offset - im->load[i].p_offset < im->load[i].p_filesz)
			return offset - im->load[i].p_offset + im->load[i].p_vaddr;
	return offset;
}

static int by_start(const void *a, const void *b)
{
	const struct procedure *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* The kernel's rows are told by their addresses, whatever culprit calls that image. */
static uint64_t read_rows(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4096], start[64], image[3072];
	uint64_t samples, total = 0;
	if (!f)
		err(1, "%s", path);
	while (fgets(line, sizeof line, f)) {
		start[0] = image[0] = 0;
		if (sscanf(line, "%lu\t%63[^\t]\t%3071[^\n]", &samples, start, image) < 3 &&
			sscanf(line, "%lu\t\t%3071[^\n]", &samples, image) < 1)
			errx(1, "%s: not understood: %s", path, line);
		uint64_t at = strtoull(start, NULL, 16);
		struct image *im = find_image(at >> 63 ? KERNEL : image);
		im->ours = true;
		total += samples;
		if (!start[0]) {
			im->p[0].ours += samples;
			continue;
		}
		im->p = grow(im->p, im->n, sizeof *im->p);
		im->p[im->n++] = (struct procedure){.start = at, .ours = samples};
	}
	fclose(f);
	for (size_t i = 0; i < nimages; i++)
		qsort(images[i].p + 1, images[i].n - 1, sizeof *images[i].p, by_start);
	return total;
}

static struct procedure *find_procedure(struct image *im, uint64_t address)
{
	size_t low = 1, high = im->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (im->p[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return &im->p[low - 1];
}

/* ---- processes ---- */

static struct space *space_of(uint32_t pid)
{
	pid %= MAX_PID;
	if (!spaces[pid])
		spaces[pid] = calloc(1, sizeof **spaces);
	return spaces[pid];
}

static void add_map(uint32_t pid, struct map m)
{
	struct space *s = space_of(pid);
	s->m = grow(s->m, s->n, sizeof *s->m);
	s->m[s->n++] = m;
}

static void fork_space(uint32_t pid, uint32_t parent)
{
	struct space *from = space_of(parent);
	if (pid == parent)
		return;
	space_of(pid)->n = 0;
	free(space_of(pid)->m);
	space_of(pid)->m = NULL;
	for (size_t i = 0; i < from->n; i++)
		add_map(pid, from->m[i]);
}

static const struct map *find_map(uint32_t pid, uint64_t address)
{
	const struct space *s = space_of(pid);
	for (size_t i = s->n; i-- > 0;)
		if (address - s->m[i].start < s->m[i].end - s->m[i].start)
			return &s->m[i];
	return NULL;
}

/* ---- perf.data ---- */

struct section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, types;
	uint64_t flags[4];
};

static uint64_t sample_type, kernel_text, from_ns, to_ns;

/* All events have the same layout here: perf record is asked for one event. */
static void read_attributes(const uint8_t *file, const struct file_header *h)
{
	for (uint64_t at = 0; at < h->attrs.size; at += h->attr_size) {
		const struct perf_event_attr *a = (const void *)(file + h->attrs.offset + at);
		if (at && a->sample_type != sample_type)
			errx(1, "perf.data: events with different samples");
		sample_type = a->sample_type;
	}
	if (sample_type &
		~(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD))
		errx(1, "perf.data: samples with more than addresses");
}

static uint64_t word(const struct perf_event_header *h, int i)
{
	return ((const uint64_t *)(h + 1))[i];
}

static uint64_t time_of(const struct perf_event_header *h)
{
	if (h->type == PERF_RECORD_SAMPLE)
		return word(h, !!(sample_type & PERF_SAMPLE_IDENTIFIER) + 2);
	int behind = 1 + !!(sample_type & PERF_SAMPLE_IDENTIFIER) +
		     !!(sample_type & PERF_SAMPLE_CPU) + !!(sample_type & PERF_SAMPLE_ID);
	return ((const uint64_t *)((const char *)h + h->size))[-behind];
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->h > y->h) - (x->h < y->h);
}

static struct entry *read_entries(const uint8_t *file, const struct file_header *h, size_t *n)
{
	struct entry *list = NULL;
	*n = 0;
	for (uint64_t at = h->data.offset, end = at + h->data.size; at < end;) {
		const struct perf_event_header *r = (const void *)(file + at);
		if (r->size < sizeof *r)
			errx(1, "perf.data: damaged");
		at += r->size;
		if (r->type >= 64)
			continue; /* perf's own records */
		list = grow(list, *n, sizeof *list);
		list[(*n)++] = (struct entry){time_of(r), r};
	}
	qsort(list, *n, sizeof *list, by_time);
	return list;
}

static void find_kernel_text(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], name[400];
	uint64_t address;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx %*c %399s", &address, name) == 2 && !strcmp(name, "_text"))
			kernel_text = address;
	if (f)
		fclose(f);
}

/* Gives one sample of perf to a procedure; false when culprit has no such image. */
static bool place(const struct perf_event_header *h, int half)
{
	int first = !!(sample_type & PERF_SAMPLE_IDENTIFIER);
	uint64_t ip = word(h, first), address = ip;
	struct image *im;
	if ((h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
		im = find_image(KERNEL);
		address = ip - kernel_text + KERNEL_LINK_BASE;
	} else {
		const struct map *m = find_map((uint32_t)word(h, first + 1), ip);
		im = m ? &images[m->image] : find_image("?");
		if (m)
			address = virtual_address(im, ip - m->start + m->offset);
	}
	find_procedure(im, address)->theirs[half]++;
	return im->ours;
}

/* MMAP2 has the path behind 64 bytes, MMAP behind 32. */
static void map_record(const struct perf_event_header *h)
{
	const char *path = (const char *)(h + 1) + (h->type == PERF_RECORD_MMAP2 ? 64 : 32);
	uint64_t start = word(h, 1), size = word(h, 2), offset = word(h, 3);
	if (start >> 63)
		return;
	if (!strcmp(path, "//anon"))
		path = "[anon]"; /* as culprit calls memory without a file */
	add_map(word(h, 0), (struct map){start, start + size, offset, image_number(path)});
}

static void follow(const struct entry *list, size_t n, uint64_t *samples, uint64_t *unmatched)
{
	for (size_t i = 0; i < n; i++) {
		const struct perf_event_header *h = list[i].h;
		switch (h->type) {
		case PERF_RECORD_MMAP:
		case PERF_RECORD_MMAP2:
			map_record(h);
			break;
		case PERF_RECORD_FORK:
			fork_space(word(h, 0), word(h, 0) >> 32);
			break;
		case PERF_RECORD_COMM:
			if (h->misc & PERF_RECORD_MISC_COMM_EXEC)
				space_of(word(h, 0))->n = 0;
			break;
		case PERF_RECORD_SAMPLE:
			if (list[i].time < from_ns || list[i].time > to_ns)
				break;
			*unmatched += !place(h, (i + 1) * 0x9e3779b97f4a7c15 >> 63);
			++*samples;
			break;
		}
	}
}

/* ---- comparing ---- */

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

struct difference {
	double ours, theirs;
	const struct image *im;
	const struct procedure *p;
};

static int by_difference(const void *a, const void *b)
{
	const struct difference *x = a, *y = b;
	double d = (x->ours - x->theirs) * (x->ours - x->theirs) -
		   (y->ours - y->theirs) * (y->ours - y->theirs);
	return (d < 0) - (d > 0);
}

static void compare(double ours, double theirs, double unmatched)
{
	double overlap = 0, self = 0, by_image = 0;
	struct difference *list = NULL;
	size_t n = 0;
	for (size_t i = 0; i < nimages; i++) {
		double a = 0, b = 0;
		for (size_t k = 0; k < images[i].n; k++) {
			const struct procedure *p = &images[i].p[k];
			double x = p->ours / ours, y = (p->theirs[0] + p->theirs[1]) / theirs;
			overlap += lesser(x, y);
			self += lesser(p->theirs[0], p->theirs[1]) * 2 / theirs;
			a += x;
			b += y;
			list = grow(list, n, sizeof *list);
			list[n++] = (struct difference){x, y, &images[i], p};
		}
		by_image += lesser(a, b);
	}
	printf("ours=%.0f theirs=%.0f procedures=%zu overlap=%.5f self=%.5f images=%.5f "
	       "unmatched=%.5f\n",
		ours, theirs, n - nimages, overlap, 1 - (1 - self) / sqrt(2), by_image,
		unmatched / theirs);
	qsort(list, n, sizeof *list, by_difference);
	for (size_t i = 0; i < n && i < 8; i++)
		fprintf(stderr, "culprit %6.3f%%  perf %6.3f%%  0x%lx %s\n", list[i].ours * 100,
			list[i].theirs * 100, list[i].p->start, list[i].im->path);
	free(list);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		errx(2, "usage: overlap PERF_DATA ROWS FROM TO");
	from_ns = atof(argv[3]) * 1e9;
	to_ns = atof(argv[4]) * 1e9;
	int fd = open(argv[1], O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		err(1, "%s", argv[1]);
	const uint8_t *file = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED || st.st_size < (off_t)sizeof(struct file_header))
		errx(1, "%s cannot be read", argv[1]);
	struct file_header h;
	memcpy(&h, file, sizeof h);
	if (memcmp(h.magic, "PERFILE2", 8) || h.data.offset + h.data.size > (uint64_t)st.st_size)
		errx(1, "%s is no finished perf.data", argv[1]);
	read_attributes(file, &h);
	find_kernel_text();
	uint64_t ours = read_rows(argv[2]), theirs = 0, unmatched = 0;
	size_t n;
	struct entry *list = read_entries(file, &h, &n);
	if (!ours)
		errx(1, "%s has no samples", argv[2]);
	if (!ours)
		errx(1, "%s has no samples", argv[2]);
	follow(list, n, &theirs, &unmatched);
	if (!theirs)
		errx(1, "%s has no samples", argv[1]);
	compare(ours, theirs, unmatched);
	return 0;
}
