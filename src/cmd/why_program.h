/*
 * Where the cycles of all that is selected went: the summary of the paper's Figure 4 over all
 * procedures, and the instructions that lose most to stalls.
 */
#ifndef CULPRIT_CMD_WHY_PROGRAM_H
#define CULPRIT_CMD_WHY_PROGRAM_H

struct err;
struct report;

int why_program(struct report *r, struct err *e); /* selects, analyses and prints */

#endif
