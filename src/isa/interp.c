#include "isa/interp.h"

#include <string.h>

#define INTERP_EFFECTS

static int interp_memory(struct interp *m, u64 address, u64 *word)
{
	return m->read(m->arg, address, word);
}

/* In its order: a run is repeated from the words as they were read. */
static int interp_memory_line(struct interp *m, u64 address, u32 n)
{
	u64 *word = m->line[n].code;

	for (u32 i = 0; i < 4; i++) {
		if (m->read(m->arg, address + i * 8, &word[i]) < 0)
			return -1;
	}
	return 0;
}

/* It could be repeated. */
static int interp_memory_code(struct interp *m, u64 address, u64 *code)
{
	(void)m, (void)address, (void)code;
	return -1;
}

#include "isa/interp_run.h"

void interp_begin(struct interp *m, int (*read)(void *arg, u64 address, u64 *word), void *arg)
{
	u32 epoch = m->epoch + 1;

	if (!epoch) { /* after four thousand million runs */
		memset(m->line, 0, sizeof m->line);
		memset(m->word, 0, sizeof m->word);
		epoch = 1;
	}
	m->epoch = epoch;
	m->unknown = m->unknown_low = m->unknown_flags = m->known_xmm = 0;
	m->kernel = m->stored = m->failed = 0;
	m->filter = 0;
	m->read = read;
	m->arg = arg;
}

void interp_set_flags(struct interp *m, u64 rflags)
{
	interp_unpack_flags(m, rflags, INTERP_FLAGS | INTERP_DF);
}

u64 interp_flags(const struct interp *m)
{
	return interp_pack_flags(m) & ~(u64)m->unknown_flags;
}

void interp_put(struct interp *m, u64 address, unsigned size, u64 value)
{
	interp_store(m, address, size, value, 0);
}

enum interp_stop interp_step(struct interp *m)
{
	int stop;

	m->effect = (struct interp_effect){.ip = m->ip, .destination = 0xff};
	stop = interp_one(m);
	m->effect.next = m->ip;
	m->effect.length = (u8)m->insn.length;
	m->effect.op = (u8)INTERP_E_OP(m->insn.entry);
	return (enum interp_stop)stop;
}

unsigned interp_length(const u8 *code, unsigned n)
{
	static _Thread_local struct interp m;

	m.available = n < 16 ? n : 16;
	memset(m.code, 0, sizeof m.code);
	memcpy(m.code, code, m.available);
	return interp_decode_any(&m, m.code[0]) == INTERP_GOES_ON ? m.insn.length : 0;
}

const char *interp_stop_name(enum interp_stop s)
{
	static const char *const names[INTERP_STOPS] = {
		[INTERP_GOES_ON] = "goes on",
		[INTERP_FETCH] = "code that cannot be read",
		[INTERP_INSTRUCTION] = "unknown instruction",
		[INTERP_SYSTEM] = "system call or trap",
		[INTERP_CONTROL] = "unknown branch",
		[INTERP_STORE] = "store to an unknown address",
		[INTERP_FAULT] = "fault",
		[INTERP_ROOM] = "too many stores",
		[INTERP_LENGTH] = "long string operation",
		[INTERP_DONE] = "done",
		[INTERP_TIME] = "out of time",
	};

	return s < INTERP_STOPS ? names[s] : "?";
}
