/*
 * Sequitur (Nevill-Manning and Witten, JAIR 1997): a grammar for a sequence, built while it comes,
 * in linear time. No pair of symbols stands twice in it, and every rule is used at least twice; so
 * what repeats in the sequence is a rule, and memory grows with the grammar, not with the sequence.
 *
 * Where the sequence is cut nothing repeats across: what comes before and behind is never joined.
 */
#ifndef CULPRIT_ANALYZE_SEQUITUR_H
#define CULPRIT_ANALYZE_SEQUITUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sequitur;

#define SEQUITUR_TERMINALS (UINT32_C(1) << 30) /* terminals are below */

struct sequitur *sequitur_create(void);
void sequitur_destroy(struct sequitur *s);

void sequitur_add(struct sequitur *s, uint32_t terminal);
void sequitur_add_all(struct sequitur *s, const uint32_t *terminals, size_t n); /* faster */
void sequitur_cut(struct sequitur *s);

/* ---- the grammar ---- */

/* Rule 0 is the sequence. Numbers of rules that are not used any more have no symbols. */
uint32_t sequitur_rules(const struct sequitur *s);
size_t sequitur_symbols(const struct sequitur *s); /* of all rules */

struct sequitur_symbol {
	enum { SEQUITUR_TERMINAL, SEQUITUR_RULE, SEQUITUR_CUT } kind;
	uint32_t number; /* of the terminal or rule */
};
/* The symbols of a rule, one after the other: *at is 0 at first. False at the end. */
bool sequitur_next(
	const struct sequitur *s, uint32_t rule, uint32_t *at, struct sequitur_symbol *out);

#endif
