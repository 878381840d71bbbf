/*
 * Re-Pair (Larsson and Moffat, DCC 1999): a grammar for a sequence that is there as a whole. The
 * pair of symbols that occurs most becomes a rule, again and again until no pair occurs twice. The
 * other way, beside Sequitur's, to find what repeats: it sees all before it decides, and needs the
 * memory for that (some 40 bytes for each symbol).
 */
#ifndef CULPRIT_ANALYZE_REPAIR_H
#define CULPRIT_ANALYZE_REPAIR_H

#include <stddef.h>

#include "analyze/grammar.h"

/* Of terminals and GRAMMAR_CUT, fewer than UINT32_MAX; the list is used up. */
void repair_grammar(uint32_t *list, size_t n, struct grammar *out);

#endif
