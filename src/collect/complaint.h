/*
 * What libbpf complained about first while something was loaded; it has no other way to tell than
 * printing. Between begin and end nothing is printed.
 */
#ifndef CULPRIT_COLLECT_COMPLAINT_H
#define CULPRIT_COLLECT_COMPLAINT_H

void complaint_begin(void);

/* ": what it was", or "". Good until the next begin of this thread. */
const char *complaint_end(void);

#endif
