#include "edit/runtime.h"

#include <elf.h>
#include <string.h>

#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "image/elf_file.h"
#include "rt/routines.h"

static const uint8_t blob[] = {
#include "rt/blob.h"
};

static const uint8_t frames[] = {
#include "rt/frames.h"
};

static void fill_header(void *arg, uint8_t *copy, uint64_t address, uint64_t then)
{
	struct rt_header *h = (struct rt_header *)copy;
	struct edit *e = arg;

	h->address = address;
	h->next = then;
	h->last = elf_out_last(e->out);
	if (h->ends && !elf_out_finish(e->out, address + RT_FINISH))
		h->ends = 0;
	/* Debuggers end a backtrace in the function that has the program's entry. */
	elf_out_symbol(e->out, "culprit_start", address + RT_START, RT_REST - RT_START);
	elf_out_symbol(e->out, "culprit_runtime", address + RT_REST, sizeof blob - RT_REST);
}

struct rt_header *runtime_header(struct edit *e)
{
	if (!e->runtime.n) {
		edit_runtime(e, blob, sizeof blob, RT_START, fill_header, e);
		buf_put(&e->frames, frames, sizeof frames);
		e->frames_at = RT_FRAMES;
	}
	return (struct rt_header *)e->runtime.p;
}

size_t runtime_append(struct edit *e, const void *p, size_t n)
{
	struct buf *b = &e->runtime;

	runtime_header(e);
	while (b->n % 8)
		buf_u8(b, 0);
	buf_put(b, p, n);
	return b->n - n;
}

/* ---- whose threads they are ---- */

enum { DYNAMIC_MOST = 4096 };

static const Elf64_Phdr *segment(const struct elf_file *f, uint32_t type)
{
	for (size_t i = 0; i < f->nsegments; i++)
		if (f->segments[i].p_type == type)
			return &f->segments[i];
	return NULL;
}

static bool is_text(const struct elf_out *o, uint64_t at, const char *expected)
{
	size_t n = strlen(expected) + 1;
	const uint8_t *text = elf_out_bytes(o, at, n);

	return text && !memcmp(text, expected, n);
}

static bool is_glibcs_linker(const struct elf_out *o, const Elf64_Phdr *interpreter)
{
	static const char name[] = "/ld-linux-x86-64.so.2";

	return interpreter->p_filesz >= sizeof name &&
	       is_text(o, interpreter->p_vaddr + interpreter->p_filesz - sizeof name, name);
}

/* The value of a tag's n-th entry. */
static bool dynamic(const struct elf_out *o, int64_t tag, uint64_t nth, uint64_t *value)
{
	const Elf64_Phdr *p = segment(elf_out_file(o), PT_DYNAMIC);
	Elf64_Dyn d;

	for (uint64_t n = 0; p && n < p->p_filesz / sizeof d && n < DYNAMIC_MOST; n++) {
		const uint8_t *at = elf_out_bytes(o, p->p_vaddr + n * sizeof d, sizeof d);
		if (!at)
			return false;
		memcpy(&d, at, sizeof d);
		if (d.d_tag == DT_NULL)
			return false;
		if (d.d_tag != tag || nth--)
			continue;
		*value = d.d_un.d_val;
		return true;
	}
	return false;
}

/* Some libraries need none at all: they have that of whoever loads them. */
static bool needs_other_libc(const struct elf_out *o)
{
	uint64_t strings, name;

	for (uint64_t n = 0; dynamic(o, DT_STRTAB, 0, &strings) && dynamic(o, DT_NEEDED, n, &name);
		n++) {
		const uint8_t *text = elf_out_bytes(o, strings + name, 5);
		if (text && !memcmp(text, "libc.", 5) && !is_text(o, strings + name, "libc.so.6"))
			return true;
	}
	return false;
}

bool runtime_has_thread_words(const struct edit *e, const char **why)
{
	const Elf64_Phdr *interpreter = segment(elf_out_file(e->out), PT_INTERP);

	if (interpreter && !is_glibcs_linker(e->out, interpreter))
		*why = "it does not use glibc's dynamic linker";
	else if (!segment(elf_out_file(e->out), PT_DYNAMIC))
		*why = "it is static";
	else if (needs_other_libc(e->out))
		*why = "it needs another libc than glibc";
	else
		return true;
	return false;
}
