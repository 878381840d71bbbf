#include "isa/registers.h"

#include <string.h>

static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15"};

const char *isa_register_name(unsigned reg)
{
	return names[reg];
}

int isa_register_find(const char *text, size_t n)
{
	for (int i = 0; i < 16; i++)
		if (strlen(names[i]) == n && !memcmp(names[i], text, n))
			return i;
	return -1;
}
