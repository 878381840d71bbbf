/*
 * Everything that walks the stack or leaves frames in the middle, printed in words that do not
 * depend on where code lies: an edited copy must print the same.
 */
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

namespace
{
struct Noisy {
	const char *name;
	explicit Noisy(const char *n) : name(n)
	{
	}
	~Noisy()
	{
		printf("  ~%s\n", name);
	}
};

volatile int zero;

/* ---- exceptions ---- */

NOINLINE int thrower(int what)
{
	Noisy n("thrower");
	switch (what) {
	case 0:
		throw 42;
	case 1:
		throw std::logic_error("logic");
	case 2:
		throw "text";
	case 3:
		throw std::string("a string that is too long to be stored within");
	case 4:
		return std::vector<int>(3).at(7 + zero);
	case 5:
		return std::stoi("none");
	case 6:
		return *new int[(std::size_t)-1 / 8 - zero];
	}
	return what;
}

NOINLINE int middle(int what)
{
	Noisy a("outer");
	try {
		Noisy b("inner");
		return thrower(what) + 1;
	} catch (const char *s) {
		printf("  text %s\n", s);
		throw;
	} catch (std::logic_error &e) {
		printf("  logic %s\n", e.what());
		if (what == 1)
			throw std::runtime_error("from a handler");
		return -2;
	}
}

/* A frame that is aligned further than the stack, and one of unknown size. */
NOINLINE int aligned(int what)
{
	alignas(64) volatile char room[256];
	volatile char *more = (volatile char *)__builtin_alloca(64 + what * 16);
	room[what] = more[what] = 1;
	int r = middle(what);
	return r + room[what] + more[what];
}

/* More arguments than registers: some lie on the stack where it is thrown. */
NOINLINE int crowded(int a, int b, int c, int d, int e, int f, int g, int h, int i, double x)
{
	Noisy n("crowded");
	return aligned(a) + b + c + d + e + f + g + h + i + (int)x;
}

NOINLINE int varied(int n, ...)
{
	va_list args;
	va_start(args, n);
	int what = va_arg(args, int);
	double x = va_arg(args, double);
	va_end(args);
	return crowded(what, 1, 2, 3, 4, 5, 6, 7, 8, x);
}

NOINLINE void exceptions()
{
	for (int what = 0; what < 8; what++) {
		printf("throw %d\n", what);
		try {
			printf("  returned %d\n", varied(2, what, 1.5));
		} catch (int i) {
			printf("  int %d\n", i);
		} catch (const std::exception &e) {
			printf("  %s\n", e.what());
		} catch (...) {
			printf("  something\n");
		}
	}
}

NOINLINE int fibonacci(int n)
{
	if (n < 2)
		throw n;
	int sum = 0;
	for (int i = 1; i <= 2; i++) {
		try {
			fibonacci(n - i);
		} catch (int v) {
			sum += v;
		}
	}
	throw sum;
}

NOINLINE void many()
{
	try {
		fibonacci(14);
	} catch (int v) {
		printf("fibonacci %d\n", v);
	}
}

/* Through frames of C and of libc. */
int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	if (x == 7 || y == 7)
		throw x + y;
	return x - y;
}

NOINLINE void through_libc()
{
	int list[] = {3, 1, 4, 1, 5, 9, 2, 6, 7};
	try {
		qsort(list, sizeof list / sizeof *list, sizeof *list, compare);
		printf("sorted\n");
	} catch (int v) {
		printf("through qsort %d\n", v > 0);
	}
}

NOINLINE void carried()
{
	std::exception_ptr p;
	try {
		aligned(1);
	} catch (...) {
		p = std::current_exception();
	}
	try {
		std::rethrow_exception(p);
	} catch (std::runtime_error &e) {
		printf("carried %s\n", e.what());
	}
}

/* ---- what must not be caught ---- */

NOINLINE void never() noexcept
{
	thrower(0);
}

NOINLINE void children()
{
	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			std::set_terminate([] {
				printf("  terminate\n");
				fflush(stdout);
				_exit(7);
			});
			if (i == 0)
				never();
			thrower(2); /* and nobody catches it */
			_exit(1);
		}
		int status;
		waitpid(child, &status, 0);
		printf("child %d: %x\n", i, status);
	}
}

/* ---- walks ---- */

_Unwind_Word of_main; /* its frame */

struct Walk {
	_Unwind_Word last;
	int frames;
};

/* How large a signal's frame is depends on how the stack was aligned. */
_Unwind_Reason_Code step(_Unwind_Context *context, void *arg)
{
	Walk *w = (Walk *)arg;
	_Unwind_Word cfa = _Unwind_GetCFA(context);
	long size = (long)(cfa - w->last);
	if (w->frames++)
		printf(" %ld", size > 1024 ? 0 : size);
	w->last = cfa;
	return cfa == of_main ? _URC_END_OF_STACK : _URC_NO_REASON;
}

NOINLINE void walk()
{
	Walk w = {};
	_Unwind_Backtrace(step, &w);
	printf("\n  %d frames to %s\n", w.frames, w.last == of_main ? "main" : "elsewhere");
}

NOINLINE int deep(int n)
{
	volatile int room[8] = {n};
	if (n == 0)
		walk();
	else
		room[n % 8] = deep(n - 1) + 1;
	return room[n % 8];
}

void on_signal(int signal)
{
	printf("signal %d\n", signal);
	walk();
}

NOINLINE int signalled(int n)
{
	volatile int room[16] = {n};
	raise(SIGUSR1);
	return room[n];
}

/* ---- faults that become exceptions (built with -fnon-call-exceptions) ---- */

void on_fault(int)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw "fault";
}

NOINLINE int touch(const int *p)
{
	Noisy n("touch");
	return *p + 1;
}

NOINLINE void faults()
{
	signal(SIGSEGV, on_fault);
	try {
		printf("  read %d\n", touch((const int *)(long)zero));
	} catch (const char *s) {
		printf("caught a %s\n", s);
	}
	signal(SIGSEGV, SIG_DFL);
}

/* ---- jumps ---- */

jmp_buf place;
sigjmp_buf signal_place;

NOINLINE void jumper(int n)
{
	volatile char room[100];
	room[n] = 1;
	if (n == 0)
		longjmp(place, 5);
	jumper(n - 1);
	printf("not here %d\n", room[n]);
}

NOINLINE void jumps()
{
	volatile int before = 1;
	int r = setjmp(place);
	if (r == 0) {
		before = 2;
		jumper(20);
	}
	printf("jumped %d %d\n", r, before);
	signal(SIGUSR2, [](int) { siglongjmp(signal_place, 6); });
	r = sigsetjmp(signal_place, 1);
	if (r == 0)
		raise(SIGUSR2);
	printf("jumped %d\n", r);
}

/* ---- threads that end in the middle ---- */

pthread_barrier_t barrier;

NOINLINE void wait_for_ever()
{
	Noisy n("waiting");
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

void *cancelled(void *)
{
	Noisy n("thread");
	try {
		wait_for_ever();
	} catch (...) {
		printf("  cancelled\n");
		throw;
	}
	return nullptr;
}

void *exits(void *arg)
{
	Noisy n("exits");
	pthread_exit(arg);
}

NOINLINE void threads()
{
	pthread_t t;
	void *value;
	pthread_barrier_init(&barrier, nullptr, 2);
	pthread_create(&t, nullptr, cancelled, nullptr);
	pthread_barrier_wait(&barrier);
	pthread_cancel(t);
	pthread_join(t, &value);
	printf("thread %s\n", value == PTHREAD_CANCELED ? "cancelled" : "ended");
	pthread_create(&t, nullptr, exits, &t);
	pthread_join(t, &value);
	printf("thread %s\n", value == &t ? "exited" : "lost");
}
} // namespace

int main()
{
	of_main = (_Unwind_Word)__builtin_dwarf_cfa();
	setvbuf(stdout, nullptr, _IONBF, 0);
	exceptions();
	many();
	through_libc();
	carried();
	children();
	deep(12);
	signal(SIGUSR1, on_signal);
	signalled(3);
#ifndef __clang__ /* which has no -fnon-call-exceptions for loads */
	faults();
#endif
	jumps();
	threads();
	return 0;
}
