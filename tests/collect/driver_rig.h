/*
 * A driver that counts this thread's page faults at known places (faults.h), for tests of the
 * driver. Include after cmocka.h. The test's set-up makes driver and faults; where BPF is not
 * allowed driver stays NULL and why_not says why.
 */
#ifndef CULPRIT_TESTS_DRIVER_RIG_H
#define CULPRIT_TESTS_DRIVER_RIG_H

#include <sys/ioctl.h>

#include "base/err.h"
#include "collect/counter.h"
#include "collect/driver_user.h"
#include "collect/faults.h"

static struct driver *driver;
static struct faults faults;
static struct err why_not;

/* Every page fault of this thread is a sample of event number `event`. */
static int open_faults(size_t event, bool inherit)
{
	struct perf_event_attr attr = faults_event().attr;
	int fd;

	attr.sample_period = 1;
	attr.disabled = 1;
	attr.inherit = inherit;
	fd = counter_kernel.open(&attr, 0, -1, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_SET_BPF, driver_program(driver, event)), 0);
	return fd;
}

__attribute__((unused)) static void run_counted(int fd)
{
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	faults_run(&faults);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
}

static void need_bpf(void)
{
	if (driver)
		return;
	print_message("skipped: %s\n", why_not.text);
	skip();
}

#endif
