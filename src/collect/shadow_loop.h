/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The instructions of a burst, one after the other. Included by shadow.bpf.c only, behind its state
 * and the interpreter.
 */
#ifndef CULPRIT_COLLECT_SHADOW_LOOP_H
#define CULPRIT_COLLECT_SHADOW_LOOP_H

/* Two lines of code, and a repeated cmps that reads two words of each operand an element. */
#define INPUTS_A_STEP (2 * 4 + INTERP_ELEMENTS * 4)

/* Returns the time; 16 instructions that took very long were a hypervisor's pause. */
static __always_inline u64 look(struct progress *p)
{
	u64 now = bpf_ktime_get_ns();

	if (now - p->looked > SHADOW_PAUSE_NS)
		p->paused += now - p->looked;
	p->looked = now;
	return now;
}

/* Edges go where user space will read them. */
static __always_inline void note_edge(
	struct shadow_cpu *c, const struct progress *p, u64 from, u64 to)
{
	u64 at = p->at + SHADOW_HEAD + p->edges * 2;

	c->buffer[at % SHADOW_WORDS] = from;
	c->buffer[(at + 1) % SHADOW_WORDS] = to;
}

/*
 * What is due before some of the instructions: the first that counts is noted, or the clock looked
 * at. Returns whether there is time. By itself, as most need none of it.
 */
__attribute__((noinline)) int pause(struct state *s)
{
	struct progress *p;
	u32 index;

	if (!s)
		return 0;
	p = &s->p;
	index = p->done;
	if (index == p->skip) { /* what came before was passed over */
		p->start = s->m.ip;
		p->edges = 0;
	}
	p->next = (index / 16 + 1) * 16;
	if (index < p->skip && p->next > p->skip)
		p->next = p->skip;
	return look(p) <= p->deadline;
}

/* One instruction; returns why it was the last one, or INTERP_GOES_ON. */
static __always_inline int step(struct shadow_cpu *c, struct state *s)
{
	struct progress *p = &s->p;
	u64 from = s->m.ip;
	u32 index = p->done, op;
	int stop;

	if (index == p->next && !pause(s))
		return INTERP_TIME;
	if (s->m.keeps && s->m.ninputs > INTERP_INPUTS - INPUTS_A_STEP)
		return INTERP_ROOM;
	INTERP_FORGET;
	stop = interp_one(&s->m);
	if (stop)
		return stop;
	INTERP_FORGET;
	p->done = index + 1;
	op = INTERP_E_OP(s->m.insn.entry);
	if (op < INTERP_OP_JCC)
		return INTERP_GOES_ON;
	if (interp_chooses(op) && p->edges < SHADOW_EDGES) {
		if (!s->m.keeps)
			note_edge(c, p, from, s->m.ip);
		p->edges++;
	}
	/* A repeated instruction takes as long as others take together. */
	if (interp_repeats(op))
		p->next = index + 1;
	return INTERP_GOES_ON;
}

/*
 * Whether a loop may go round once more: the kernel's own limit for loops of which the verifier
 * sees no end, some eight million times. In machine code, as compilers do not know it (may_goto).
 */
#define MAY_GO_ON                                                                              \
	({                                                                                     \
		__label__ no, done;                                                            \
		u32 may = 1;                                                                   \
		asm volatile goto("1: .byte 0xe5, 0;"                                          \
				  ".long ((%l[no] - 1b - 8) / 8) & 0xffff; .short 0" :: ::no); \
		goto done;                                                                     \
	no:                                                                                    \
		may = 0;                                                                       \
	done:                                                                                  \
		may;                                                                           \
	})

static __always_inline void run(struct shadow_cpu *c, struct state *s)
{
	struct progress *p = &s->p;

	while (p->done < p->steps && MAY_GO_ON) {
		int stop = step(c, s);

		if (stop) {
			p->stop = stop;
			break;
		}
	}
	INTERP_FORGET;
}

struct both {
	struct shadow_cpu *c;
	struct state *s;
};

static long step_called(u32 i, struct both *b)
{
	int stop;

	(void)i;
	stop = step(b->c, b->s);
	if (stop)
		b->s->p.stop = stop;
	return stop ? 1 : 0;
}

/* The same with a call for each instruction, for kernels before 6.9. */
static __always_inline void run_by_calls(struct shadow_cpu *c, struct state *s)
{
	struct both b = {c, s};

	bpf_loop(s->p.steps, step_called, &b, 0);
}

#endif
