/*
 * Where indirect jumps go: jump tables of switches and computed gotos, and jumps that leave the
 * procedure.
 *
 * A table is proved when the index is bounded on all paths and all entries up to the bound lie in
 * the procedure, on instructions. What is found otherwise is marked as not proved.
 */
#ifndef CULPRIT_FLOW_TABLES_H
#define CULPRIT_FLOW_TABLES_H

struct builder;

/* Fills in b->jumps and b->targets and makes the blocks anew. */
void tables_resolve(struct builder *b);

#endif
