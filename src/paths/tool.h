/* Counting paths as a tool (edit/tool.h), for whoever keeps edited copies. */
#ifndef CULPRIT_PATHS_TOOL_H
#define CULPRIT_PATHS_TOOL_H

#include "edit/tool.h"
#include "paths/paths.h"

/* o->counts is not used; o outlives the tool. */
void paths_tool(const struct paths_options *o, struct edit_tool *out);

#endif
