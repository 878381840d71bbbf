#include "edit/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "rt/rt.h"

static void add(uint64_t *to, const uint64_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] += from[i];
}

static int add_blocks(int fd, uint64_t size, struct counts *c)
{
	struct rt_directory d;
	uint64_t first = c->bytes + RT_DIRECTORY, bytes, most;
	int rc;

	if (size < first || (rc = io_pread_full(fd, &d, sizeof d, (off_t)c->bytes)) < 0 ||
		d.magic != RT_DIRECTORY_MAGIC)
		return 0;
	bytes = d.block && d.block <= c->bytes ? d.block : c->bytes;
	c->by_thread = true;
	most = (size - first) / bytes;
	c->blocks = d.used < most ? d.used : (uint32_t)most;
	c->together = d.short_of;
	for (uint64_t i = 0; i < c->blocks; i++) {
		uint64_t *block =
			mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)(first + i * bytes));
		if (block == MAP_FAILED)
			return -errno;
		add(c->p, block, bytes / sizeof *block);
		munmap(block, bytes);
	}
	return 0;
}

int counts_map(const char *path, uint64_t bytes, struct counts *out, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct counts c = {.bytes = bytes};
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s: cannot be read", path);
	if (!bytes || (uint64_t)st.st_size < bytes)
		return err_set(e, -EBADMSG, "%s: is too short", path);
	c.p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (c.p == MAP_FAILED)
		return err_errno(e, -errno, "%s: cannot be read", path);
	rc = add_blocks(fd, (uint64_t)st.st_size, &c);
	if (rc) {
		counts_unmap(&c);
		return err_errno(e, rc, "%s: cannot be read", path);
	}
	*out = c;
	return 0;
}

void counts_unmap(struct counts *c)
{
	munmap(c->p, c->bytes);
}
