/*
 * Which of a weighted list stay when it has become too long, and what each then stands for.
 */
#ifndef CULPRIT_STORE_THIN_H
#define CULPRIT_STORE_THIN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Of n weights, none 0 and n > most, leaves at most `most`; the others become 0. The sum stays, and
 * each weight's expectation is what it was: the sum is cut into equal pieces, and what covers a
 * point drawn in a piece stays and stands for it. So neighbours in the list keep their share
 * together, and a sorted list is thinned evenly.
 */
void thin_weights(uint64_t *weights, size_t n, size_t most, uint64_t seed);

/* A seed from the data itself, number by number: who thins the same again gets the same. */
uint64_t thin_seed(uint64_t seed, uint64_t number);

#endif
