/*
 * Why bursts stop at an unknown branch, and what following every vector instruction would change.
 *
 *   follow [-F RATE] [-n STEPS] [-t SECONDS]
 *
 * Bursts of exactly STEPS instructions of user programs, from every sample, are run again with a
 * second account of what is known: what any instruction computes from known operands is known, also
 * in the wide vector and mask registers, which are unknown at the sample. Memory counts as known
 * when it could be read, so this is the most that following them could bring. Prints a line of
 * NAME=NUMBER, shares of all bursts.
 */
#include "base/err.h"
#include "collect/event.h"
#include "collect/sampler.h"
#include "collect/shadow.h"

#include <Zydis/Zydis.h>
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum known { KNOWN, FROM_SAMPLE, FROM_MEMORY, KNOWNS };

struct found {
	struct interp m;
	ZydisDecoder decoder;
	unsigned char of[ZYDIS_REGISTER_MAX_VALUE + 1], flags; /* enum known */
	uint32_t failed;
	uint64_t with_branch, control, first;
	uint64_t why[KNOWNS], first_why[KNOWNS]; /* first: no branch came before */
};

struct insn_text {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* ---- what is known ---- */

/* The register that holds it and is followed, or none. */
static ZydisRegister whole(ZydisRegister r)
{
	switch (ZydisRegisterGetClass(r)) {
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return (ZydisRegister)(ZYDIS_REGISTER_ZMM0 + ZydisRegisterGetId(r));
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	case ZYDIS_REGCLASS_MASK:
	case ZYDIS_REGCLASS_MMX:
	case ZYDIS_REGCLASS_X87:
		return r;
	default:
		return ZYDIS_REGISTER_NONE;
	}
}

static void begin(struct found *f)
{
	memset(f->of, KNOWN, sizeof f->of);
	f->flags = KNOWN;
	f->failed = 0;
	for (int i = 0; i < 32; i++)
		f->of[ZYDIS_REGISTER_ZMM0 + i] = FROM_SAMPLE;
	for (int i = 0; i < 8; i++)
		f->of[ZYDIS_REGISTER_K0 + i] = f->of[ZYDIS_REGISTER_ST0 + i] =
			f->of[ZYDIS_REGISTER_MM0 + i] = FROM_SAMPLE;
}

/* A register with itself: zeros or ones whatever it holds. */
static bool cancels(const struct insn_text *t)
{
	int n = t->in.operand_count_visible;
	if (n < 2 || t->op[n - 1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		t->op[n - 2].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		t->op[n - 1].reg.value != t->op[n - 2].reg.value)
		return false;
	const char *name = ZydisMnemonicGetString(t->in.mnemonic);
	return strstr(name, "xor") || strstr(name, "cmpeq") || t->in.mnemonic == ZYDIS_MNEMONIC_SUB;
}

/*
 * Whether the operand decides what comes out. Mask k0 stands for none, and glibc compares only the
 * bytes that it loaded under a mask, not the rest of the register.
 */
static bool counts(const struct insn_text *t, const ZydisDecodedOperand *o)
{
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		!(o->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
		return false;
	if (o->encoding == ZYDIS_OPERAND_ENCODING_MASK)
		return o->reg.value != ZYDIS_REGISTER_K0;
	return !(o == t->op && t->in.mnemonic == ZYDIS_MNEMONIC_VMOVDQU8);
}

static enum known sources(struct found *f, const struct insn_text *t)
{
	const ZydisAccessedFlags *flags = t->in.cpu_flags;
	bool same = cancels(t);
	enum known k = KNOWN;
	for (int i = 0; i < t->in.operand_count && !same; i++) {
		if (counts(t, &t->op[i]) && f->of[whole(t->op[i].reg.value)])
			k = f->of[whole(t->op[i].reg.value)];
	}
	if (flags && flags->tested & INTERP_FLAGS && f->flags)
		k = f->flags;
	if (f->m.failed != f->failed)
		k = FROM_MEMORY;
	f->failed = f->m.failed;
	return k;
}

static bool decode(const struct found *f, struct insn_text *t)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&f->decoder, f->m.code, 16, &t->in, t->op));
}

static void follow(struct found *f)
{
	struct insn_text t;
	if (!decode(f, &t))
		return;
	enum known k = sources(f, &t);
	for (int i = 0; i < t.in.operand_count; i++) {
		if (t.op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			t.op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			f->of[whole(t.op[i].reg.value)] = (unsigned char)k;
	}
	f->of[ZYDIS_REGISTER_NONE] = KNOWN;
	if (t.in.cpu_flags && (t.in.cpu_flags->modified | t.in.cpu_flags->set_0) & INTERP_FLAGS)
		f->flags = (unsigned char)k;
}

/* ---- bursts ---- */

struct inputs {
	const uint64_t *word, *lost;
	uint32_t n, at;
};

static int next_input(void *arg, u64 address, u64 *word)
{
	struct inputs *in = arg;
	uint32_t k = in->at++;
	(void)address;
	if (k >= in->n)
		return -1;
	*word = in->word[k];
	return in->lost[k / 64] >> k % 64 & 1 ? -1 : 0;
}

/* Up to the branch that it stopped at, which is decoded once more. */
static void run_again(struct found *f, const struct shadow_burst *b, const uint64_t *words)
{
	struct inputs in = {.word = words + SHADOW_STATE,
		.lost = words + SHADOW_STATE + b->inputs,
		.n = b->inputs};
	struct interp *m = &f->m;
	interp_begin(m, next_input, &in);
	memcpy(m->r, words, sizeof m->r);
	m->ip = words[16];
	m->base[0] = words[17];
	m->base[1] = words[18];
	interp_set_flags(m, words[19]);
	begin(f);
	for (uint32_t i = 0; i < (uint32_t)b->skipped + b->steps; i++) {
		interp_step(m);
		follow(f);
	}
	interp_step(m);
}

static void see_burst(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct found *f = arg;
	struct insn_text t;
	f->with_branch += b->edges != 0;
	if (b->stop != INTERP_CONTROL || !b->inputs)
		return;
	run_again(f, b, words);
	if (!decode(f, &t))
		return;
	enum known k = sources(f, &t);
	f->control++;
	f->first += !b->edges;
	f->why[k]++;
	f->first_why[k] += !b->edges;
}

static void see_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static void see_sample(void *arg, const struct sample *s)
{
	(void)arg, (void)s;
}

static void run(struct sampler *s, struct found *f, double length)
{
	struct sampler_sink sink = {
		.record = see_record, .sample = see_sample, .burst = see_burst, .arg = f};
	time_t end = time(NULL) + (time_t)length;
	while (time(NULL) < end) {
		struct pollfd p = {.fd = sampler_fd(s), .events = POLLIN};
		poll(&p, 1, 100);
		sampler_service(s, &sink);
	}
	sampler_drain(s, &sink);
}

static void report(const struct sampler *s, const struct found *f)
{
	struct sampler_statistics all;
	sampler_statistics(s, &all);
	double n = all.shadow.bursts ? (double)all.shadow.bursts : 1;
	printf("bursts=%lu branch=%.5f control=%.5f control_known=%.5f control_sample=%.5f "
	       "control_memory=%.5f first=%.5f first_known=%.5f\n",
		all.shadow.bursts, (double)f->with_branch / n, (double)f->control / n,
		(double)f->why[KNOWN] / n, (double)f->why[FROM_SAMPLE] / n,
		(double)f->why[FROM_MEMORY] / n, (double)f->first / n,
		(double)f->first_why[KNOWN] / n);
}

int main(int argc, char **argv)
{
	static struct found found;
	struct event event;
	struct sampler *s;
	struct err e = {0};
	double length = 10;
	struct sampler_options o = {.target = {.all = true},
		.events = &event,
		.nevents = 1,
		.rate = 2000,
		.how = SAMPLER_BPF,
		.shadow_every = 1,
		.shadow = {.steps = 32, .share = 1, .user = true, .exact = true, .values = true}};

	for (int c; (c = getopt(argc, argv, "F:n:t:")) != -1;) {
		switch (c) {
		case 'F':
			o.rate = atof(optarg);
			break;
		case 'n':
			o.shadow.steps = (uint32_t)atoi(optarg);
			break;
		case 't':
			length = atof(optarg);
			break;
		default:
			errx(2, "usage: follow [-F RATE] [-n STEPS] [-t SECONDS]");
		}
	}
	ZydisDecoderInit(&found.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (event_parse("cpu-clock", &event, &e) < 0 || sampler_create(&o, &s, &e) < 0)
		errx(1, "%s", e.text);
	if (!sampler_interprets(s))
		errx(1, "%s", sampler_why_not_shadow(s));
	if (sampler_enable(s, &e) < 0)
		errx(1, "%s", e.text);
	run(s, &found, length);
	report(s, &found);
	sampler_destroy(s);
	return 0;
}
