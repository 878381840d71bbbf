#include "isa/model_internal.h"

#include "isa/models/alderlake_p.inc"
#include "isa/models/generic.inc"
#include "isa/models/icelake.inc"
#include "isa/models/sapphirerapids.inc"
#include "isa/models/skylake.inc"
#include "isa/models/skylake_server.inc"
#include "isa/models/zen2.inc"
#include "isa/models/zen3.inc"
#include "isa/models/zen4.inc"

const struct model_tables *const model_tables[MODEL_TABLES] = {
	&generic_tables,
	&zen2_tables,
	&zen3_tables,
	&zen4_tables,
	&skylake_tables,
	&skylake_server_tables,
	&icelake_tables,
	&alderlake_p_tables,
	&sapphirerapids_tables,
};

/* Operands that are not named are none: MODEL_0. */
#define MODEL_                    0u
#define MODEL_0                   0u
#define OPERANDS(a, b, c, d, ...) MODEL_FORM(MODEL_##a, MODEL_##b, MODEL_##c, MODEL_##d)
#define F(name, row, ...)         {OPERANDS(__VA_ARGS__, 0, 0, 0, 0), ZYDIS_MNEMONIC_##name, row},
#define G(name, row, flags, ...) \
	{OPERANDS(__VA_ARGS__, 0, 0, 0, 0) | (flags), ZYDIS_MNEMONIC_##name, row},

/* Short names for the flags, as the table has them. */
enum {
	MASKED = MODEL_MASKED,
	ZEROED = MODEL_ZEROED,
	ROUNDED = MODEL_ROUNDED,
	SAME = MODEL_SAME,
	LONG = MODEL_LONG,
	SCALED = MODEL_SCALED,
	EVEX = MODEL_EVEX,
};

const struct model_form_row model_forms[] = {
#include "isa/models/forms.inc"
};
const size_t model_nforms = sizeof model_forms / sizeof *model_forms;

const uint16_t model_rows[][MODEL_TABLES] = {
#include "isa/models/rows.inc"
};
const size_t model_nrows = sizeof model_rows / sizeof *model_rows;
