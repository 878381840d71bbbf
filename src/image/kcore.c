#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"
#include "image/image_internal.h"

enum { SEGMENTS_MAX = 4096 };

/* /proc/kcore is a core file whose segments are the kernel's address space. */
static int find_offset(int fd, uint64_t address, uint64_t size, uint64_t *offset)
{
	Elf64_Ehdr h;
	if (io_pread_full(fd, &h, sizeof h, 0) < 0 || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
		h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof(Elf64_Phdr) ||
		h.e_phnum > SEGMENTS_MAX)
		return -ENOENT;
	_cleanup_free_ Elf64_Phdr *segments = xcalloc(h.e_phnum, sizeof *segments);
	if (io_pread_full(fd, segments, h.e_phnum * sizeof *segments, h.e_phoff) < 0)
		return -ENOENT;
	for (size_t i = 0; i < h.e_phnum; i++) {
		const Elf64_Phdr *p = &segments[i];
		uint64_t into = address - p->p_vaddr;
		if (p->p_type != PT_LOAD || address < p->p_vaddr || into >= p->p_filesz ||
			size > p->p_filesz - into)
			continue;
		*offset = p->p_offset + into;
		return 0;
	}
	return -ENOENT;
}

int kcore_read(const char *root, uint64_t address, uint64_t size, struct buf *out)
{
	_cleanup_free_ char *path = xasprintf("%s/proc/kcore", root);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t offset;
	if (fd < 0 || find_offset(fd, address, size, &offset) < 0)
		return -ENOENT;
	buf_reserve(out, size);
	if (io_pread_full(fd, out->p + out->n, size, offset) < 0)
		return -ENOENT;
	out->n += size;
	return 0;
}
