/*
 * UTF-8, read one code point at a time.
 */
#ifndef CULPRIT_BASE_UTF8_H
#define CULPRIT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_BAD = 0xfffd };

/*
 * The code point at s, which is NUL-terminated and not at its end; *n becomes the bytes it takes.
 * A byte that starts no well-formed sequence (overlong, surrogate, past U+10FFFF, cut off) is
 * UTF8_BAD with *n 1.
 */
uint32_t utf8_decode(const char *s, size_t *n);

#endif
