/* How much alike two words are, for those who mistype. */
#ifndef CULPRIT_BASE_NEAR_H
#define CULPRIT_BASE_NEAR_H

#define NEAR_FAR 64

/* Edits (insert, delete, replace) that turn one into the other; long words are NEAR_FAR apart. */
int edit_distance(const char *a, const char *b);

#endif
