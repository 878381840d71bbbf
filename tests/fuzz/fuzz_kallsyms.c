/* Makes a kernel of the input as /proc/kallsyms, and of its rest behind a NUL as /proc/modules. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image.h"
#include "image/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char root[64];

static void remove_root(void)
{
	char path[96];
	static const char *const names[] = {"/proc/kallsyms", "/proc/modules", "/proc", ""};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s%s", root, names[i]);
		remove(path);
	}
}

static void make_root(void)
{
	char path[80];
	strcpy(root, "/tmp/culprit-fuzz-XXXXXX");
	if (!mkdtemp(root))
		abort();
	snprintf(path, sizeof path, "%s/proc", root);
	mkdir(path, 0700);
	atexit(remove_root);
}

static void put(const char *name, const uint8_t *p, size_t n)
{
	char path[80];
	snprintf(path, sizeof path, "%s/proc/%s", root, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *nul = n ? memchr(data, 0, n) : NULL;
	size_t first = nul ? (size_t)(nul - data) : n;
	struct kernel *k;
	bool hidden;
	if (!*root)
		make_root();
	put("kallsyms", data, first);
	put("modules", data + first + (nul != NULL), n - first - (nul != NULL));
	if (kernel_create(root, &k, &hidden, NULL) < 0)
		return 0;
	for (uint64_t address = 0xffffffffc0000000; address; address += 0x1000000) {
		uint64_t offset, vaddr;
		const struct segment *segments;
		struct image *im = kernel_image_at(k, address, &offset);
		size_t count = image_segments(im, &segments);
		if (segments_vaddr(segments, count, offset, &vaddr))
			image_procedure_at(im, vaddr);
	}
	kernel_refresh(k);
	kernel_destroy(k);
	return 0;
}
