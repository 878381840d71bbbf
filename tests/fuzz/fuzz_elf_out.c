/* Edits the input as an ELF file in every way that elf_out knows, and reads the result again. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "edit/elf_out.h"
#include "edit/note.h"
#include "image/elf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void change(struct elf_out *o)
{
	const struct elf_file *f = elf_out_file(o);
	struct buf code = {0};
	uint64_t text = elf_out_data(o, 100);

	buf_str(&code, "code");
	elf_out_section(o, ".text", SHT_PROGBITS, SHF_ALLOC, text, code.n, 16);
	elf_out_segment(o, text, PF_R | PF_X, &code);
	elf_out_symbol(o, "f", text, 4);
	elf_out_unwind(o, text, 4);
	elf_out_start(o, text, NULL);
	for (size_t i = 0; i < f->nsegments; i++) {
		elf_out_pointer(o, f->segments[i].p_vaddr, text, NULL);
		elf_out_patch(o, f->segments[i].p_vaddr + 8, "x", 1, NULL);
	}
}

/* Whatever was edited is recognised, unless the damage led a patch into its headers. */
static void check(const char *path)
{
	struct elf_file f;
	struct edit_note note;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		abort();
	if (elf_file_open(&f, fd, path, NULL) == 0) {
		if (edit_note_find(&f, &note) && strcmp(note.kind, "null"))
			abort();
		elf_file_close(&f);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_out *o = NULL;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	if (elf_out_create("fuzz", fd, &o, NULL) == 0) {
		snprintf(path, sizeof path, "/dev/shm/culprit-fuzz-%d", (int)getpid());
		change(o);
		if (elf_out_write(o, path, NULL) == 0)
			check(path);
		unlink(path);
	}
	elf_out_destroy(o);
	close(fd);
	return 0;
}
