/*
 * Halves of functions that the compiler placed apart (foo.cold) find the function they belong to.
 */
#ifndef CULPRIT_IMAGE_FRAGMENTS_H
#define CULPRIT_IMAGE_FRAGMENTS_H

struct elf_file;
struct parts;
struct symbols;

/* By name: foo.cold belongs to foo. All aliases are needed, so before symbols_choose. */
struct cold_names;
struct cold_names *cold_names_create(const struct symbols *all);
void cold_names_destroy(struct cold_names *names);
void fragments_join_names(struct parts *ps, const struct cold_names *names);

/*
 * By the code, for those without names: one pass over the executable segments. A part that is
 * entered in the middle of a frame belongs to the function that jumps into it. One that is entered
 * like a function but lies away from its neighbour in .eh_frame belongs to that neighbour when the
 * neighbour jumps to it and nothing else in the code refers to it.
 */
void fragments_join_jumps(struct parts *ps, const struct elf_file *f);

#endif
