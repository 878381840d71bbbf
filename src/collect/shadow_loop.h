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

/* One instruction; returns why it was the last one, or INTERP_GOES_ON. */
static __always_inline int step(struct shadow_cpu *c, struct state *s)
{
	struct progress *p = &s->p;
	u64 from = s->m.ip;
	u32 index = p->done;
	int stop;

	/* A repeated instruction before this one took as long as others take together. */
	if (((index % 16 == 0 && index) || interp_repeats(INTERP_E_OP(s->m.insn.entry))) &&
		look(p) > p->deadline)
		return INTERP_TIME;
	if (s->m.keeps && s->m.ninputs > INTERP_INPUTS - INPUTS_A_STEP)
		return INTERP_ROOM;
	INTERP_FORGET;
	stop = interp_one(&s->m);
	if (stop)
		return stop;
	p->done = index + 1;
	if (index < p->skip)
		return INTERP_GOES_ON;
	if (index == p->skip)
		p->start = from;
	if (interp_chooses(INTERP_E_OP(s->m.insn.entry)) && p->edges < SHADOW_EDGES) {
		if (!s->m.keeps)
			note_edge(c, p, from, s->m.ip);
		p->edges++;
	}
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
