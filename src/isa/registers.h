/*
 * Names of the general registers of 64 bits, by their numbers (form.h).
 */
#ifndef CULPRIT_ISA_REGISTERS_H
#define CULPRIT_ISA_REGISTERS_H

#include <stddef.h>

const char *isa_register_name(unsigned reg);       /* below 16 */
int isa_register_find(const char *text, size_t n); /* -1: none is called so */

#endif
