#include "collect/record.h"

#include "base/cursor.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What sample_id_all puts behind every record that is not a sample: TID, TIME, CPU, IDENTIFIER. */
#define TRAILER 32

/* In the order of their numbers: BP, SP, IP. */
static void parse_few(struct cursor *c, struct record *r)
{
	r->sample.bp = cursor_u64(c);
	r->sample.sp = cursor_u64(c);
	r->sample.ip = cursor_u64(c);
	r->sample.has_user = true;
}

static uint64_t register_of(const uint8_t *all, unsigned number)
{
	uint64_t value;

	memcpy(&value, all + number * sizeof value, sizeof value);
	return value;
}

static void parse_all(struct cursor *c, struct record *r)
{
	const uint8_t *all = cursor_bytes(c, RECORD_REGISTERS * sizeof(uint64_t));

	if (!all)
		return;
	r->sample.registers = all;
	r->sample.bp = register_of(all, PERF_REG_X86_BP);
	r->sample.sp = register_of(all, PERF_REG_X86_SP);
	r->sample.ip = register_of(all, PERF_REG_X86_IP);
	r->sample.has_user = true;
}

/* The size of what could be there, the bytes, the size of what was. */
static void parse_stack(struct cursor *c, struct record *r)
{
	uint64_t room = cursor_u64(c), size;
	const void *bytes = cursor_bytes(c, room);

	size = room ? cursor_u64(c) : 0;
	if (c->failed || size > room) {
		c->failed = true;
		return;
	}
	r->sample.stack = bytes;
	r->sample.stack_size = (uint32_t)size;
}

/* What events that are asked for call paths have more. */
static void parse_user(struct cursor *c, struct record *r)
{
	uint64_t abi = cursor_u64(c);
	size_t left = cursor_left(c);

	if (abi && left == 3 * sizeof(uint64_t)) {
		parse_few(c, r);
	} else if (left) {
		if (abi)
			parse_all(c, r);
		parse_stack(c, r);
	}
}

static void parse_sample(struct cursor *c, uint16_t misc, struct record *r)
{
	r->kind = RECORD_SAMPLE;
	r->id = cursor_u64(c);
	r->sample.pc = cursor_u64(c);
	r->sample.misc = misc;
	r->pid = (int32_t)cursor_u32(c);
	r->tid = (int32_t)cursor_u32(c);
	r->time = cursor_u64(c);
	r->cpu = cursor_u32(c);
	cursor_skip(c, 4);
	if (cursor_left(c))
		parse_user(c, r);
}

static void parse_trailer(struct cursor c, struct record *r)
{
	r->pid = (int32_t)cursor_u32(&c);
	r->tid = (int32_t)cursor_u32(&c);
	r->time = cursor_u64(&c);
	r->cpu = cursor_u32(&c);
	cursor_skip(&c, 4);
	r->id = cursor_u64(&c);
}

static void parse_ids(struct cursor *c, struct record *r)
{
	r->pid = (int32_t)cursor_u32(c);
	r->tid = (int32_t)cursor_u32(c);
}

static void parse_mmap(struct cursor *c, uint16_t misc, struct record *r)
{
	parse_ids(c, r);
	r->kind = misc & PERF_RECORD_MISC_MMAP_DATA ? RECORD_OTHER : RECORD_MMAP;
	r->mmap.kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	r->mmap.start = cursor_u64(c);
	r->mmap.size = cursor_u64(c);
	r->mmap.offset = cursor_u64(c);
}

static void parse_build_id(struct cursor *c, struct image_id *id)
{
	uint8_t size = cursor_u8(c);
	const void *bytes;

	cursor_skip(c, 3);
	bytes = cursor_bytes(c, 20);
	if (!bytes || size > 20) {
		c->failed = true;
		return;
	}
	id->size = size;
	memcpy(id->bytes, bytes, size);
}

static void parse_mmap2(struct cursor *c, uint16_t misc, bool build_ids, struct record *r)
{
	uint32_t prot;

	parse_mmap(c, misc, r);
	if (build_ids && misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		parse_build_id(c, &r->mmap.build_id);
	} else {
		r->mmap.major = cursor_u32(c);
		r->mmap.minor = cursor_u32(c);
		r->mmap.inode = cursor_u64(c);
		r->mmap.inode_generation = cursor_u64(c);
	}
	prot = cursor_u32(c);
	cursor_skip(c, 4); /* flags */
	if (!(prot & PROT_EXEC) && !r->mmap.kernel)
		r->kind = RECORD_OTHER;
	r->mmap.path = cursor_str(c);
}

/* perf makes up forks of what ran before (this bit is the same as that of COMM_EXEC). */
#ifndef PERF_RECORD_MISC_FORK_EXEC
#define PERF_RECORD_MISC_FORK_EXEC (1 << 13)
#endif

static void parse_task(struct cursor *c, uint16_t misc, enum record_kind kind, struct record *r)
{
	r->task.exec = misc & PERF_RECORD_MISC_FORK_EXEC;
	r->kind = kind;
	r->pid = (int32_t)cursor_u32(c);
	r->task.parent_pid = (int32_t)cursor_u32(c);
	r->tid = (int32_t)cursor_u32(c);
	r->task.parent_tid = (int32_t)cursor_u32(c);
	r->time = cursor_u64(c);
}

static void parse_throttle(struct cursor *c, enum record_kind kind, struct record *r)
{
	r->kind = kind;
	r->time = cursor_u64(c);
	r->id = cursor_u64(c);
}

/* The body of a record that is not a sample; the trailer has been parsed. */
static void parse_body(
	struct cursor *c, uint32_t type, uint16_t misc, bool build_ids, struct record *r)
{
	switch (type) {
	case PERF_RECORD_MMAP:
		parse_mmap(c, misc, r);
		r->mmap.path = cursor_str(c);
		break;
	case PERF_RECORD_MMAP2:
		parse_mmap2(c, misc, build_ids, r);
		break;
	case PERF_RECORD_COMM:
		r->kind = RECORD_COMM;
		parse_ids(c, r);
		r->comm.exec = misc & PERF_RECORD_MISC_COMM_EXEC;
		r->comm.name = cursor_str(c);
		break;
	case PERF_RECORD_FORK:
		parse_task(c, misc, RECORD_FORK, r);
		break;
	case PERF_RECORD_EXIT:
		parse_task(c, misc, RECORD_EXIT, r);
		break;
	case PERF_RECORD_LOST:
		r->kind = RECORD_LOST;
		r->id = cursor_u64(c);
		r->lost.lost = cursor_u64(c);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		r->kind = RECORD_LOST;
		r->lost.lost = cursor_u64(c);
		break;
	case PERF_RECORD_THROTTLE:
		parse_throttle(c, RECORD_THROTTLE, r);
		break;
	case PERF_RECORD_UNTHROTTLE:
		parse_throttle(c, RECORD_UNTHROTTLE, r);
		break;
	case PERF_RECORD_CGROUP:
		r->kind = RECORD_CGROUP;
		r->cgroup.id = cursor_u64(c);
		r->cgroup.path = cursor_str(c);
		break;
	case PERF_RECORD_KSYMBOL:
		r->kind = RECORD_KSYMBOL;
		r->ksymbol.address = cursor_u64(c);
		r->ksymbol.size = cursor_u32(c);
		cursor_skip(c, 2); /* which kind of code */
		r->ksymbol.gone = cursor_u16(c) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
		r->ksymbol.name = cursor_str(c);
		break;
	default:
		r->kind = RECORD_OTHER;
	}
}

int record_parse(const void *p, size_t n, bool build_ids, struct record *out, size_t *size)
{
	struct cursor c = cursor_over(p, n);
	uint32_t type = cursor_u32(&c);
	uint16_t misc = cursor_u16(&c);
	uint16_t length = cursor_u16(&c);
	struct record r = {0};
	struct cursor body;

	*size = 0;
	if (c.failed || length < sizeof(struct perf_event_header) || length % 8 || length > n)
		return -EBADMSG;
	*size = length;
	body = cursor_slice(&c, length - sizeof(struct perf_event_header));
	if (type == PERF_RECORD_SAMPLE) {
		parse_sample(&body, misc, &r);
	} else {
		struct cursor inner;

		if (cursor_left(&body) < TRAILER)
			return -EBADMSG;
		inner = cursor_slice(&body, cursor_left(&body) - TRAILER);
		parse_trailer(body, &r);
		parse_body(&inner, type, misc, build_ids, &r);
		body = inner;
	}
	if (body.failed)
		return -EBADMSG;
	*out = r;
	return 0;
}

int record_parse_foreign(
	const void *p, size_t n, size_t trailer, bool build_ids, struct record *out)
{
	struct cursor c = cursor_over(p, n), body;
	uint32_t type = cursor_u32(&c);
	uint16_t misc = cursor_u16(&c);
	struct record r = {0};

	cursor_skip(&c, 2);
	if (c.failed || cursor_left(&c) < trailer)
		return -EBADMSG;
	body = cursor_slice(&c, cursor_left(&c) - trailer);
	parse_body(&body, type, misc, build_ids, &r);
	if (body.failed)
		return -EBADMSG;
	*out = r;
	return 0;
}
