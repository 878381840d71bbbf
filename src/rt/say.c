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

void rt_complain(const char *path, long error)
{
	char text[RT_PATH + 100];
	size_t n = append(text, 0, sizeof text, "culprit: cannot count into ");

	n = append(text, n, sizeof text, path);
	n = append(text, n, sizeof text, " (error ");
	n = append_number(text, n, sizeof text, (unsigned)-error);
	n = append(text, n, sizeof text, "); this process runs on without\n");
	sys_call(SYS_write, 2, (long)text, (long)n, 0);
}
