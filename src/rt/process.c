#include "rt/runtime.h"
#include "rt/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#define PAGE 4096

/* By the kernel: it may be somebody's who lets nobody read it. */
static bool begins_with(uint32_t word)
{
	static const struct timespec at_once;

	return sys_call(SYS_futex, RT_PROCESS, FUTEX_WAIT_PRIVATE, (long)word, (long)&at_once) ==
	       -ETIMEDOUT;
}

/* Whoever comes first makes it; a page of zeros is one that is just being made. */
struct rt_process *rt_process(void)
{
	struct rt_process *p = (struct rt_process *)RT_PROCESS;
	long at = sys_call6(SYS_mmap, RT_PROCESS, PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint64_t none = 0;

	if (at != RT_PROCESS && at != -EEXIST) {
		if (!sys_failed(at)) /* kernels before 4.17 */
			sys_unmap((uint64_t)at, PAGE);
		return NULL;
	}
	if (at != RT_PROCESS && !begins_with((uint32_t)RT_PROCESS_MAGIC) && !begins_with(0))
		return NULL;
	__atomic_compare_exchange_n(
		&p->magic, &none, RT_PROCESS_MAGIC, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return p->magic == RT_PROCESS_MAGIC ? p : NULL;
}
