/*
 * What the BPF sampler (driver.bpf.c, the device driver of the DCPI paper's section 4.2) and its
 * user-space half (driver.c, by way of driver_user.h) share.
 *
 * Each CPU has two small tables of four-entry buckets; the sampler counts in the active one. An
 * entry that must make room goes to the CPU's overflow buffer. Nothing here is atomic: all of it
 * belongs to its CPU, except what user space is said to set.
 *
 * The tables are much smaller than the paper's: today a load that misses caches and TLB, as a big
 * table's mostly do in an interrupt, costs more than sending an entry to the overflow buffer, which
 * only stores. (Mixed load in a virtual machine: 2,048 buckets 0.60 us a sample, 128 buckets 0.45.)
 */
#ifndef CULPRIT_COLLECT_DRIVER_H
#define CULPRIT_COLLECT_DRIVER_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#define DRIVER_WAYS     4
#define DRIVER_BUCKETS  128
#define DRIVER_OVERFLOW 16384 /* entries; more than half a second of 20,000 samples/s */
#define DRIVER_PAIRS    256   /* of a CPU's buffer */
#define DRIVER_NEAR     65536 /* bytes of code between the samples of a pair, less than that */

/* tag: the exec generation (24 bits), the table's side, the mode and the event's number (6). */
#define DRIVER_EVENTS               64
#define DRIVER_TAG_EVENT            0x3fu
#define DRIVER_TAG_KERNEL           0x40u
#define DRIVER_TAG_SIDE             0x80u
#define DRIVER_TAG_GENERATION_SHIFT 8

/* Units of `seen`: 256 ns, so that 32 bits span 18 minutes, more than any drain waits. */
#define DRIVER_SEEN_SHIFT 8

/*
 * 32 bytes: a bucket is two cache lines. The first four fields are the key; count 0 is a free
 * entry. The exec generation keeps apart what an exec or a reused pid would mix inside one drain;
 * `seen` says where on the time line of the side-band records the entry belongs.
 */
struct driver_entry {
	u64 pc;
	u32 pid, tid;
	u32 tag;
	u32 cgroup; /* low half of the cgroup v2 id, at first sight */
	u32 count;
	u32 seen; /* first sight, in units of 256 ns after the side's base time; saturates */
};

struct driver_bucket {
	struct driver_entry way[DRIVER_WAYS];
};

/* How contexts are told apart: enum contexts_how of sampler.h. */
#define DRIVER_NO_PATHS 0
#define DRIVER_INFER    1 /* by heights; some stacks are copied */
#define DRIVER_JUDGE    2 /* the same, and all are */
#define DRIVER_COPY     3 /* all are */
#define DRIVER_CHAIN    4 /* by the chain of frame pointers */

/*
 * With contexts, the rest of an entry's key, in arrays of its own: whoever wants none does not pay
 * for them. `where` says how far the stack pointer of the program is below the base of its stack
 * (WHERE_HEIGHT, in words of 8 bytes), which base that is (enum stack_kind of calls/map.h) and,
 * if rbp could be a frame pointer, how many words it is above the stack pointer; whether the stack
 * was copied with the sample, or should have been, as the context was new (and then, whether its
 * callers are the nearest, one after the other); and the context's slot in the filter. Samples in
 * the kernel have the context that the program entered it with: `user` is its next instruction.
 */
#define WHERE_HEIGHT      0x7ffffffu
#define WHERE_NEAR        (1ull << 27)
#define WHERE_FRAME_SHIFT 28
#define WHERE_FRAME       0xffffu
#define WHERE_KIND_SHIFT  44
#define WHERE_KIND        3u
#define WHERE_COPIED      (1ull << 46)
#define WHERE_HELD        (1ull << 47)
#define WHERE_SLOT_SHIFT  48
#define WHERE_MAIN        0ull
#define WHERE_THREAD      1ull
#define WHERE_SIGNAL      2ull
#define WHERE_OTHER       3ull
#define WHERE_DEEPEST     (1ull << 30) /* bytes that a stack can have */

#define DRIVER_CALLERS 3 /* return addresses that a sample can tell */

/* The part that tells contexts apart. */
#define WHERE_CONTEXT(where) ((where) & ((1ull << 46) - 1))

struct driver_context {
	u64 where;
	u64 user; /* 0: the sample was in user mode, or there is no user */
	/* Return addresses, as far as user space asked for them or (WHERE_NEAR) they are known to
	   be some, with where they are above CALLER_SHIFT (as in an ask); else 0. On a stack that
	   nobody knows, the first is the stack pointer. */
	u64 caller[DRIVER_CALLERS];
};
#define CALLER_SHIFT         48
#define CALLER_ADDRESS(told) ((told) & ((1ull << CALLER_SHIFT) - 1))

struct driver_context_bucket {
	struct driver_context way[DRIVER_WAYS];
};

/*
 * A copy of a stack, from the stack pointer on: what is not in a filter of contexts seen before is
 * copied, and one sample in DRIVER_JUDGES, whatever it is (or more, only to look at them). User
 * space gives out what it may cost, and the last part of that is for the contexts that it asks for.
 */
#define DRIVER_SEEN    65536 /* slots of the filter */
#define DRIVER_JUDGES  128   /* and at most so many a second on each CPU: */
#define DRIVER_JUDGED  16
#define DRIVER_RESERVE 1024
#define DRIVER_AGAIN   16384 /* and so much is left for contexts that are copied once, */
#define DRIVER_KNOWN   8192  /* and so much for those whose call nobody has seen at its height */
#define DRIVER_INSISTS 8     /* of the others, one sample in so many: those that come often */
#define DRIVER_HURRY                                                                \
	16 /* copies of contexts that were copied before, until user space is woken \
	    */
#define DRIVER_STACKS (8 << 20) /* bytes of the ring that they come through */

/* Bytes of a copy, as many as are needed, and what it costs. */
#define DRIVER_SHORT        4096
#define DRIVER_MEDIUM       8192
#define DRIVER_MIDDLE       16384
#define DRIVER_LONG         65536
#define DRIVER_LONGER       131072
#define DRIVER_LONGEST      262144
#define DRIVER_TRAIL_COST   1 /* of a list of return addresses (below) */
#define DRIVER_COPY_COST    4
#define DRIVER_LONG_COST    8
#define DRIVER_LONGER_COST  12
#define DRIVER_LONGEST_COST 24

#define DRIVER_CHAIN_MOST 127 /* frames; what the kernel takes at most */

/* The slot of a context in the filter, and what marks it there. */
#define DRIVER_SLOT(hash) ((hash) >> 48)
#define DRIVER_MARK(hash) ((u32)(hash) | 1)
#define DRIVER_WANTED     2u /* a mark that nobody has: user space wants the stack */

/*
 * Where several paths have one height, or may have, callers tell them apart: user space says which
 * words above the stack pointer return addresses are (ASK_AT, + 1; 0: none). Until it has said
 * something, stacks of the context are copied. What samples then tell that none has told before is
 * a context of its own, whose stack is copied.
 */
#define ASK_AT(ask, i) ((ask) >> 16 * (i)&0xffff)
#define ASK_ANSWERED   (1ull << 63)

/* What belongs together is one load that misses caches and TLB: slots come in pairs. */
struct driver_slot {
	u64 ask;
	u32 mark; /* a part of a hash; 0: free */
	u32 told; /* the same of a context with what it told, in a place of its own */
};

/*
 * How large frames are, as user space has learned it from stacks that were copied: of all code
 * around (STEP_PIECES) or of an instruction (STEP_EXACT), where unwind rows say so; and how
 * far one return address is from the next (STEP_RETURN), where they do not. With these the list of
 * a new context is found in the kernel, and its stack need not be copied.
 *
 * Frames have one size in most procedures (the unwind row counts from rsp). Others are believed to,
 * if so many were alike and none was not.
 */
#define DRIVER_STEPS 262144
#define DRIVER_TRAIL 160 /* return addresses of a stack, at most */

struct driver_step {
	u32 mark; /* a part of a hash; 0: free */
	u32 step; /* words, how often they were alike, flags */
};
#define STEP_WORDS      0xffffu
#define STEP_SEEN_SHIFT 16
#define STEP_SEEN       0xffu
#define STEP_ENOUGH     16u
#define STEP_VARIES     (1u << 30)
#define STEP_ROOT       (1u << 31) /* nobody called it: the words lead to its frame's end */
#define STEP_SURE(step) \
	(((step) >> STEP_SEEN_SHIFT & STEP_SEEN) >= STEP_ENOUGH && !((step)&STEP_VARIES))

#define STEP_RETURN 1ull
#define STEP_EXACT  2ull
#define STEP_PIECES 3ull /* and those behind it */
#define STEP_SIZES  3
#define STEP_CALLED 8ull /* none: a call that was seen, its `words` are a height */
/* Bytes of pieces of code, the smallest first: 8, 32 and 256. */
#define STEP_PIECE(size) ((size) == 0 ? 8 : (size) == 1 ? 32 : 256)
#define STEP_SLOT(hash)  ((hash) >> 44)

#define DRIVER_HASH_STEP(program, place, what)                                           \
	((((place) ^ (u64)(what)*0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15 ^ (program)) * \
		0xd6e8feb86659fd93)

/*
 * Calls that were seen at the height that they were seen at, of the frame that was called: a bit
 * of a hash. A context that is new but was called like that is mostly at a place whose path is
 * known, so that others need its stack more.
 */
#define DRIVER_CALLS (1u << 22)

struct driver_seen {
	struct driver_slot slot[DRIVER_SEEN];
	struct driver_step step[DRIVER_STEPS];
	u64 called[DRIVER_CALLS / 64];
	u64 ncalled; /* bits that are set; user space alone knows it */
};
#define DRIVER_HASH_CALL(program, place, kind, words) \
	DRIVER_HASH_STEP(program, (place) ^ ((u64)(words) << 32 | (u64)(kind) << 62), STEP_CALLED)
#define DRIVER_CALL(hash) ((hash) >> 42) /* which bit it is */

/* Goes on with an address; 0 to begin with. */
#define DRIVER_HASH_TOLD(hash, place)   (((hash) + (place)) * 0x9e3779b97f4a7c15)
#define DRIVER_HASH_BOTH(context, told) (((context) ^ (told) >> 7) * 0xff51afd7ed558ccd)

struct driver_stack {
	u64 time; /* CLOCK_MONOTONIC ns */
	u64 pc;   /* in the kernel, if it was there */
	u64 base; /* of the stack */
	struct driver_context context;
	u64 hash; /* of the context */
	/* Where the program's code is, and where its libraries end; and what it is known by. */
	u64 code, code_end, libraries, program;
	u64 rip, r[16]; /* of the program, by their number in machine code; of the kernel's
			   samples only those that it has saved by all means */
	u32 pid, tid, tag;
	u32 size;  /* of what follows: the copy, or return addresses, */
	u16 chain; /* which frame pointers led to, or */
	u16 trail; /* steps did: with where they are (as in `caller`), then where the last ends */
	u16 alone; /* there is no sample that waits for it */
	u16 judge; /* it is looked at, whatever was known of its context */
	u16 learn; /* it was new, wanted or is one in DRIVER_JUDGES: its sample waits for its path
		    */
	u16 pad[3];
};

/*
 * Two samples in a row of one thread in what is probably one activation: the stack pointer is the
 * same, and so is the program. The difference of an induction register tells how often its loop
 * went round between them.
 *
 * The time between is the thread's own, by the clock and what the scheduler has accounted: without
 * what others did in between, with what the kernel did for it or in interrupts. (Where the kernel
 * takes interrupts or what a hypervisor stole off the threads' time, it counts here even if the
 * thread was switched out then.) Samples of the thread in the kernel do not end a pair, as the
 * activation is still the same one: they are counted.
 */
struct driver_pair {
	u64 pc, last; /* of the second sample, of the first */
	u64 time;     /* of the second, CLOCK_MONOTONIC ns */
	u64 between;  /* ns on CPUs */
	u32 pid, tid;
	u32 kernel;   /* samples of the thread in the kernel in between */
	u16 changed;  /* registers by number; those of `difference` that are not 0 */
	u16 switched; /* out in between */
	u64 difference[16];
};

/* The sample whose thread is awaited. */
struct driver_last {
	u64 pc, time;
	u64 switches;
	u64 before; /* on CPUs, by whatever clock the scheduler has on this one */
	u32 tag, kernel;
	u64 r[16];
};

/* What the driver puts down to take it up again at once (driver_context.h says why). */
struct driver_forgotten {
	struct driver_context context;
	u64 kind, base;
	u32 why, slot, mark, told_slot, told_mark, pad;
};

/* A hit touches only the first line and its bucket (section 4.2.2). */
struct driver_cpu {
	u32 active;  /* which table counts: 0 or 1; set by user space */
	u32 turn;    /* round robin of evictions */
	u64 base[2]; /* CLOCK_MONOTONIC when each side was made active; set by user space */
	u64 hits, misses;
	u32 every; /* one sample in so many goes on to the interpreter; 0: none. Set by user space
		    */
	u32 since;
	u64 head;    /* entries ever put into the overflow buffer */
	u32 wait;    /* samples until the first of a pair is chosen; 0: never */
	u32 awaited; /* the thread whose next sample may end a pair; 0: none */
	u64 tail __attribute__((aligned(64))); /* entries taken out of it; set by user space */
	u64 pair_tail;                         /* pairs taken out; set by user space */
	u64 dropped[DRIVER_EVENTS];            /* samples of entries that found it full */
	u32 pair_every;                        /* in the mean; set by user space */
	u32 pad;
	u64 pair_head;  /* pairs ever put into their buffer */
	u64 begun;      /* first samples of pairs; what became of them: */
	u64 apart;      /* the next one was in another activation */
	u64 lapsed;     /* there was none on this CPU before the next choice */
	u64 pairs_lost; /* there was no room */
	struct driver_last last;
	struct driver_pair pair[DRIVER_PAIRS];
	u64 stacks, stacks_lost; /* copied; had no room */
	u64 stacks_gone;         /* could not be read */
	u64 stacks_held;         /* not copied because too many were */
	u64 stacks_again;        /* copied before anybody had answered for their context */
	u64 trails;              /* of `stacks`, those whose return addresses were found */
	u32 stacks_left;         /* may be copied; set by user space */
	u32 pad2;
	struct driver_forgotten forgotten;
	struct driver_bucket table[2][DRIVER_BUCKETS] __attribute__((aligned(128)));
	struct driver_entry overflow[DRIVER_OVERFLOW];
	struct driver_context_bucket contexts[2][DRIVER_BUCKETS] __attribute__((aligned(128)));
	struct driver_context overflow_context[DRIVER_OVERFLOW];
};

#endif
