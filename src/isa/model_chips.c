#include "isa/model_internal.h"

#include <cpuid.h>
#include <string.h>

/*
 * The cores' limits. LLVM schedules Intel's cores as if six micro-ops entered the window in each
 * cycle, since it counts them before fusion; its scheduler and window of some others are those of
 * an older core. Sources:
 *  Intel: uiCA's microArchConfigs.py (issue, retirement, reorder buffer, scheduler, moves that are
 *    eliminated) for Haswell, Skylake and Ice Lake; for the two newest Intel's Optimization
 *    Reference Manual (248966), "Golden Cove": 6 wide, 512 entries, 8 retired; queues as LLVM.
 *    Moves of Ice Lake's general registers, which uiCA has as not eliminated, were measured to be
 *    on a server (family 6, model 106): mov, add, mov in a chain took 1.4 cycles, not 3.
 *    Load and store queues are those of the manual's tables of the cores.
 *  AMD: Software Optimization Guides 56305 (Zen 2: 6 macro-ops dispatched, 224 entries) and 58455
 *    (Zen 5: 8 macro-ops dispatched, 448 entries); all else as LLVM.
 */
#define HASWELL                                                                      \
	.width = 4, .retire = 4, .window = 192, .load_queue = 72, .store_queue = 42, \
	.integer_moves = 4, .vector_moves = 4, .nqueues = 1, .queue = {60}
#define SKYLAKE                                                                      \
	.width = 4, .retire = 4, .window = 224, .load_queue = 72, .store_queue = 56, \
	.integer_moves = 4, .vector_moves = 4, .nqueues = 1, .queue = {97}
#define ICELAKE                                                                       \
	.width = 5, .retire = 5, .window = 352, .load_queue = 128, .store_queue = 72, \
	.integer_moves = 5, .vector_moves = 5, .nqueues = 1, .queue = {160}
#define GOLDEN_COVE                                                                    \
	.width = 6, .retire = 8, .window = 512, .load_queue = 192, .store_queue = 114, \
	.integer_moves = 6, .vector_moves = 6, .nqueues = 3, .queue = {112, 72, 48},   \
	.renames_memory = true
#define ZEN2                                                                                       \
	.width = 6, .retire = 8, .window = 224, .integers = 180, .vectors = 160, .load_queue = 44, \
	.store_queue = 48, .integer_moves = 6, .vector_moves = 4, .nqueues = 3,                    \
	.queue = {28, 64, 36}
#define ZEN3                                                                                       \
	.width = 6, .retire = 8, .window = 256, .integers = 192, .vectors = 160, .load_queue = 72, \
	.store_queue = 64, .integer_moves = 6, .vector_moves = 6, .nqueues = 4,                    \
	.queue = {64, 96, 72, 64}
#define ZEN4                                                                                       \
	.width = 6, .retire = 9, .window = 320, .integers = 224, .vectors = 192, .load_queue = 72, \
	.store_queue = 64, .integer_moves = 6, .vector_moves = 6, .nqueues = 4,                    \
	.queue = {64, 96, 72, 64}
#define ZEN5                                                                                       \
	.width = 8, .retire = 9, .window = 448, .integers = 240, .vectors = 384, .load_queue = 72, \
	.store_queue = 64, .integer_moves = 8, .vector_moves = 8, .nqueues = 4,                    \
	.queue = {64, 96, 72, 64}

/* name, title, table, chip, limits */
#define CHIPS(X)                                                                                 \
	X("generic", "a generic core (the figures are Haswell's, as LLVM has for x86-64-v3)", 0, \
		GENERIC, HASWELL)                                                                \
	X("zen2", "AMD Zen 2", 1, ZEN2, ZEN2)                                                    \
	X("zen3", "AMD Zen 3", 2, ZEN3, ZEN3)                                                    \
	X("zen4", "AMD Zen 4", 3, ZEN4, ZEN4)                                                    \
	X("zen5",                                                                                \
		"AMD Zen 5 (LLVM 19 has no model of it: Zen 4's units; latencies of vectors "    \
		"measured)",                                                                     \
		3, ZEN5, ZEN5)                                                                   \
	X("skylake", "Intel Skylake client", 4, SKYLAKE, SKYLAKE)                                \
	X("skylake-server", "Intel Skylake server", 5, SKYLAKEX, SKYLAKE)                        \
	X("icelake", "Intel Ice Lake", 6, ICELAKE, ICELAKE)                                      \
	X("alderlake-p", "Intel Alder Lake P", 7, ALDER, GOLDEN_COVE)                            \
	X("sapphirerapids", "Intel Sapphire Rapids", 8, SAPPHIRE, GOLDEN_COVE)

#define CORRECTED(n, t, table, chip, ...) {n, t, table, false, MODEL_CHIP_##chip, {__VA_ARGS__}},
#define PLAIN(n, t, table, chip, ...)     {n ":llvm", t, table, true, MODEL_CHIP_##chip, {0}},

static const struct model models[] = {CHIPS(CORRECTED) CHIPS(PLAIN)};

/*
 * CPUID's families and models; those of Intel as in Linux's intel-family.h, those of AMD as in
 * its arch/x86/kernel/cpu/amd.c. Chips that LLVM gives the model of another (Tiger Lake: Ice Lake,
 * Raptor and Meteor Lake: Alder Lake, Emerald and Granite Rapids: Sapphire Rapids) have that one.
 */
static const struct signature {
	bool intel;
	uint8_t family, from, to;
	const char *name;
} signatures[] = {
	{true, 6, 0x4e, 0x4e, "skylake"},
	{true, 6, 0x5e, 0x5e, "skylake"},
	{true, 6, 0x8e, 0x8e, "skylake"},
	{true, 6, 0x9e, 0x9e, "skylake"},
	{true, 6, 0xa5, 0xa6, "skylake"},
	{true, 6, 0x55, 0x55, "skylake-server"},
	{true, 6, 0x6a, 0x6a, "icelake"},
	{true, 6, 0x6c, 0x6c, "icelake"},
	{true, 6, 0x7d, 0x7e, "icelake"},
	{true, 6, 0x8c, 0x8d, "icelake"},
	{true, 6, 0xa7, 0xa7, "icelake"},
	{true, 6, 0x97, 0x97, "alderlake-p"},
	{true, 6, 0x9a, 0x9a, "alderlake-p"},
	{true, 6, 0xaa, 0xaa, "alderlake-p"},
	{true, 6, 0xac, 0xac, "alderlake-p"},
	{true, 6, 0xb7, 0xb7, "alderlake-p"},
	{true, 6, 0xba, 0xba, "alderlake-p"},
	{true, 6, 0xbf, 0xbf, "alderlake-p"},
	{true, 6, 0x8f, 0x8f, "sapphirerapids"},
	{true, 6, 0xcf, 0xcf, "sapphirerapids"},
	{true, 6, 0xad, 0xae, "sapphirerapids"},
	{false, 0x17, 0x30, 0x4f, "zen2"},
	{false, 0x17, 0x60, 0x7f, "zen2"},
	{false, 0x17, 0x90, 0x91, "zen2"},
	{false, 0x17, 0xa0, 0xaf, "zen2"},
	{false, 0x19, 0x00, 0x0f, "zen3"},
	{false, 0x19, 0x20, 0x5f, "zen3"},
	{false, 0x19, 0x10, 0x1f, "zen4"},
	{false, 0x19, 0x60, 0xaf, "zen4"},
	{false, 0x1a, 0x00, 0x2f, "zen5"},
	{false, 0x1a, 0x40, 0x4f, "zen5"},
	{false, 0x1a, 0x60, 0x7f, "zen5"},
};

size_t model_count(void)
{
	return MODEL_CHIP_COUNT;
}

const struct model *model_at(size_t i)
{
	return i < MODEL_CHIP_COUNT ? &models[i] : NULL;
}

const struct model *model_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (!strcmp(models[i].name, name))
			return &models[i];
	return NULL;
}

static const char *name_of(const struct model_cpuid *chip)
{
	bool intel = !strcmp(chip->vendor, "GenuineIntel");
	bool amd = !strcmp(chip->vendor, "AuthenticAMD");

	if (intel && chip->amx)
		return "sapphirerapids"; /* or one that came after it: they are alike */
	for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
		const struct signature *s = &signatures[i];

		if ((s->intel ? intel : amd) && s->family == chip->family &&
			s->from <= chip->number && chip->number <= s->to)
			return s->name;
	}
	return NULL;
}

const struct model *model_by_cpuid(const struct model_cpuid *chip, bool *known)
{
	const char *name = name_of(chip);

	*known = name;
	return name ? model_by_name(name) : &models[0];
}

#define CPUID_AMX (1u << 24) /* leaf 7, in edx */

static struct model_cpuid ask_host(void)
{
	struct model_cpuid chip = {0};
	unsigned a, b, c, d;

	if (!__get_cpuid(0, &a, &b, &c, &d))
		return chip;
	memcpy(chip.vendor, &b, 4);
	memcpy(chip.vendor + 4, &d, 4);
	memcpy(chip.vendor + 8, &c, 4);
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return chip;
	chip.family = a >> 8 & 15;
	chip.number = a >> 4 & 15;
	if (chip.family == 6 || chip.family == 15)
		chip.number |= a >> 12 & 0xf0;
	if (chip.family == 15)
		chip.family += a >> 20 & 0xff;
	chip.amx = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & CPUID_AMX;
	return chip;
}

const struct model *model_of_host(bool *known)
{
	struct model_cpuid chip = ask_host();

	return model_by_cpuid(&chip, known);
}

const char *model_name(const struct model *m)
{
	return m->name;
}

const char *model_title(const struct model *m)
{
	return m->title;
}

bool model_is_plain(const struct model *m)
{
	return m->plain;
}

const struct model_limits *model_limits(const struct model *m)
{
	return m->plain ? &model_tables[m->table]->limits : &m->limits;
}

struct model_group model_group(const struct model *m, unsigned group)
{
	const struct model_tables *t = model_tables[m->table];

	if (group == MODEL_GROUP_LOCKED)
		return (struct model_group){"locked", 1u << 31};
	if (group == MODEL_GROUP_DIVIDE)
		return (struct model_group){"divider", 1u << 30};
	return group < t->ngroups ? t->group[group] : (struct model_group){"", 0};
}
