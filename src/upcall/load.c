/*
 * Loads from addresses that may not be there. A fault inside is undone by the handler of SIGSEGV
 * and SIGBUS (signals.c). Asking the kernel first, or to copy (process_vm_readv), would cost over a
 * microsecond each, would touch the line that is to be measured, and could be outrun by an munmap.
 *
 * The time of a load is read as culprit_cycles() does it, with nothing else between the clocks.
 */
#include "upcall/upcall_internal.h"

int upcall_load_at(void);
int upcall_load_timed_at(void);
int upcall_clock_at(void);
int upcall_load_failed(void);

__asm__(".text\n"
	".hidden upcall_load\n.globl upcall_load\n.type upcall_load,@function\n"
	"upcall_load:\n"
	".hidden upcall_load_at\n.globl upcall_load_at\n"
	"upcall_load_at:\n"
	"	mov (%rdi), %rax\n"
	"	mov %rax, (%rsi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size upcall_load, .-upcall_load\n"

	".balign 64\n" /* all of it in one line of code */
	".hidden upcall_load_timed\n.globl upcall_load_timed\n.type upcall_load_timed,@function\n"
	"upcall_load_timed:\n"
	"	mov %rdx, %r8\n"
	"	lfence\n"
	".hidden upcall_clock_at\n.globl upcall_clock_at\n"
	"upcall_clock_at:\n"
	"	rdtsc\n"
	"	lfence\n"
	"	shl $32, %rdx\n"
	"	lea (%rax,%rdx), %r9\n"
	".hidden upcall_load_timed_at\n.globl upcall_load_timed_at\n"
	"upcall_load_timed_at:\n"
	"	mov (%rdi), %r10\n"
	"	lfence\n"
	"	rdtsc\n"
	"	lfence\n"
	"	shl $32, %rdx\n"
	"	add %rdx, %rax\n"
	"	sub %r9, %rax\n"
	"	mov %eax, (%r8)\n"
	"	mov %r10, (%rsi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size upcall_load_timed, .-upcall_load_timed\n"

	".hidden upcall_load_failed\n.globl upcall_load_failed\n"
	"upcall_load_failed:\n"
	"	mov $-1, %eax\n"
	"	ret\n");

bool upcall_load_fault(ucontext_t *uc)
{
	greg_t *rip = &uc->uc_mcontext.gregs[REG_RIP];

	if (*rip != (greg_t)upcall_load_at && *rip != (greg_t)upcall_load_timed_at &&
		*rip != (greg_t)upcall_clock_at)
		return false;
	*rip = (greg_t)upcall_load_failed;
	return true;
}
