/*
 * What a command runs: the program (of a script, its interpreter) and the libraries that it is
 * linked with, as the dynamic linker finds them.
 */
#ifndef CULPRIT_EDIT_LINKED_H
#define CULPRIT_EDIT_LINKED_H

#include "base/vec.h"

struct err;

typedef VEC(char *) path_list;
void path_list_deinit(path_list *l);

/* The path of the program, without symbolic links; to be freed. -ENOENT, -EACCES, -ENOEXEC. */
int linked_program(const char *command, char **out, struct err *e);

/* Appends the paths of its libraries, the dynamic linker included; none when it is static. */
int linked_libraries(const char *program, path_list *out, struct err *e);

#endif
