/*
 * A procedure's control-flow graph in Graphviz's language: blocks coloured by time, edges as thick
 * as they are frequent, drawn through where their count is sure, dashed and dotted where it is less
 * so.
 */
#ifndef CULPRIT_CMD_CFG_DOT_H
#define CULPRIT_CMD_CFG_DOT_H

#include "cmd/why_view.h"

/* Blocks that seldom or never ran are left out unless view->everything; full: all instructions. */
void cfg_dot(const struct why_view *v, bool full, FILE *out);

#endif
