/*
 * The commonest instructions (nine of ten in programs), decoded without Zydis: for isa_decode and
 * isa_form, which say the same of them either way but this way in a tenth of the time.
 */
#ifndef CULPRIT_ISA_QUICK_H
#define CULPRIT_ISA_QUICK_H

#include "isa/form.h"

/* False for what they do not know, which may be an instruction all the same. */
bool quick_decode(const uint8_t *code, size_t n, uint64_t address, struct insn *out);
bool quick_form(const uint8_t *code, size_t n, uint64_t address, struct form *out);

/* The others; as isa_decode and isa_form. */
int decode_by_zydis(const void *code, size_t n, uint64_t address, struct insn *out);
int form_by_zydis(const void *code, size_t n, uint64_t address, struct form *out);

#endif
