/*
 * How much each excursion stands for, and what all of them say about how often procedures ran.
 *
 * Excursions begin where time is spent, so a fast phase of a program is seen by fewer of them than
 * ran in it. How long one took nobody knows, but what ran in it is known, and what that takes on
 * the average: samples over how often it ran. An excursion through code that is twice as fast
 * stands for twice as many instructions. (What makes the same code fast or slow is not seen; that
 * evens out as far as it changes within the tens of thousands of instructions that one is long.)
 *
 * Excursions see all procedures alike that come by in them, so they tell how often one runs in
 * comparison with another, which bursts do not: these begin in each as often as time is spent
 * there. Of what never comes by in the same excursions they say nothing: how many see a phase goes
 * by its time, and how fast it is nobody knows.
 */
#ifndef CULPRIT_ANALYZE_EXCURSIONS_H
#define CULPRIT_ANALYZE_EXCURSIONS_H

#include "analyze/frequencies.h"

/*
 * Gives the passages of an image's evidence their weights, by its frequencies as they are, each
 * row's times a factor. *changed tells the rows whose weights are much different from before.
 */
void excursions_weigh(struct frequencies_row *rows, size_t n, const double *factor, bool *changed);

struct excursions_term {
	uint32_t row;
	double share;
};

/*
 * That a row ran exp(says) times as often as its counts and factor tell, if those of the terms are
 * right. Its own factor is one of the terms: where nobody else is, nothing is said. Excursions are
 * slow in comparison with all of the time: where all factors are higher by the same, none is
 * slower. So the shares are those of factors over their mean, by what each row executes of all.
 */
struct excursions_word {
	uint32_t row;
	double says, variance;
	struct excursions_term *terms; /* shares add up to 1 at most */
	size_t nterms;
};

/* By the weights at these factors; of rows that have a number (others: GRAPH_NONE). In *out. */
size_t excursions_compare(const struct frequencies_row *rows, size_t n, const double *factor,
	const uint32_t *number, struct excursions_word **out);
/* Each row's part of what those with a number execute, at these factors. */
void excursions_parts(const struct frequencies_row *rows, size_t n, const double *factor,
	const uint32_t *number, double *part);
void excursions_words_free(struct excursions_word *list, size_t n);

#endif
