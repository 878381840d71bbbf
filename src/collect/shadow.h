/*
 * What the interpreter in the sampling interrupt (shadow.bpf.c) and its user-space half
 * (shadow.c, by way of shadow_user.h) share.
 *
 * From some of the samples the interpreter runs on from the interrupted context. A burst that it
 * wrote says which way the branches went; when values are wanted it holds instead the registers it
 * began with and the words of memory it read, from which user space runs it again (interp.h).
 */
#ifndef CULPRIT_COLLECT_SHADOW_H
#define CULPRIT_COLLECT_SHADOW_H

#include "isa/interp.h"

#define SHADOW_WORDS    32768 /* of a CPU's buffer: 256 KB */
#define SHADOW_EDGES    256   /* of a burst, at most */
#define SHADOW_LONG_NS  50000 /* no interrupt should take longer */
#define SHADOW_PAUSE_NS 20000 /* 16 instructions take some 2 us: this was somebody else */
#define SHADOW_STATE    22 /* words: registers, ip, fs and gs base, flags; a word that is stored */

#define SHADOW_MOVED   4   /* words that a burst tells of, at most */
#define SHADOW_WATCHED 8   /* words of a thread that are watched, at most */
#define SHADOW_WATCHES 256 /* threads with some */

/* A word in memory, not on the stack, that a burst would change by a little: it may be a counter.
 */
struct shadow_moved {
	u64 address, by; /* the last instruction that stored to it */
	s64 change;
	u32 times; /* it was stored to */
	u32 size;  /* 4 or 8 bytes */
};

/*
 * Words whose values are read at each burst of a thread. User space sets them, in the place that
 * the thread's number leads to, and n last.
 */
struct shadow_watch {
	u64 thread; /* SHADOW_PROCESS, of the thread's own number */
	u32 n, pad;
	u64 address[SHADOW_WATCHED];
};

/* What was read before a burst: of each word the address, and the eight aligned bytes around. */
struct shadow_reading {
	u64 ns; /* that the thread has spent on CPUs, by a clock that began at any time */
	u64 pc; /* of the sample */
	u64 word[SHADOW_WATCHED][2];
};

/*
 * A burst in the buffer. What follows it are edges (from, to), the words that it moved, and what
 * was read of watched ones (its `watched` first); or with inputs the state, the inputs and a bit
 * for each that could not be read.
 */
struct shadow_burst {
	u32 words; /* of all of it; 0: the rest of the buffer is unused, go on at its beginning */
	u32 generation; /* exec generation, as the driver's tags have it */
	u32 pid, tid;
	u64 time;           /* CLOCK_MONOTONIC ns */
	u64 start;          /* the first instruction looked at */
	u16 skipped, steps; /* instructions: passed over first, then looked at */
	u16 edges, inputs;
	u8 stop; /* enum interp_stop */
	u8 kernel;
	u8 moved, watched; /* words; 0 watched: no reading follows */
	u32 failed;        /* loads that could not be read */
	u64 end;           /* the instruction pointer after the last step */
};
#define SHADOW_HEAD       (sizeof(struct shadow_burst) / 8)
#define SHADOW_MOVED_SIZE (sizeof(struct shadow_moved) / 8)
#define SHADOW_READING    (sizeof(struct shadow_reading) / 8)
#define SHADOW_MOST       (SHADOW_HEAD + SHADOW_STATE + INTERP_INPUTS + INTERP_INPUTS / 64) /* words */

/*
 * Processes in which no burst begins: pid and exec generation in one word, in the place that the
 * pid leads to. User space sets them; one may push out another, which then is interpreted again.
 */
#define SHADOW_LEFT_OUT                 16384
#define SHADOW_PROCESS(pid, generation) ((u64)(pid) << 32 | (generation))

/* What a CPU may do; set by user space, read at every burst. */
struct shadow_orders {
	u32 steps;  /* at most; drawn at random up to here, as the ASPLOS 2000 paper's section 7 */
	u32 skip;   /* instructions passed over first: at most, drawn at random */
	u32 values; /* keep inputs */
	u32 user, kernel; /* interpret these modes */
	u32 most_ns;      /* of one burst */
	u32 share;        /* of each CPU's time for all bursts together, in 1/65536 */
	u32 exact;        /* no mixed lengths: always as many steps as that */
	u32 choosy;       /* some processes are left out */
	u32 watch;        /* tell of words that move, and read those that are watched */
};

/* A CPU's buffer. Nothing is atomic: all of it belongs to its CPU, except what user space is said
 * to set. */
struct shadow_cpu {
	struct shadow_orders orders; /* set by user space */
	/*
	 * The base of gs in the kernel, and where that keeps the preemption count, which the
	 * sampling interrupt has changed; 0: not known, and then neither is what lies beyond gs.
	 * Set by user space.
	 */
	u64 gs, preempt;
	s64 credit; /* ns that may be spent; this line is all that most samples touch */
	u64 last;   /* time of the last look */
	u32 busy, pad;
	u64 withheld;               /* bursts not begun because the share was used up */
	u64 head;                   /* words ever written */
	u64 bursts, steps, ns;      /* done */
	u64 dropped;                /* bursts that found no room */
	u64 refused;                /* samples of a mode that is not asked for, or without memory */
	u64 left_out;               /* samples of processes without anything that is wanted */
	u64 stops[16];              /* by enum interp_stop */
	u64 longest;                /* ns of the longest burst, all of it */
	u64 nlong;                  /* bursts that took longer than SHADOW_LONG_NS */
	u64 longest_own, nlong_own; /* the same without pauses */
	u64 tail __attribute__((aligned(64))); /* words read; set by user space */
	/* The last words are unused, and let a burst's head be written in one piece anywhere. */
	u64 buffer[SHADOW_WORDS + SHADOW_HEAD] __attribute__((aligned(64)));
};

#endif
