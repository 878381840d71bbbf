/* This machine, as databases name it. */
#ifndef CULPRIT_COLLECT_HOST_H
#define CULPRIT_COLLECT_HOST_H

#include <stdint.h>

struct err;
struct store;

/* Finds or adds it: name, machine-id, processor and kernel. */
int host_put(struct store *s, int64_t *id, struct err *e);

#endif
