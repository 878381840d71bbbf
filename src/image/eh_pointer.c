#include "image/eh_pointer.h"

#include "base/cursor.h"

uint64_t eh_format_read(struct cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ULEB128:
		return cursor_uleb(c);
	case PE_UDATA2:
		return cursor_u16(c);
	case PE_UDATA4:
		return cursor_u32(c);
	case PE_SLEB128:
		return (uint64_t)cursor_sleb(c);
	case PE_SDATA2:
		return (uint64_t)(int16_t)cursor_u16(c);
	case PE_SDATA4:
		return (uint64_t)(int32_t)cursor_u32(c);
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return cursor_u64(c);
	}
	c->failed = true;
	return 0;
}

uint64_t eh_pointer_read(struct cursor *c, uint8_t encoding, uint64_t vaddr, uint64_t data)
{
	uint64_t value = eh_format_read(c, encoding);
	if (encoding & PE_INDIRECT)
		c->failed = true; /* its value is known at run time only */
	switch (encoding & PE_BASE) {
	case PE_ABSPTR:
		return value;
	case PE_PCREL:
		return value + vaddr;
	case PE_DATAREL:
		return value + data;
	}
	c->failed = true;
	return 0;
}
