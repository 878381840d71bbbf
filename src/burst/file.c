#include "burst/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "rt/burst.h"

int burst_file_create(const char *path, const struct burst_rates *rates, bool fixed, uint64_t bytes,
	struct err *e)
{
	struct burst_file page = {.magic = BURST_MAGIC,
		.rates = *rates,
		.changed = fixed,
		.most = bytes / BURST_CHUNK < BURST_CHUNKS ? bytes / BURST_CHUNK : BURST_CHUNKS};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = 0;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	if (ftruncate(fd, BURST_PAGE) < 0 || pwrite(fd, &page, sizeof page, 0) < 0)
		rc = err_errno(e, -errno, "%s", path);
	close(fd);
	return rc;
}

/* Programs have the page mapped: they see the rates, and then that they have changed. */
int burst_file_set(const char *path, const struct burst_rates *rates, struct err *e)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc = -EBADMSG;
	struct burst_file *page;
	struct stat st;

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	page = fstat(fd, &st) || st.st_size < BURST_PAGE
		       ? MAP_FAILED
		       : mmap(NULL, BURST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED) {
		if (page->magic == BURST_MAGIC) {
			page->rates = *rates;
			__atomic_fetch_add(&page->changed, 1, __ATOMIC_RELEASE);
			rc = 0;
		}
		munmap(page, BURST_PAGE);
	}
	return rc ? err_set(e, rc, "%s: no file of bursts", path) : 0;
}
