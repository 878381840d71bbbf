/*
 * An image: a file (or the kernel) whose instructions can be sampled.
 *
 * Addresses are file virtual addresses, those that `objdump -d` prints. Samples arrive as file
 * offsets (what a mapping gives); segments_vaddr turns one into the other through the loadable
 * segments. An image never maps its file, so nobody can hurt a reader by truncating it. Procedures
 * and their names live as long as the image (those of the kernel until kernel_refresh). Not
 * thread-safe.
 */
#ifndef CULPRIT_IMAGE_IMAGE_H
#define CULPRIT_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct buf;

enum image_kind {
	IMAGE_ELF,    /* an executable or a shared library */
	IMAGE_KERNEL, /* vmlinux, as /proc/kallsyms shows it */
	IMAGE_MODULE, /* a kernel module, or "[bpf]": code the kernel made itself */
	IMAGE_VDSO,
	IMAGE_JIT,     /* perf-PID.map; offsets are addresses in the process */
	IMAGE_ANON,    /* executable memory without a file or a map; offsets are addresses */
	IMAGE_UNKNOWN, /* samples whose mapping nobody saw; offsets are addresses */
};

/* The stable identity of an image, also the key in the database. */
struct image_id {
	uint8_t size; /* 0: none */
	bool is_hash; /* made by us from the contents, for want of a build-id */
	uint8_t bytes[32];
};
#define IMAGE_ID_TEXT 72
/* Hex, with "hash:" in front when is_hash; "" when there is none. Returns text. */
const char *image_id_text(const struct image_id *id, char text[static IMAGE_ID_TEXT]);
bool image_id_parse(const char *text, struct image_id *id);
bool image_id_equal(const struct image_id *a, const struct image_id *b);

struct range {
	uint64_t start, size;
};

/* Whether one of them ends there: where compilers let values lead that never come. */
static inline bool ranges_end_at(const struct range *r, uint32_t n, uint64_t address)
{
	for (uint32_t i = 0; i < n; i++)
		if (address == r[i].start + r[i].size)
			return true;
	return false;
}

/* A loadable, executable segment. */
struct segment {
	uint64_t offset, size, vaddr;
};

enum procedure_source {
	PROCEDURE_SYMBOL,   /* .symtab, .dynsym, a debug file, kallsyms */
	PROCEDURE_EH_FRAME, /* extent from .eh_frame, no name */
	PROCEDURE_PLT,      /* a stub, named "puts@plt" */
	PROCEDURE_JIT,
	PROCEDURE_GAP, /* code that nothing describes: from the end of one function to the next */
};

/*
 * A procedure: its entry, and all the ranges that belong to it (first the one that holds the entry;
 * then .cold fragments and the like).
 */
struct procedure {
	uint64_t start;
	const struct range *ranges;
	uint32_t nranges;
	enum procedure_source source;
	const char *name; /* demangled; NULL when nothing names it */
};

/* "gzip!0x4330" for a procedure without a name: the base name of the image and the start. */
const char *procedure_label(
	const struct procedure *p, const char *image_path, char *text, size_t size);

/* The address in such a label, "0x4330"; the whole text must be one. */
bool label_address(const char *text, uint64_t *out);

struct image;

/*
 * Reads an ELF file: identity and segments at once, functions on first use. `path` is for messages
 * and for finding separate debug files; the bytes come from fd, which stays the caller's and may be
 * closed after the call (the image keeps a duplicate until image_release). -ENOEXEC when it is no
 * x86-64 ELF file, -EBADMSG when it is damaged.
 */
int image_open(const char *path, int fd, struct image **out, struct err *e);
int image_open_path(const char *path, struct image **out, struct err *e);
void image_destroy(struct image *im);

/*
 * Lets go of the file; functions are read before, if they were not, so that look-ups go on working.
 * image_code then opens the path again and takes it only if it is still the same image.
 */
void image_release(struct image *im);
/* Opens it again for many image_code, until it is released; false when it was not let go of. */
bool image_hold(struct image *im);

enum image_kind image_kind(const struct image *im);
const char *image_path(const struct image *im);
const struct image_id *image_id(const struct image *im);
size_t image_segments(const struct image *im, const struct segment **out);

/* File offset to virtual address through segments; false when no segment covers it. */
bool segments_vaddr(const struct segment *s, size_t n, uint64_t offset, uint64_t *vaddr);

/* The procedure that covers vaddr, or NULL when the image has no code there. */
const struct procedure *image_procedure_at(struct image *im, uint64_t vaddr);
/* Only where that one starts, which is much cheaper; false when the image has no code there. */
bool image_procedure_start(struct image *im, uint64_t vaddr, uint64_t *start);
size_t image_procedures(struct image *im, const struct procedure **out); /* by start */

/* The procedures that have a name and whose name the caller likes; the others are not even made. */
typedef bool image_likes_fn(void *arg, const char *name);
typedef void image_found_fn(void *arg, const struct procedure *p);
void image_search(struct image *im, image_likes_fn *likes, image_found_fn *found, void *arg);

/* Appends the code bytes of a range; -ENOENT where the file has none, -EBADMSG when it is short. */
int image_code(struct image *im, const struct range *r, struct buf *out);

/* Lets go of what was made for those who asked: procedures got before are gone. */
void image_forget(struct image *im);

/* Bytes of memory that the image holds, for accounting. */
size_t image_memory(const struct image *im);

/* Reads only identity and segments from an open file, cheaper than image_open. */
int image_identify(int fd, struct image_id *id, struct err *e);

#endif
