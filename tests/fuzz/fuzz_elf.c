/* Opens the input as an ELF file and asks it everything: procedures, code, unwind rows, lines. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "image/frames.h"
#include "image/image.h"
#include "image/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void ask(struct image *im)
{
	const struct procedure *all;
	size_t count = image_procedures(im, &all);
	struct buf code = {0};
	for (size_t i = 0; i < count; i++) {
		for (uint32_t r = 0; r < all[i].nranges; r++) {
			const struct range *range = &all[i].ranges[r];
			uint64_t start;
			if (image_procedure_at(im, range->start) != &all[i] ||
				image_procedure_at(im, range->start + range->size - 1) != &all[i] ||
				!image_procedure_start(im, range->start, &start) ||
				start != all[i].start)
				abort();
			code.n = 0;
			if (range->size < 1 << 16)
				image_code(im, range, &code);
		}
	}
	image_procedure_at(im, 0x1000);
	buf_deinit(&code);
}

static void ask_frames(struct image *im)
{
	const struct procedure *all;
	size_t count = image_procedures(im, &all);
	struct frames *f;
	if (frames_open(im, &f) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		frames_at(f, all[i].start);
	frames_at(f, 0x1000);
	frames_destroy(f);
}

static void ask_lines(int fd)
{
	char path[32];
	struct lines *l;
	struct line line;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (lines_open(path, NULL, &l, NULL) < 0)
		return;
	for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 0x80)
		lines_at(l, vaddr, &line);
	lines_destroy(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct image *im;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	if (image_open("fuzz", fd, &im, NULL) == 0) {
		ask(im);
		ask_frames(im);
		image_release(im);
		image_destroy(im);
		ask_lines(fd);
	}
	close(fd);
	return 0;
}
