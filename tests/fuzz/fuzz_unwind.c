/*
 * Takes the input as .eh_frame with the data of exceptions behind it. All code that is not refused
 * is moved; the new tables must say the same as the old ones.
 */
#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "edit/unwind_rig.h"
#include "image/elf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HEADERS = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), VADDR = 0x10000 };
enum { FAR = 0x20000000, TABLES = 0x30000000 };

/* A file with the input as its only segment, behind a table's header that points to it. */
static int wrap(const uint8_t *data, size_t n)
{
	Elf64_Ehdr h = {.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof h,
		.e_ehsize = sizeof h,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2};
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	static const uint8_t hdr[] = {1, 0x1b, 0xff, 0xff, 4, 0, 0, 0};
	Elf64_Phdr segments[2] = {{.p_type = PT_LOAD,
					  .p_flags = PF_R | PF_X,
					  .p_offset = HEADERS,
					  .p_vaddr = VADDR,
					  .p_filesz = n + sizeof hdr,
					  .p_memsz = n + sizeof hdr},
		{.p_type = PT_GNU_EH_FRAME,
			.p_offset = HEADERS,
			.p_vaddr = VADDR,
			.p_filesz = sizeof hdr,
			.p_memsz = sizeof hdr}};
	struct buf b = {0};
	buf_put(&b, &h, sizeof h);
	buf_put(&b, segments, sizeof segments);
	buf_put(&b, hdr, sizeof hdr);
	buf_put(&b, data, n);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, b.p, b.n) != (ssize_t)b.n)
		abort();
	buf_deinit(&b);
	return fd;
}

static void move(const struct elf_file *f, struct unwind *u)
{
	struct eh_section section;
	struct move m = {0};

	if (eh_section_read(f, &section))
		abort();
	m.old = book_read(section.bytes.p, section.bytes.n, section.vaddr, section.terminated);
	move_all(&m, u, FAR, cut_whole);
	if (unwind_write(u, m.fragments.p, m.fragments.n, move_address, &m, TABLES, &m.out,
		    &m.where, NULL) == 0) {
		m.fresh = book_read(m.out.p + (m.where.eh_frame - TABLES), m.where.eh_frame_size,
			m.where.eh_frame, true);
		if (move_disagreement(&m))
			abort();
	}
	move_deinit(&m);
	bytes_deinit(&section.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_file f;
	struct unwind *u;
	int fd = wrap(data, n);

	if (elf_file_open(&f, fd, "fuzz", NULL) == 0) {
		elf_file_read_sections(&f);
		if (unwind_create(&f, &u, NULL) == 0) {
			move(&f, u);
			unwind_destroy(u);
		}
		elf_file_close(&f);
	}
	close(fd);
	return 0;
}
