/*
 * Writes JSON to a stream; commas and indentation are its business.
 *
 *     json_open(j, '{'); json_key(j, "rows"); json_open(j, '['); ... json_close(j); json_close(j);
 *
 * What stands in an array is printed one element a line, everything else one member a line.
 * Strings are escaped; bytes that are not UTF-8 become U+FFFD. Doubles print shortest-round-trip
 * and never NaN or Infinity (null instead).
 */
#ifndef CULPRIT_BASE_JSON_H
#define CULPRIT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth, rows; /* rows: the depth from which all stands on one line, 0 for none yet */
	char kind[32];   /* what is open at each depth: '{' or '[' */
	bool first[32], after_key;
};

void json_init(struct json *j, FILE *out);
void json_open(struct json *j, char kind);
void json_close(struct json *j); /* also ends the line when the outermost closes */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s); /* NULL gives null */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_double(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_addr(struct json *j, uint64_t v); /* the string "0x4330" */

/* Key and value in one line. */
void json_kstr(struct json *j, const char *key, const char *s);
void json_kint(struct json *j, const char *key, int64_t v);
void json_kuint(struct json *j, const char *key, uint64_t v);
void json_kdouble(struct json *j, const char *key, double v);
void json_kshare(struct json *j, const char *key, double v); /* a fraction, to nine decimals */
void json_kbool(struct json *j, const char *key, bool v);
void json_kaddr(struct json *j, const char *key, uint64_t v);

#endif
