/*
 * The text of /proc/kallsyms ("ADDRESS TYPE NAME", with "\t[MODULE]" behind), symbol by symbol: it
 * is several megabytes long and never held as a whole.
 */
#ifndef CULPRIT_IMAGE_KALLSYMS_H
#define CULPRIT_IMAGE_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

struct kallsym {
	uint64_t address;
	char type;
	const char *name;   /* good during the call */
	const char *module; /* with its brackets; "" for the kernel itself */
};

typedef void kallsym_fn(void *arg, const struct kallsym *s);

/* Calls fn for each symbol; a line that is none is skipped. 0 or -errno of reading. */
int kallsyms_read(int fd, kallsym_fn *fn, void *arg);

#endif
