/*
 * The tool that counts by calling context (Ammons, Ball and Larus 1997, section 4): edits a file so
 * that its procedures build a calling context tree (rt/context.h) while they run.
 *
 * A procedure that calls others keeps its record in a word of its frame, and before each call sets
 * the thread's word to the slot of that call site. At its entry it finds its record there, and when
 * it returns it puts the word back, so that code which announces nothing (libraries that are not
 * edited, the kernel that runs a signal handler) has its callees under the call that led to it. A
 * procedure that calls nobody, and is called only by procedures of the file that know it, needs no
 * code at all: its callers count for it. Nothing has to be put right after longjmp, exceptions or
 * switches of stacks, since who calls announces it from his own frame.
 *
 * Who leaves by a jump to another procedure is shown as its caller, unless it may be called by
 * others itself: then what it jumps to is shown as called by its own caller.
 *
 * With metrics they are read before calls, at returns, and at entries that nobody may have
 * announced; what passed since the last reading belongs to the record that was active. Functions
 * that are not edited count as part of their callers.
 */
#ifndef CULPRIT_CONTEXT_CONTEXT_H
#define CULPRIT_CONTEXT_CONTEXT_H

#include <stdbool.h>

#include "edit/measure.h"
#include "edit/tool.h"

struct guide;

struct context_options {
	bool atomic;              /* exact also where processes count at once; slower */
	struct measures measures; /* of each context, without its callees */
	bool paths; /* count the paths of each context (path_words.h); then these are measured */
	bool full;  /* all of them whole; slower */
	const struct guide *guide; /* what earlier runs counted of them; NULL: nobody knows */
};

/* The options must outlive it. */
void context_tool(const struct context_options *o, struct edit_tool *out);

#endif
