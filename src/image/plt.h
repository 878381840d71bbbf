/*
 * The stubs of the procedure linkage table (.plt, .plt.sec, .plt.got), one part each, named after
 * the function they jump to: "puts@plt".
 */
#ifndef CULPRIT_IMAGE_PLT_H
#define CULPRIT_IMAGE_PLT_H

#include <stdbool.h>

struct arena;
struct elf_file;
struct parts;
struct symbols;

bool plt_is_section(const char *name);

/*
 * Appends the stubs to ps; names live in the arena. symbols (chosen, by start) name the resolvers
 * of IRELATIVE relocations.
 */
void plt_read(const struct elf_file *f, const struct symbols *symbols, struct arena *names,
	struct parts *ps);

#endif
