/*
 * The interface of culprit's plug-ins, version 1 (after the customization modules of the ASPLOS
 * 2000 paper). A plug-in is a shared object that defines
 *
 *	const struct culprit_plugin culprit_plugin = {CULPRIT_PLUGIN(...)};
 *
 * It chooses which interpreted instructions it wants to see, turns sequences of them into pairs of
 * an address and a value, and prints such values. This file stands alone: nothing else of culprit
 * is needed to build a plug-in.
 *
 * `burst` may run inside a signal handler of the program that is profiled, on a stack of some tens
 * of kilobytes: it must not allocate, lock, print, or call anything that is not async-signal-safe,
 * and keeps what it remembers in `state` only. Bursts of one thread come in the order of time;
 * those of different threads come at once, with states of their own. All else runs in culprit, and
 * may do what it likes.
 */
#ifndef CULPRIT_PLUGIN_H
#define CULPRIT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something that is here changes; what is added at the end of a structure does not
 * change it: `size` tells. */
#define CULPRIT_PLUGIN_VERSION 1

/* What is known of a step, and what the instruction is (struct culprit_step.has). */
#define CULPRIT_HAS_VALUE   0x0001u
#define CULPRIT_HAS_SOURCE  0x0002u
#define CULPRIT_LOADS       0x0004u /* from `load` */
#define CULPRIT_STORES      0x0008u /* to `store` */
#define CULPRIT_BRANCH      0x0010u /* conditional; `next` tells how it went */
#define CULPRIT_INDIRECT    0x0020u /* jump or call through register or memory, or return */
#define CULPRIT_CALL        0x0040u
#define CULPRIT_RETURN      0x0080u
#define CULPRIT_JUMP        0x0100u /* direct */
#define CULPRIT_DRAINS      0x0200u /* earlier stores are in the cache before later loads begin */
#define CULPRIT_HAS_VECTOR0 0x0400u
#define CULPRIT_HAS_VECTOR1 0x0800u
#define CULPRIT_TIMED       0x1000u /* the load's latency was measured */

/* How the instruction is encoded. */
enum culprit_encoding { CULPRIT_LEGACY, CULPRIT_VEX, CULPRIT_EVEX };

/* Prefix that is part of the opcode (VEX's pp). */
enum culprit_prefix { CULPRIT_NONE, CULPRIT_66, CULPRIT_F3, CULPRIT_F2 };

/* One interpreted instruction. Register numbers are x86's: rax rcx rdx rbx rsp rbp rsi rdi r8... */
struct culprit_step {
	uint64_t pc, next;
	uint64_t value;         /* result; of cmp and test the first operand */
	uint64_t source;        /* second operand */
	uint64_t load;          /* address read from */
	uint64_t store;         /* address written to */
	uint64_t context;       /* return address of the procedure that it is in; 0: unknown */
	uint64_t registers[16]; /* before the instruction */
	uint64_t vector[2][2];  /* SSE operands before it: first and second, their low 16 bytes */
	uint32_t has;           /* CULPRIT_HAS_VALUE and so on */
	uint32_t latency;       /* of the load, in cycles of the time-stamp counter */
	uint16_t known;         /* registers whose value is known, a bit each */
	uint16_t reads,
		writes;   /* general registers, a bit each; reads has those of `address` too */
	uint16_t address; /* general registers that the address of memory is made of */
	uint16_t opcode;  /* 0x58 of map 0f is 0x158; 0f38 is 0x2.., 0f3a 0x3.. */
	uint16_t size;    /* bytes of value */
	uint16_t load_size, store_size; /* bytes accessed; 0: unknown */
	uint16_t index;                 /* in the burst, counted over all its instructions */
	uint8_t prefix, encoding;       /* enum culprit_prefix, enum culprit_encoding */
	uint8_t modrm, length;
	uint8_t code[16]; /* `length` bytes of it */
};

/* A run of instructions of one thread, as far as the plug-in's captures want them. */
struct culprit_burst {
	uint32_t size;     /* of this structure */
	uint32_t pid, tid; /* of the profiled thread */
	uint32_t cpu;
	uint64_t time;   /* CLOCK_MONOTONIC, ns */
	uint32_t kernel; /* kernel code, and not the program's */
	uint32_t upcall; /* was interpreted in the process: loads can have latencies */
	size_t n;
	const struct culprit_step *const *steps;
};

/* Takes a value of the instruction at pc, seen under a return address (0: any, or unknown). */
typedef void culprit_emit(void *arg, uint64_t pc, uint64_t value, uint64_t context);

/*
 * Which instructions a burst shows: those that have all of `has` and any of `any` (if not 0), whose
 * opcode is `opcode` under `opcode_mask`, with addresses from low up to high (high 0: all).
 */
struct culprit_capture {
	uint32_t has, any;
	uint16_t opcode, opcode_mask;
	uint64_t low, high;
};

/* What `prepare` found out once goes, as bytes, to where bursts are looked at. */
#define CULPRIT_CONFIG_SIZE 256

struct culprit_plugin {
	uint32_t version, size; /* CULPRIT_PLUGIN_VERSION; of this structure */
	const char *name;       /* lower-case letters, digits, '-', '_': 31 at most */
	const char *about;      /* what its values are, in one line */

	const struct culprit_capture *captures; /* an instruction fits one of these; none: all */
	size_t ncaptures;
	size_t state_size; /* bytes per thread, zeroed at first; 64 KB at most */

	/*
	 * Once, in culprit, before anything else; may be NULL. `arguments` is what stood behind the
	 * plug-in's file name, or "". Returns NULL, or why it does not work in one line.
	 */
	const char *(*prepare)(const char *arguments, unsigned char config[CULPRIT_CONFIG_SIZE]);

	/* Turns a burst into values. */
	void (*burst)(void *state, const unsigned char config[CULPRIT_CONFIG_SIZE],
		const struct culprit_burst *b, culprit_emit *emit, void *arg);

	/* Prints a value, as snprintf does; NULL: hexadecimal. */
	int (*format)(uint64_t value, char *text, size_t n);
};

#define CULPRIT_PLUGIN(...) \
	.version = CULPRIT_PLUGIN_VERSION, .size = sizeof(struct culprit_plugin), __VA_ARGS__

/* What a shared object has to define. */
extern const struct culprit_plugin culprit_plugin __attribute__((visibility("default")));

/*
 * The clock that latencies are measured with, for plug-ins that measure loads themselves: nothing
 * that stands before it is still under way when it is read, nothing behind it has begun. What two
 * readings in a row differ by is not part of a step's latency.
 */
static inline uint64_t culprit_cycles(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

#ifdef __cplusplus
}
#endif

#endif
