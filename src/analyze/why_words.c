/* How causes and culprits are called. Letters are unique among both: they stand in one column. */
#include "analyze/why.h"

struct words {
	const char *name, *title;
	char letter;
};

static const struct words culprits[CULPRITS] = {
	[CULPRIT_DCACHE] = {"dcache", "D-cache miss", 'd'},
	[CULPRIT_DTLB] = {"dtlb", "DTLB miss", 'D'},
	[CULPRIT_MISPREDICT] = {"mispredict", "branch mispredict", 'p'},
	[CULPRIT_ICACHE] = {"icache", "I-cache miss", 'i'},
	[CULPRIT_ITLB] = {"itlb", "ITLB miss", 'I'},
	[CULPRIT_FRONTEND] = {"frontend", "fetch and decode", 'f'},
	[CULPRIT_STORE_BUFFER] = {"store_buffer", "store buffer full", 'w'},
	[CULPRIT_FORWARDING] = {"forwarding", "blocked store forwarding", 'b'},
	[CULPRIT_ALIAS] = {"alias", "4K aliasing", 'k'},
	[CULPRIT_DIVIDER] = {"divider", "divider", 'v'},
	[CULPRIT_LOCKED] = {"locked", "locked operation", 'l'},
	[CULPRIT_SERIALISING] = {"serialising", "serialising operation", 'z'},
	[CULPRIT_CLEAR] = {"clear", "machine clear", 'c'},
	[CULPRIT_ASSIST] = {"assist", "microcode assist", 'm'},
	[CULPRIT_CALLEE] = {"callee", "return of a callee", 'r'},
	[CULPRIT_STEAL] = {"steal", "time that the hypervisor took", 'h'},
};

static const struct words causes[WHY_CAUSES] = {
	[WHY_OPERAND] = {"operand", "operand of another instruction", 'a'},
	[WHY_STORED] = {"stored", "what another instruction stores", 's'},
	[WHY_LATENCY] = {"latency", "its own latency", 't'},
	[WHY_UNIT] = {"unit", "competition for units", 'u'},
	[WHY_FRONT] = {"front", "width of the front end", 'e'},
	[WHY_WINDOW] = {"window", "room in the window", 'n'},
	[WHY_ORDER] = {"order", "order of operations", 'o'},
};

const char *culprit_name(enum culprit c)
{
	return culprits[c].name;
}

const char *culprit_title(enum culprit c)
{
	return culprits[c].title;
}

char culprit_letter(enum culprit c)
{
	return culprits[c].letter;
}

const char *why_cause_name(enum why_cause c)
{
	return causes[c].name;
}

const char *why_cause_title(enum why_cause c)
{
	return causes[c].title;
}

char why_cause_letter(enum why_cause c)
{
	return causes[c].letter;
}
