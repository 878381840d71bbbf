#include "edit/note.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "image/elf_file.h"

/*
 * The note, name "culprit", type 1. Its descriptor:
 *
 *   offset  size
 *        0     1  version, 1
 *        1     1  length of the original's identity
 *        2     1  1 when that is a hash of the contents
 *        3     1  0
 *        4     4  length of what the kind adds
 *        8    16  kind, padded with NUL
 *       24    32  identity, padded with 0
 *       56     n  what the kind adds; up to the next multiple of 8: 0
 */
enum { NOTE_TYPE = 1, NOTE_VERSION = 1, NOTES_MAX = 1 << 16 };
static const char name[8] = "culprit";

void edit_note_put(struct buf *out, const struct edit_note *note)
{
	static const uint8_t zeros[8];
	char kind[EDIT_KIND_MAX] = {0};
	size_t fill = -note->size & 7;

	buf_u32(out, sizeof name);
	buf_u32(out, (uint32_t)(56 + note->size + fill));
	buf_u32(out, NOTE_TYPE);
	buf_put(out, name, sizeof name);
	buf_u8(out, NOTE_VERSION);
	buf_u8(out, note->original.size);
	buf_u8(out, note->original.is_hash);
	buf_u8(out, 0);
	buf_u32(out, (uint32_t)note->size);
	snprintf(kind, sizeof kind, "%s", note->kind);
	buf_put(out, kind, sizeof kind);
	buf_put(out, note->original.bytes, sizeof note->original.bytes);
	buf_put(out, note->more, note->size);
	buf_put(out, zeros, fill);
}

static bool parse(struct cursor c, struct edit_note *out)
{
	struct edit_note note = {0};
	uint8_t version = cursor_u8(&c);
	note.original.size = cursor_u8(&c);
	note.original.is_hash = cursor_u8(&c) == 1;
	cursor_skip(&c, 1);
	note.size = cursor_u32(&c);
	const void *kind = cursor_bytes(&c, sizeof note.kind);
	const void *id = cursor_bytes(&c, sizeof note.original.bytes);
	if (c.failed || version != NOTE_VERSION || note.size > sizeof note.more ||
		note.original.size > sizeof note.original.bytes)
		return false;
	const void *more = cursor_bytes(&c, note.size);
	if (c.failed)
		return false;
	memcpy(note.kind, kind, sizeof note.kind - 1);
	memcpy(note.original.bytes, id, note.original.size);
	if (note.size)
		memcpy(note.more, more, note.size);
	*out = note;
	return true;
}

static bool find(const struct bytes *notes, struct edit_note *out)
{
	struct cursor c = cursor_over(notes->p, notes->n);

	while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		size_t name_size = cursor_u32(&c), size = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const void *owner = cursor_bytes(&c, name_size);
		cursor_skip(&c, -cursor_offset(&c) & 3);
		struct cursor desc = cursor_slice(&c, size);
		if (c.failed)
			return false;
		if (type == NOTE_TYPE && name_size == sizeof name &&
			!memcmp(owner, name, sizeof name) && parse(desc, out))
			return true;
		cursor_skip(&c, -cursor_offset(&c) & 3);
	}
	return false;
}

bool edit_note_find(const struct elf_file *f, struct edit_note *out)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		_cleanup_(bytes_deinit) struct bytes notes = {0};
		if (p->p_type == PT_NOTE && p->p_filesz <= NOTES_MAX &&
			elf_file_read(f, p->p_offset, p->p_filesz, &notes) == 0 &&
			find(&notes, out))
			return true;
	}
	return false;
}
