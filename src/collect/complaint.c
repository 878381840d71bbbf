#include "collect/complaint.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char complaint[200];
static _Thread_local libbpf_print_fn_t before;

static int keep(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN && !*complaint) {
		strcpy(complaint, ": ");
		vsnprintf(complaint + 2, sizeof complaint - 2, fmt, args);
		complaint[strcspn(complaint, "\n")] = 0;
	}
	return 0;
}

void complaint_begin(void)
{
	*complaint = 0;
	before = libbpf_set_print(keep);
}

const char *complaint_end(void)
{
	libbpf_set_print(before);
	return complaint;
}
