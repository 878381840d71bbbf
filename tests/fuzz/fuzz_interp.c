/*
 * The interpreter over any bytes as code, with registers, memory and unknowns that the bytes decide
 * too: it ends, stays in its arrays, stays where it is when it stops, and never sees another length
 * than Zydis where both see an instruction.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "isa/decode.h"
#include "isa/interp.h"

enum { HEADER = 20, CODE_MOST = 256, STEPS = 300 };

#define CODE 0x401000ull
#define DATA 0x7ffd12340000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct scene {
	const u8 *code;
	size_t n;
	u64 seed;
};

static u64 mix(u64 z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Values such as programs have: small numbers, pointers to data and to this code, anything. */
static u64 value(const struct scene *s, u64 key)
{
	u64 h = mix(s->seed + key * 0x9e3779b97f4a7c15);
	switch (h >> 60) {
	case 0:
	case 1:
		return 0;
	case 2:
	case 3:
		return h & 0x7f;
	case 4:
	case 5:
	case 6:
	case 7:
	case 8:
		return DATA + (h & 0xfff);
	case 9:
	case 10:
		return CODE + h % (s->n + 1);
	case 11:
		return (u64) - (s64)(h & 0xff);
	default:
		return mix(h);
	}
}

/* Code is there; other memory mostly. */
static int read_word(void *arg, u64 address, u64 *word)
{
	const struct scene *s = arg;
	if (address % 8)
		abort();
	if (address - CODE < s->n) {
		size_t left = s->n - (size_t)(address - CODE);
		*word = 0;
		memcpy(word, s->code + (address - CODE), left < 8 ? left : 8);
		return 0;
	}
	if (mix(address ^ s->seed) % 16 == 0)
		return -EFAULT;
	*word = value(s, address);
	return 0;
}

static void check_lengths(const u8 *code, size_t n)
{
	for (size_t at = 0; at < n; at++) {
		struct insn insn;
		unsigned length = interp_length(code + at, (unsigned)(n - at));
		if (length > 15 || length > n - at)
			abort();
		if (!isa_decode(code + at, n - at, CODE + at, &insn) && length &&
			length != insn.length)
			abort();
	}
}

static void begin(struct interp *m, struct scene *s, const u8 *header)
{
	u16 bits[5];
	memcpy(&s->seed, header, 8);
	memcpy(bits, header + 8, sizeof bits);
	interp_begin(m, read_word, s);
	for (u64 i = 0; i < INTERP_REGISTERS; i++) {
		m->r[i] = value(s, i);
		m->xmm[i][0] = value(s, i + 16);
		m->xmm[i][1] = value(s, i + 32);
	}
	m->r[INTERP_RSP] = DATA + 0x800;
	m->ip = CODE;
	m->base[0] = DATA;
	m->base[1] = value(s, 64);
	interp_set_flags(m, bits[0]);
	m->unknown = bits[1];
	m->unknown_low = bits[2];
	m->unknown_flags = bits[3] & INTERP_FLAGS;
	m->known_xmm = bits[4];
	m->kernel = header[18] & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEADER || size > HEADER + CODE_MOST)
		return 0;
	static struct interp m;
	struct scene s = {.code = data + HEADER, .n = size - HEADER};

	check_lengths(s.code, s.n);
	begin(&m, &s, data);
	for (int i = 0; i < STEPS; i++) {
		u64 ip = m.ip;
		enum interp_stop stop = interp_step(&m);
		if ((unsigned)stop >= INTERP_STOPS || m.stored > INTERP_WORDS)
			abort();
		if (stop != INTERP_GOES_ON) {
			if (m.ip != ip)
				abort();
			break;
		}
		if (m.effect.ip != ip || m.effect.next != m.ip || !m.effect.length ||
			m.effect.length > 15)
			abort();
	}
	return 0;
}
