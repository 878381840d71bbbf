#include "import/perf_sample.h"

#include "base/cursor.h"
#include "import/perf_file.h"

#include <asm/perf_regs.h>
#include <string.h>

enum { HEADER = sizeof(struct perf_event_header), BRANCH = 24, REGISTERS = 64 };

/* Bits of sample_type that a word of the trailer stands for, in their order. */
static const uint64_t in_trailer[] = {PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};

static int words(uint64_t type, uint64_t of)
{
	return __builtin_popcountll(type & of);
}

/* ---- which event ---- */

/* Where the id stands: the same for all events, or there must be one event only. */
bool perf_layout_of(const struct perf_event *events, size_t n, struct perf_layout *out)
{
	struct perf_layout l = {.events = events, .n = n, .id_in_sample = -1, .id_in_trailer = -1};

	for (size_t i = 0; i < n; i++) {
		uint64_t type = events[i].attr.sample_type;
		int sample = -1, trailer = -1;

		if (type & PERF_SAMPLE_IDENTIFIER) {
			sample = 0;
			trailer = 1;
		} else if (type & PERF_SAMPLE_ID) {
			sample = words(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						     PERF_SAMPLE_ADDR);
			trailer = 1 + words(type, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
		}
		if (i == 0) {
			l.id_in_sample = sample;
			l.id_in_trailer = trailer;
		} else if (sample != l.id_in_sample || trailer != l.id_in_trailer) {
			return false;
		}
	}
	if (n > 1 && l.id_in_sample < 0)
		return false;
	*out = l;
	return true;
}

uint64_t perf_record_id(const struct perf_layout *l, const uint8_t *record, size_t size)
{
	struct cursor c = cursor_over(record, size);
	uint64_t id;

	if (l->id_in_sample < 0)
		return 0;
	if (cursor_u32(&c) == PERF_RECORD_SAMPLE)
		cursor_seek(&c, HEADER + 8 * (size_t)l->id_in_sample);
	else if (l->events[0].attr.sample_id_all && size >= HEADER + 8 * (size_t)l->id_in_trailer)
		cursor_seek(&c, size - 8 * (size_t)l->id_in_trailer);
	else
		return 0;
	id = cursor_u64(&c);
	return c.failed ? 0 : id;
}

/* ---- records that are no samples ---- */

size_t perf_trailer_size(const struct perf_event_attr *attr)
{
	size_t n = 0;

	for (size_t i = 0; attr->sample_id_all && i < sizeof in_trailer / sizeof *in_trailer; i++)
		n += attr->sample_type & in_trailer[i] ? 8 : 0;
	return n;
}

bool perf_trailer_parse(const struct perf_event_attr *attr, const uint8_t *record, size_t size,
	struct perf_trailer *out)
{
	size_t n = perf_trailer_size(attr);
	struct cursor c = cursor_over(record, size);

	*out = (struct perf_trailer){.pid = -1, .tid = -1};
	if (size < HEADER + n)
		return false;
	if (!n)
		return true;
	cursor_seek(&c, size - n);
	if (attr->sample_type & PERF_SAMPLE_TID) {
		out->pid = (int32_t)cursor_u32(&c);
		out->tid = (int32_t)cursor_u32(&c);
	}
	if (attr->sample_type & PERF_SAMPLE_TIME)
		out->time = cursor_u64(&c);
	cursor_skip(
		&c, 8 * (size_t)words(attr->sample_type, PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (attr->sample_type & PERF_SAMPLE_CPU)
		out->cpu = cursor_u32(&c);
	return true;
}

/* ---- samples ---- */

static void skip_read(struct cursor *c, uint64_t format)
{
	uint64_t group = format & PERF_FORMAT_GROUP, n = group ? cursor_u64(c) : 1;
	uint64_t times = (uint64_t)words(
		format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + (uint64_t)words(format, PERF_FORMAT_ID | 1 << 4 /* LOST */);

	if (n > cursor_left(c) / 8)
		c->failed = true;
	else
		cursor_skip(c, 8 * (times + n * each));
}

static const uint8_t *take_array(struct cursor *c, size_t each, size_t *n)
{
	uint64_t count = cursor_u64(c);

	*n = 0;
	if (count > cursor_left(c) / each) {
		c->failed = true;
		return NULL;
	}
	*n = count;
	return cursor_bytes(c, count * each);
}

/* Registers of the kernel's numbers as DWARF has them; 64: none. */
static unsigned dwarf_register(unsigned number)
{
	static const uint8_t of[] = {[PERF_REG_X86_AX] = 0,
		[PERF_REG_X86_BX] = 3,
		[PERF_REG_X86_CX] = 2,
		[PERF_REG_X86_DX] = 1,
		[PERF_REG_X86_SI] = 4,
		[PERF_REG_X86_DI] = 5,
		[PERF_REG_X86_BP] = FRAME_RBP,
		[PERF_REG_X86_SP] = FRAME_RSP,
		[PERF_REG_X86_IP] = FRAME_RIP};

	if (number <= PERF_REG_X86_IP)
		return of[number];
	if (number >= PERF_REG_X86_R8 && number <= PERF_REG_X86_R15)
		return 8 + number - PERF_REG_X86_R8;
	return REGISTERS;
}

/* True when there are any, of a 64-bit program. */
static bool take_registers(struct cursor *c, uint64_t mask, struct walk_start *out)
{
	uint64_t abi = cursor_u64(c);

	for (unsigned i = 0; abi && i < 64; i++) {
		unsigned to = dwarf_register(i);
		uint64_t value;

		if (!(mask >> i & 1))
			continue;
		value = cursor_u64(c);
		if (out && to < FRAME_REGISTERS) {
			out->registers[to] = value;
			out->known |= 1u << to;
		}
	}
	return abi == PERF_SAMPLE_REGS_ABI_64;
}

/* The size of what could be there, the bytes, the size of what was. */
static void take_stack(struct cursor *c, struct walk_start *out)
{
	uint64_t room = cursor_u64(c), size;

	out->stack = cursor_bytes(c, room);
	size = room ? cursor_u64(c) : 0;
	if (size > room)
		c->failed = true;
	out->size = c->failed ? 0 : size;
}

static void take_branches(
	struct cursor *c, const struct perf_event_attr *attr, struct perf_sample *s)
{
	uint64_t count = cursor_u64(c);

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		cursor_skip(c, 8);
	if (count > cursor_left(c) / BRANCH) {
		c->failed = true;
		return;
	}
	s->branches = cursor_bytes(c, count * BRANCH);
	s->nbranches = count;
#ifdef PERF_SAMPLE_BRANCH_COUNTERS
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS)
		cursor_skip(c, 8 * count);
#endif
}

/* The first part, of words that are always the same. */
static void take_words(struct cursor *c, uint64_t type, struct perf_sample *s)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		cursor_skip(c, 8);
	if (type & PERF_SAMPLE_IP)
		s->ip = cursor_u64(c);
	if (type & PERF_SAMPLE_TID) {
		s->pid = (int32_t)cursor_u32(c);
		s->tid = (int32_t)cursor_u32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = cursor_u64(c);
	cursor_skip(c,
		8 * (size_t)words(type, PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (type & PERF_SAMPLE_CPU) {
		s->cpu = cursor_u32(c);
		cursor_skip(c, 4);
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = cursor_u64(c);
}

static void take_raw(struct cursor *c)
{
	cursor_skip(c, cursor_u32(c));
}

/* What has a size of its own. */
static void take_parts(struct cursor *c, const struct perf_event_attr *attr, struct perf_sample *s)
{
	uint64_t type = attr->sample_type;
	bool known = false;

	if (type & PERF_SAMPLE_READ)
		skip_read(c, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		s->chain = take_array(c, 8, &s->nchain);
	if (type & PERF_SAMPLE_RAW)
		take_raw(c);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(c, attr, s);
	if (type & PERF_SAMPLE_REGS_USER)
		known = take_registers(c, attr->sample_regs_user, &s->stack);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, &s->stack);
	s->has_stack = known && s->stack.size;
}

static void take_rest(struct cursor *c, const struct perf_event_attr *attr, struct perf_sample *s)
{
	uint64_t type = attr->sample_type;

	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		cursor_skip(c, 8);
	cursor_skip(c, 8 * (size_t)words(type, PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION));
	if (type & PERF_SAMPLE_REGS_INTR)
		take_registers(c, attr->sample_regs_intr, NULL);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		cursor_skip(c, 8);
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = cursor_u64(c);
}

bool perf_sample_parse(const struct perf_event_attr *attr, const uint8_t *record, size_t size,
	struct perf_sample *out)
{
	struct cursor c = cursor_over(record, size);
	struct perf_sample s = {.pid = -1, .tid = -1, .period = attr->sample_period};

	cursor_skip(&c, 4);
	s.misc = cursor_u16(&c);
	cursor_skip(&c, 2);
	take_words(&c, attr->sample_type, &s);
	take_parts(&c, attr, &s);
	take_rest(&c, attr, &s);
	if (c.failed)
		return false;
	*out = s;
	return true;
}
