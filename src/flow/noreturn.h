/*
 * Functions that never come back, by their names: abort, exit, __stack_chk_fail and the like, also
 * their stubs in the linkage table. Those that only call such are found by callgraph.h.
 */
#ifndef CULPRIT_FLOW_NORETURN_H
#define CULPRIT_FLOW_NORETURN_H

#include <stdbool.h>

bool noreturn_name(const char *name); /* demangled; may be NULL */

#endif
