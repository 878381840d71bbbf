/*
 * Basic blocks of programs, one a line in hexadecimal, each once: code between targets of branches
 * in .text, less the transfer at its end. A sample of at most COUNT of each file, evenly spread.
 *
 *	build/models/blocks COUNT FILE...
 */
#include "isa/decode.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct text {
	const uint8_t *code;
	uint64_t address;
	size_t size;
};

static int find_text(const uint8_t *file, struct text *t)
{
	const Elf64_Ehdr *eh = (const void *)file;
	const Elf64_Shdr *sh = (const void *)(file + eh->e_shoff);
	const char *names = (const char *)file + sh[eh->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < eh->e_shnum; i++) {
		if (strcmp(names + sh[i].sh_name, ".text"))
			continue;
		*t = (struct text){file + sh[i].sh_offset, sh[i].sh_addr, sh[i].sh_size};
		return 0;
	}
	return -1;
}

static void mark_targets(const struct text *t, uint8_t *target)
{
	struct insn insn;

	for (size_t at = 0; at < t->size; at += insn.length) {
		if (isa_decode(t->code + at, t->size - at, t->address + at, &insn)) {
			insn.length = 1;
			continue;
		}
		if (insn.target - t->address < t->size)
			target[insn.target - t->address] = 1;
	}
}

static void put_block(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", code[i]);
	putchar('\n');
}

/* Conditional branches belong to their block, all other transfers are cut off. */
static size_t find_blocks(const struct text *t, const uint8_t *target, size_t every)
{
	size_t start = 0, count = 0, insns = 0;
	struct insn insn;

	for (size_t at = 0; at < t->size; at += insn.length) {
		bool bad = isa_decode(t->code + at, t->size - at, t->address + at, &insn);
		bool ends = bad || insn.kind != INSN_PLAIN;

		if (bad)
			insn.length = 1;
		if (target[at] || ends) {
			size_t end = !bad && insn.kind == INSN_BRANCH && !target[at]
					     ? at + insn.length
					     : at;

			if (insns >= 2 && insns <= 64 && count++ % every == 0)
				put_block(t->code + start, end - start);
			start = ends ? at + insn.length : at;
			insns = 0;
		}
		insns += !ends;
	}
	return count;
}

static void run(const char *path, size_t want)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct text t;
	uint8_t *file, *target;

	if (fd < 0 || fstat(fd, &st) ||
		(file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) ==
			MAP_FAILED ||
		find_text(file, &t)) {
		perror(path);
		exit(1);
	}
	target = calloc(t.size, 1);
	mark_targets(&t, target);
	/* About every seventh byte begins an instruction, every fifth of them a block. */
	find_blocks(&t, target, t.size / 20 / want + 1);
	free(target);
	munmap(file, (size_t)st.st_size);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++)
		run(argv[i], strtoul(argv[1], NULL, 10));
	return 0;
}
