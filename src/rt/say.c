#include "rt/runtime.h"
#include "rt/sys.h"

static size_t append(char *text, size_t n, size_t space, const char *what)
{
	while (*what && n < space)
		text[n++] = *what++;
	return n;
}

static size_t append_number(char *text, size_t n, size_t space, unsigned number)
{
	char digits[12];
	size_t at = sizeof digits;

	digits[--at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	return append(text, n, space, digits + at);
}

static void say(const char *what, const char *which, long error, const char *then)
{
	char text[RT_PATH + 100];
	size_t n = append(text, 0, sizeof text, what);

	n = append(text, n, sizeof text, which);
	n = append(text, n, sizeof text, " (error ");
	n = append_number(text, n, sizeof text, (unsigned)-error);
	n = append(text, n, sizeof text, then);
	sys_call(SYS_write, 2, (long)text, (long)n, 0);
}

void rt_complain(const char *path, long error)
{
	say("culprit: cannot count into ", path, error, "); this process runs on without\n");
}

void rt_complain_of_bursts(const char *path, long error)
{
	struct rt_process *p = rt_process();

	if (!p || !__atomic_exchange_n(&p->burstless, 1, __ATOMIC_RELAXED))
		rt_complain(path, error);
}

void rt_complain_of_event(long error)
{
	struct rt_process *p = rt_process();

	if (!p || !__atomic_exchange_n(&p->complained, 1, __ATOMIC_RELAXED))
		say("culprit: an event cannot be measured", "", error,
			"); threads of this process run on without\n");
}
