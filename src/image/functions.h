/*
 * Puts the functions of an ELF file together from all that describes them: .eh_frame gives extents,
 * symbol tables (also of a separate debug file) give names, relocations name the linkage stubs.
 */
#ifndef CULPRIT_IMAGE_FUNCTIONS_H
#define CULPRIT_IMAGE_FUNCTIONS_H

struct elf_file;
struct image_id;
struct procedures;

/*
 * Fills an empty table. Never fails: what is damaged contributes nothing, and code that nothing
 * describes becomes gaps. The file must have its sections read (elf_file_read_sections).
 */
void functions_read(const char *path, const struct image_id *id, const struct elf_file *f,
	struct procedures *out);

#endif
