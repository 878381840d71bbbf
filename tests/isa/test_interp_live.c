/*
 * The interpreter against programs that run: from where a program happens to be it says what the
 * next instructions will do, then the program is single-stepped through them.
 *
 * CULPRIT_INTERP_BURSTS sets the number of bursts over all programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isa/decode.h"
#include "isa/dice.h"
#include "isa/interp.h"

enum {
	BURSTS = 600,
	LONGEST = 512,
	PAGES = 1024, /* of a burst that are kept; a power of two */
	PAGE = 4096,
	SHOWN = 20,
	ALL_FLAGS = INTERP_FLAGS | INTERP_DF,
};

/* What the interpreter says about one instruction. */
struct moment {
	u64 r[16], ip, flags;
	u32 unknown, unknown_low, unknown_flags;
};

/* Memory of the program as it was when the burst began. */
struct page {
	u64 address;
	bool there;
	unsigned burst;
	u8 bytes[PAGE];
};

struct live {
	const char *name;
	const char *const *argv;
	pid_t pid;
	unsigned burst;
	struct interp m;
	struct page *pages;
	struct moment moments[LONGEST + 1];
	unsigned n;
	enum interp_stop stop;
};

static unsigned long instructions, unknown_registers, stops[INTERP_STOPS], bursts;
static unsigned wrong;
static char input[] = "/tmp/culprit-live-XXXXXX", source[sizeof input + 2];

/* ---- the program ---- */

/* Runs it once the tracer let go of the pipe. */
static void run_program(const char *const *argv, const int gate[2])
{
	char byte;
	int null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	close(gate[1]);
	if (!read(gate[0], &byte, 1))
		execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static void start(struct live *l)
{
	int gate[2];
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	l->pid = fork();
	if (!l->pid)
		run_program(l->argv, gate);
	if (l->pid < 0 || ptrace(PTRACE_SEIZE, l->pid, 0, PTRACE_O_EXITKILL) < 0)
		fail_msg("%s cannot be started and traced", l->name);
	close(gate[0]);
	close(gate[1]);
}

static void stop_for_good(struct live *l)
{
	if (l->pid <= 0)
		return;
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, __WALL);
	l->pid = 0;
}

/* Waits for the stop that was asked for; other signals are handed on. False when it is gone. */
static bool wait_stop(struct live *l)
{
	int status;
	while (waitpid(l->pid, &status, __WALL) == l->pid) {
		if (!WIFSTOPPED(status)) {
			l->pid = 0;
			return false;
		}
		bool group = status >> 16 == PTRACE_EVENT_STOP;
		if (group && WSTOPSIG(status) == SIGTRAP)
			return true;
		ptrace(PTRACE_CONT, l->pid, 0, group ? 0 : WSTOPSIG(status));
	}
	l->pid = 0;
	return false;
}

/* Lets it run for a while and stops it somewhere in its own code. */
static bool run_on(struct live *l, struct dice *d, struct user_regs_struct *regs)
{
	enum { TRIES = 50 };
	for (int i = 0; i < TRIES; i++) {
		if (!l->pid)
			start(l);
		else
			ptrace(PTRACE_CONT, l->pid, 0, 0);
		usleep((useconds_t)(50 + dice_below(d, 1000)));
		ptrace(PTRACE_INTERRUPT, l->pid, 0, 0);
		if (!wait_stop(l))
			continue;
		if (!ptrace(PTRACE_GETREGS, l->pid, 0, regs) && (long)regs->orig_rax < 0)
			return true; /* not in a system call */
	}
	return false;
}

/* ---- what the interpreter says ---- */

static int read_word(void *arg, u64 address, u64 *word)
{
	struct live *l = arg;
	u64 at = address & ~(u64)(PAGE - 1);
	struct page *p = &l->pages[at / PAGE % PAGES];
	if (p->burst != l->burst || p->address != at) {
		struct iovec here = {p->bytes, PAGE}, there = {(void *)at, PAGE};
		p->there = process_vm_readv(l->pid, &here, 1, &there, 1, 0) == PAGE;
		p->address = at;
		p->burst = l->burst;
	}
	if (!p->there)
		return -EFAULT;
	memcpy(word, p->bytes + (address - at), sizeof *word);
	return 0;
}

static void take_registers(u64 r[16], const struct user_regs_struct *u)
{
	const u64 all[16] = {u->rax, u->rcx, u->rdx, u->rbx, u->rsp, u->rbp, u->rsi, u->rdi, u->r8,
		u->r9, u->r10, u->r11, u->r12, u->r13, u->r14, u->r15};
	memcpy(r, all, sizeof all);
}

static void note_moment(struct live *l)
{
	struct moment *now = &l->moments[l->n];
	memcpy(now->r, l->m.r, sizeof now->r);
	now->ip = l->m.ip;
	now->flags = interp_flags(&l->m);
	now->unknown = l->m.unknown;
	now->unknown_low = l->m.unknown_low;
	now->unknown_flags = l->m.unknown_flags;
}

/* Under a tracer pushf stores the trap flag, which is not the program's. */
static bool is_pushf(struct live *l)
{
	u64 word = 0;
	read_word(l, l->m.ip & ~7ull, &word);
	word >>= l->m.ip % 8 * 8;
	return (u8)word == 0x9c || (u16)word == 0x9c66;
}

static void predict(
	struct live *l, const struct user_regs_struct *regs, unsigned most, bool vectors)
{
	struct user_fpregs_struct fp;
	struct interp *m = &l->m;

	interp_begin(m, read_word, l);
	take_registers(m->r, regs);
	m->ip = regs->rip;
	m->base[0] = regs->fs_base;
	m->base[1] = regs->gs_base;
	interp_set_flags(m, regs->eflags);
	if (vectors && !ptrace(PTRACE_GETFPREGS, l->pid, 0, &fp)) {
		memcpy(m->xmm, fp.xmm_space, sizeof m->xmm);
		m->known_xmm = 0xffff;
	}
	l->n = 0;
	l->stop = INTERP_DONE;
	note_moment(l);
	while (l->n < most && !is_pushf(l)) {
		struct interp before = *m;
		enum interp_stop stop = interp_step(m);
		if (stop != INTERP_GOES_ON) {
			*m = before; /* it may have stored half of what it would */
			l->stop = stop;
			break;
		}
		l->n++;
		note_moment(l);
	}
}

/* ---- what the program does ---- */

__attribute__((format(printf, 3, 4))) static void complain(
	struct live *l, const struct moment *before, const char *format, ...)
{
	char text[128];
	u8 code[16] = {0};
	va_list args;
	if (wrong++ >= SHOWN)
		return;
	for (int i = 0; i < 16; i++) {
		u64 word = 0, at = before->ip + (u64)i;
		read_word(l, at & ~7ull, &word);
		code[i] = (u8)(word >> at % 8 * 8);
	}
	size_t n =
		isa_text(code, sizeof code, before->ip, ISA_INTEL, NULL, NULL, text, sizeof text);
	fprintf(stderr, "%s %lx:", l->name, before->ip);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %02x", code[i]);
	fprintf(stderr, "  %s: ", text);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	for (int i = 0; i < 16; i++)
		fprintf(stderr, "%s r%d %lx%s", i % 4 ? "" : "\n   ", i, before->r[i],
			(before->unknown | before->unknown_low) >> i & 1 ? "?" : "");
	fprintf(stderr, "\n    flags %lx unknown %x\n", before->flags, before->unknown_flags);
}

/*
 * One instruction of the program; of a repeated one, which traps after each round, as many rounds
 * as the interpreter did.
 */
static bool step(struct live *l, u64 from, const struct moment *to, struct user_regs_struct *regs)
{
	enum { ROUNDS = 1 << 16 };
	for (int i = 0; i < ROUNDS; i++) {
		int status;
		if (ptrace(PTRACE_SINGLESTEP, l->pid, 0, 0) < 0 ||
			waitpid(l->pid, &status, __WALL) != l->pid)
			return false;
		if (!WIFSTOPPED(status)) {
			l->pid = 0;
			return false;
		}
		if (status >> 8 != SIGTRAP) { /* a signal: it goes elsewhere now */
			ptrace(PTRACE_CONT, l->pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
			ptrace(PTRACE_INTERRUPT, l->pid, 0, 0);
			wait_stop(l);
			return false;
		}
		if (ptrace(PTRACE_GETREGS, l->pid, 0, regs) < 0)
			return false;
		if (regs->rip != from || (to->ip == from && regs->rcx == to->r[INTERP_RCX]))
			return true;
	}
	return false;
}

static bool is_right(struct live *l, const struct moment *before, const struct moment *now,
	const struct user_regs_struct *regs)
{
	u64 r[16];
	take_registers(r, regs);
	if (regs->rip != now->ip) {
		complain(l, before, "goes to %llx, interpreted %lx", regs->rip, now->ip);
		return false;
	}
	for (int i = 0; i < 16; i++) {
		u64 known = (now->unknown >> i & 1 ? 0 : ~0xffull) |
			    (now->unknown_low >> i & 1 ? 0 : 0xff);
		if ((r[i] ^ now->r[i]) & known) {
			complain(l, before, "register %d becomes %lx, interpreted %lx", i, r[i],
				now->r[i]);
			return false;
		}
		unknown_registers += known != ~0ull;
	}
	if ((regs->eflags ^ now->flags) & ALL_FLAGS & ~(u64)now->unknown_flags) {
		complain(l, before, "flags become %llx, interpreted %lx, unknown %x",
			regs->eflags & ALL_FLAGS, now->flags, now->unknown_flags);
		return false;
	}
	return true;
}

/* What it stored and what vector registers hold at the end. */
static void check_end(struct live *l)
{
	const struct moment *last = &l->moments[l->n ? l->n - 1 : 0];
	struct user_fpregs_struct fp;
	for (const struct interp_word *w = l->m.word; w < l->m.word + INTERP_WORDS; w++) {
		u64 now;
		struct iovec here = {&now, 8}, there = {(void *)w->address, 8};
		if (w->epoch != l->m.epoch || process_vm_readv(l->pid, &here, 1, &there, 1, 0) != 8)
			continue;
		for (int b = 0; b < 8; b++) {
			if ((w->stored & ~w->unknown) >> b & 1 && (now ^ w->data) >> 8 * b & 0xff)
				return complain(l, last,
					"at the end %lx holds %lx, interpreted %lx (%02x)",
					w->address, now, w->data, w->stored & ~w->unknown);
		}
	}
	if (ptrace(PTRACE_GETFPREGS, l->pid, 0, &fp) < 0)
		return;
	for (int i = 0; i < 16; i++) {
		if (l->m.known_xmm >> i & 1 && memcmp(l->m.xmm[i], fp.xmm_space + 4 * i, 16))
			return complain(l, last, "at the end xmm%d is wrong", i);
	}
}

static void follow(struct live *l)
{
	struct user_regs_struct regs;
	for (unsigned i = 0; i < l->n; i++) {
		const struct moment *before = &l->moments[i], *now = before + 1;
		if (!step(l, before->ip, now, &regs) || !is_right(l, before, now, &regs))
			return;
		instructions++;
	}
	check_end(l);
}

/* Lengths from 16 to 512, each doubling as likely as the next. */
static unsigned roll_length(struct dice *d)
{
	unsigned base = 16u << dice_below(d, 5);
	return base + (unsigned)dice_below(d, base + 1);
}

/* Another thread may change what the program reads, between our look at it and its own. */
static bool is_alone(const struct live *l)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/task", l->pid);
	return stat(path, &st) == 0 && st.st_nlink == 3;
}

static void run_bursts(struct live *l, unsigned count, struct dice *d)
{
	struct user_regs_struct regs;
	for (unsigned i = 0; i < count && run_on(l, d, &regs); i++) {
		if (!is_alone(l))
			continue;
		l->burst++;
		predict(l, &regs, roll_length(d), dice_chance(d, 50));
		follow(l);
		stops[l->stop]++;
		bursts++;
	}
	stop_for_good(l);
}

/* ---- the programs ---- */

static bool is_there(const char *program)
{
	char command[300];
	snprintf(command, sizeof command, "command -v '%s' >/dev/null", program);
	return !system(command);
}

/* gcc runs the compiler proper in a child. */
static const char *find_compiler(void)
{
	static char path[256];
	glob_t found;
	if (!glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1", 0, NULL, &found)) {
		snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	return path;
}

/* Lines of words, and functions for the compiler. */
static int make_inputs(void **state)
{
	(void)state;
	struct dice d = {.state = 3};
	int fd = mkstemp(input);
	FILE *text = fd < 0 ? NULL : fdopen(fd, "w");
	snprintf(source, sizeof source, "%s.c", input);
	FILE *code = fopen(source, "w");
	if (!text || !code)
		return -1;
	for (int i = 0; i < 100000; i++) {
		u64 word = dice_roll(&d) & dice_roll(&d);
		fprintf(text, "%lx %s %lu of %lu\n", word % 4096, i % 3 ? "the" : "another",
			word % 100, word % 977);
	}
	for (int i = 0; i < 1500; i++)
		fprintf(code,
			"int f%d(int a, int *p) { for (int i = 0; i < a; i++) p[i %% 7] += i * "
			"%d; return p[a & 3] > %d ? a : p[1] / (a | 1); }\n",
			i, i % 91, i);
	return fclose(text) | fclose(code);
}

static int remove_inputs(void **state)
{
	(void)state;
	return unlink(input) | unlink(source);
}

static void print_summary(void)
{
	print_message("%lu bursts, %lu instructions, %.2f registers unknown on average;", bursts,
		instructions,
		(double)unknown_registers / (double)(instructions ? instructions : 1));
	for (int i = 0; i < INTERP_STOPS; i++) {
		if (stops[i])
			print_message(" %s %lu", interp_stop_name((enum interp_stop)i), stops[i]);
	}
	print_message("\n");
}

/* All of them with one thread: others could change memory during a burst. */
static void test_programs(void **state)
{
	(void)state;
	const char *const programs[][8] = {
		{"gzip", "-c", input},
		{"bzip2", "-c", input},
		{"xz", "-T1", "-c", input},
		{"zstd", "-c", "-12", "--single-thread", "--no-asyncio", input},
		{"sort", "--parallel=1", "-k", "3", input},
		{"perl", "-ne", "$n{$1}++ while /(\\w+)/g; END { print sort keys %n }", input},
		{"/usr/bin/python3", "-c",
			"d={}\nfor i in range(10**7): d[i%977]=str(i)+'x'*(i%5)"},
		{"sqlite3", ":memory:",
			"with recursive c(x) as (select 1 union all select x+1 from c where "
			"x<999999)"
			" select sum(length(x||'a')), max(x%977) from c;"},
		{"bash", "-c", "for ((i=0;i<9999999;i++)); do a=$((i*3)); b=${a#1}; done"},
		{"awk", "{ n[$1]+=$3 } END { for (k in n) print k, n[k] }", input},
		{"sed", "-E", "s/([a-f]+)[0-9]+/<\\1>/g", input},
		{"grep", "-c", "-E", "(ab|cd)+.*9[0-4]", input},
		{"tac", input},
		{find_compiler(), "-quiet", "-O2", source, "-o", "/dev/null"},
		{"objdump", "-d", "/usr/bin/bash"},
		{"openssl", "dgst", "-sha256", input},
		{"factor", "340282366920938463463374607431768211457"},
	};
	enum { PROGRAMS = sizeof programs / sizeof *programs };
	struct dice d = {.state = dice_option("CULPRIT_INTERP_SEED", 11)};
	unsigned total = (unsigned)dice_option("CULPRIT_INTERP_BURSTS", BURSTS);
	static struct live l;

	l.pages = calloc(PAGES, sizeof *l.pages);
	assert_non_null(l.pages);
	for (size_t i = 0; i < PROGRAMS; i++) {
		l.name = programs[i][0];
		l.argv = programs[i];
		if (is_there(l.name))
			run_bursts(&l, total / PROGRAMS + 1, &d);
	}
	free(l.pages);
	print_summary();
	assert_true(instructions > 0);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
	};
	return cmocka_run_group_tests(tests, make_inputs, remove_inputs);
}
