/*
 * Pointers as .eh_frame, .eh_frame_hdr and the data of exceptions hold them (LSB, "DWARF Exception
 * Header Encoding"): a byte says a format, a base and whether it is the address of the pointer.
 */
#ifndef CULPRIT_IMAGE_EH_POINTER_H
#define CULPRIT_IMAGE_EH_POINTER_H

#include <stdint.h>

struct cursor;

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* The value before its base is added; fails the cursor on an unknown format. */
uint64_t eh_format_read(struct cursor *c, uint8_t encoding);

/* vaddr is that of the cursor's position, data the base of PE_DATAREL. An indirect one fails. */
uint64_t eh_pointer_read(struct cursor *c, uint8_t encoding, uint64_t vaddr, uint64_t data);

#endif
