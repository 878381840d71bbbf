/*
 * Sequitur (Nevill-Manning and Witten, JAIR 1997): a grammar for a sequence, built while it comes,
 * in linear time. No pair of symbols stands twice in it, and every rule is used at least twice; so
 * what repeats in the sequence is a rule, and memory grows with the grammar, not with the sequence.
 *
 * Where the sequence is cut nothing repeats across: what comes before and behind is never joined.
 */
#ifndef CULPRIT_ANALYZE_SEQUITUR_H
#define CULPRIT_ANALYZE_SEQUITUR_H

#include <stddef.h>
#include <stdint.h>

#include "analyze/grammar.h"

struct sequitur;

struct sequitur *sequitur_create(void);
void sequitur_destroy(struct sequitur *s);

void sequitur_add(struct sequitur *s, uint32_t terminal);
void sequitur_add_all(struct sequitur *s, const uint32_t *terminals, size_t n); /* faster */
void sequitur_cut(struct sequitur *s);

size_t sequitur_symbols(const struct sequitur *s); /* of all rules */
/* As it is now; numbers of rules that are not used any more have no symbols. */
void sequitur_grammar(const struct sequitur *s, struct grammar *out);

#endif
