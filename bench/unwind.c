/*
 * How the unwinder does on programs nobody here wrote: stops a process again and again, copies its
 * registers and its stack, walks the copy, and asks elfutils for the same call path.
 *
 *   unwind [-n STOPS] [-s STACK BYTES] PID
 *
 * Prints a line of NAME=NUMBER: stops, those where both say the same, where ours is longer, is
 * shorter, differs; how ours ended; frames a second when all copies are walked again.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "calls/walk.h"
#include "image/image.h"

#include <elfutils/libdwfl.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024 };

/* ---- what is mapped ---- */

struct module {
	uint64_t start, end, bias;
	char *path;
	struct frames *frames;
};

struct stop {
	struct walk_start start;
	size_t n;
	enum walk_end end;
};

struct scene {
	pid_t pid;
	size_t stack;
	Dwfl *dwfl;
	VEC(struct module) modules;
	VEC(struct stop) stops;
	size_t same, longer, shorter, differ, ends[WALK_ENDS];
	struct walk_frame ours[MOST];
	uint64_t theirs[MOST];
	size_t ntheirs;
};

static const struct frames *rows_of(struct scene *s, const char *path)
{
	vec_each (m, &s->modules)
		if (m->path && !strcmp(m->path, path))
			return m->frames;
	return NULL;
}

static void add_module(
	struct scene *s, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	struct module m = {.start = start, .end = end, .path = xstrdup(path)};
	struct image *im;
	const struct segment *list;
	uint64_t vaddr;

	if (image_open_path(path, &im, NULL)) {
		free(m.path);
		return;
	}
	size_t n = image_segments(im, &list);
	m.frames = (struct frames *)rows_of(s, path);
	if (segments_vaddr(list, n, offset, &vaddr) && (m.frames || !frames_open(im, &m.frames))) {
		m.bias = start - vaddr;
		*vec_add(&s->modules) = m;
	}
	image_destroy(im);
}

static void read_modules(struct scene *s)
{
	char name[64], line[4096], path[4096], rights[8];
	unsigned long start, end, offset;
	FILE *f;

	s->modules.n = 0;
	snprintf(name, sizeof name, "/proc/%d/maps", s->pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, rights, &offset,
			    path) == 5 &&
			rights[2] == 'x' && path[0] == '/')
			add_module(s, start, end, offset, path);
	if (f)
		fclose(f);
}

static const struct frames *find(void *arg, uint64_t pc, uint64_t *bias)
{
	const struct scene *s = arg;

	vec_each (m, &s->modules)
		if (pc >= m->start && pc < m->end) {
			*bias = m->bias;
			return m->frames;
		}
	return NULL;
}

/* ---- one stop ---- */

static bool copy(struct scene *s, struct walk_start *out)
{
	struct user_regs_struct r;
	uint8_t *bytes = xmalloc(s->stack);
	ssize_t got = -1;

	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &r) < 0)
		return false;
	*out = (struct walk_start){
		.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
			r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
		.known = (1u << FRAME_REGISTERS) - 1,
		.stack = bytes};
	for (size_t n = s->stack; n && got<0; n = n> 4096 ? n - 4096 : 0)
		got = process_vm_readv(s->pid, &(struct iovec){bytes, n}, 1,
			&(struct iovec){(void *)r.rsp, n}, 1, 0);
	out->size = got > 0 ? (size_t)got : 0;
	return true;
}

static int keep_frame(Dwfl_Frame *f, void *arg)
{
	struct scene *s = arg;
	Dwarf_Addr pc;

	if (s->ntheirs == MOST || !dwfl_frame_pc(f, &pc, NULL))
		return DWARF_CB_ABORT;
	s->theirs[s->ntheirs++] = pc;
	return DWARF_CB_OK;
}

static void compare(struct scene *s, const struct stop *stop)
{
	size_t i = 0;

	while (i < stop->n && i < s->ntheirs && s->ours[i].pc == s->theirs[i])
		i++;
	s->ends[stop->end]++;
	if (i == stop->n && i == s->ntheirs)
		s->same++;
	else if (i == s->ntheirs)
		s->longer++;
	else if (i == stop->n)
		s->shorter++;
	else
		s->differ++;
	if (i < s->ntheirs && getenv("UNWIND_VERBOSE"))
		printf("ours %zu (%s) theirs %zu; at %zu: %lx %lx, before %lx\n", stop->n,
			walk_end_words(stop->end), s->ntheirs, i,
			i < stop->n ? (long)s->ours[i].pc : 0, (long)s->theirs[i],
			i ? (long)s->ours[i - 1].pc : 0);
}

static bool stop_once(struct scene *s)
{
	struct stop stop;
	int status;

	if (ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL) < 0 ||
		waitpid(s->pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return false;
	if (!copy(s, &stop.start))
		return false;
	read_modules(s);
	stop.end = walk_stack(&stop.start, find, s, s->ours, MOST, &stop.n);
	s->ntheirs = 0;
	dwfl_linux_proc_report(s->dwfl, s->pid);
	dwfl_report_end(s->dwfl, NULL, NULL);
	dwfl_getthread_frames(s->dwfl, s->pid, keep_frame, s);
	compare(s, &stop);
	*vec_add(&s->stops) = stop;
	return ptrace(PTRACE_CONT, s->pid, NULL, NULL) == 0;
}

/* ---- all of them ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double speed(struct scene *s)
{
	double t0 = seconds(), t1;
	uint64_t frames = 0;

	do {
		vec_each (stop, &s->stops) {
			size_t n;

			walk_stack(&stop->start, find, s, s->ours, MOST, &n);
			frames += n;
		}
		t1 = seconds();
	} while (t1 - t0 < 0.5);
	return (double)frames / (t1 - t0);
}

int main(int argc, char **argv)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo};
	struct scene s = {.stack = 256 << 10};
	long stops = 100;
	int option;

	while ((option = getopt(argc, argv, "n:s:")) > 0)
		if (option == 'n')
			stops = atol(optarg);
		else if (option == 's')
			s.stack = (size_t)atol(optarg);
		else
			errx(2, "usage: unwind [-n STOPS] [-s STACK BYTES] PID");
	if (optind != argc - 1)
		errx(2, "usage: unwind [-n STOPS] [-s STACK BYTES] PID");
	s.pid = (pid_t)atol(argv[optind]);
	if (ptrace(PTRACE_SEIZE, s.pid, NULL, NULL) < 0)
		err(1, "%s", argv[optind]);
	s.dwfl = dwfl_begin(&callbacks);
	dwfl_linux_proc_report(s.dwfl, s.pid);
	dwfl_report_end(s.dwfl, NULL, NULL);
	dwfl_linux_proc_attach(s.dwfl, s.pid, true);
	for (long i = 0; i < stops && stop_once(&s); i++)
		usleep(1000 + (useconds_t)(random() % 9000));
	if (!s.stops.n)
		errx(1, "%s: was not stopped once", argv[optind]);
	printf("stops=%zu same=%zu longer=%zu shorter=%zu differ=%zu", s.stops.n, s.same, s.longer,
		s.shorter, s.differ);
	printf(" root=%zu cut=%zu strange=%zu broken=%zu frames_s=%.0f\n", s.ends[WALK_ROOT],
		s.ends[WALK_CUT], s.ends[WALK_STRANGE], s.ends[WALK_BROKEN], speed(&s));
	return 0;
}
