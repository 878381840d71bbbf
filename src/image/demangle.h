/*
 * C++ and (legacy) Rust names in the form people write them.
 */
#ifndef CULPRIT_IMAGE_DEMANGLE_H
#define CULPRIT_IMAGE_DEMANGLE_H

/* A malloc'ed readable name, or NULL when the name is not mangled. Symbol versions are cut off. */
char *demangle(const char *name);

#endif
