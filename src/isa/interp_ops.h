/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * The interpreter's operations and the layout of its decode table (interp_table.h), which
 * tools/interp_table.c makes from what Zydis knows.
 *
 * The first 256 entries are those of the opcodes of one byte, the next 256 those of two bytes (0f)
 * without a mandatory prefix. For the others a slot, which stands for one opcode of one map with
 * one mandatory prefix, holds the number of the entry. An entry with INTERP_E_GROUP stands for 16,
 * by modrm.reg and whether modrm.mod is 3; one with INTERP_E_SPLIT for two, by the latter alone;
 * INTERP_E_FIRST is the number of the first of them.
 */
#ifndef CULPRIT_ISA_INTERP_OPS_H
#define CULPRIT_ISA_INTERP_OPS_H

/* Classes stand together, in the order in which they are told apart (interp_run.h). */
/* clang-format off */
#define INTERP_OPS(X) \
	X(BAD) \
	/* two operands; the first eight as their encodings */ \
	X(ADD) X(OR) X(ADC) X(SBB) X(AND) X(SUB) X(XOR) X(CMP) X(TEST) X(MOV) X(MOVZX8) \
	X(MOVZX16) X(MOVSX8) X(MOVSX16) X(MOVSX32) X(LEA) X(INC) X(DEC) X(NOT) X(NEG) X(SETCC) \
	X(CMOVCC) X(BSWAP) X(MOVBE) X(IMUL) X(IMUL3) \
	/* bits */ \
	X(BT) X(BTS) X(BTR) X(BTC) X(BSF) X(BSR) X(TZCNT) X(LZCNT) X(POPCNT) X(ANDN) X(BLSI) \
	X(BLSR) X(BLSMSK) X(BZHI) X(BEXTR) X(PDEP) X(PEXT) X(ADCX) X(ADOX) X(CRC32) \
	/* shifts; the first eight as their encodings */ \
	X(ROL) X(ROR) X(RCL) X(RCR) X(SHL) X(SHR) X(SAL) X(SAR) X(SHLD) X(SHRD) X(RORX) X(SARX) \
	X(SHLX) X(SHRX) \
	/* two results */ \
	X(XCHG) X(XADD) X(CMPXCHG) X(CMPXCHG8B) X(MUL) X(IMUL1) X(DIV) X(IDIV) X(MULX) \
	/* stack and control */ \
	X(PUSH) X(POP) X(PUSHF) X(POPF) X(LEAVE) X(ENTER) X(JMP) X(JCC) X(CALL) X(RET) X(JMPI) \
	X(CALLI) X(LOOPNE) X(LOOPE) X(LOOP) X(JRCXZ) \
	/* strings */ \
	X(MOVS) X(STOS) X(LODS) X(SCAS) X(CMPS) \
	/* without operands */ \
	X(NOP) X(CBW) X(CWD) X(LAHF) X(SAHF) X(CLC) X(STC) X(CMC) X(CLD) X(STD) X(XLAT) X(RDBASE) \
	/* vectors; the results of the rest are unknown */ \
	X(XMOV) X(XSTORE) X(XMOVQ) X(XSTOREQ) X(XMOVS) X(XLOW) X(XHIGH) X(XSTOREHIGH) X(XFROM) \
	X(XTO) \
	X(XAND) X(XANDN) X(XOR_) X(XXOR) X(XADD8) X(XADD16) X(XADD32) X(XADD64) X(XSUB8) X(XSUB16) \
	X(XSUB32) X(XSUB64) X(XEQ8) X(XEQ16) X(XEQ32) X(XMINU8) \
	X(XMASK8) X(XUNPACKLQ) X(XUNPACKHQ) X(XSHUF32) X(XSHL128) X(XSHR128) X(XPTEST) \
	X(XGREATER8) X(XGREATER16) X(XGREATER32) X(XMAXU8) X(XUNPACKL8) X(XUNPACKL16) \
	X(XUNPACKL32) X(XUNPACKH8) X(XUNPACKH16) X(XUNPACKH32) X(XSHUFL16) X(XSHUFH16) X(XMASK32) \
	X(XMASK64) \
	X(XCOMPARE32) X(XCOMPARE64) X(XWIDEN) \
	/* does what the entry says: marks its results as unknown */ \
	X(RESULT) X(SYSTEM)
/* clang-format on */

#define INTERP_OP_(name) INTERP_OP_##name,
enum interp_op { INTERP_OPS(INTERP_OP_) INTERP_NOPS };
#undef INTERP_OP_

/* Where operands are: destination, then sources. V is VEX.vvvv, O the opcode's low bits. */
enum interp_form {
	INTERP_F_NONE,
	INTERP_F_RM_R,
	INTERP_F_R_RM,
	INTERP_F_RM_I,
	INTERP_F_RM,
	INTERP_F_R_RM_I,
	INTERP_F_O_I,
	INTERP_F_O,
	INTERP_F_A_I,
	INTERP_F_RM_CL,
	INTERP_F_RM_1,
	INTERP_F_R_V_RM,
	INTERP_F_R_RM_V,
	INTERP_F_V_RM,
	INTERP_F_RM_R_I, /* with RM_R_CL: no immediate */
};

enum interp_immediate {
	INTERP_I_NONE,
	INTERP_I_8,  /* sign extended */
	INTERP_I_16, /* zero extended (ret) */
	INTERP_I_Z,  /* 16 or 32 bits by operand size, sign extended */
	INTERP_I_V,  /* also 64 (mov) */
	INTERP_I_32, /* relative */
	INTERP_I_24, /* enter */
	INTERP_I_ADDRESS,
};

enum interp_size {
	INTERP_S_8,
	INTERP_S_V,  /* by prefix 66 and REX.W: 2, 4, 8 */
	INTERP_S_64, /* 8, or 2 with prefix 66 */
	INTERP_S_Y,  /* by W: 4, 8 */
	INTERP_S_16,
	INTERP_S_32,
	INTERP_S_128,
};

#define INTERP_E_OP(e)        ((u32)(e)&0xff)
#define INTERP_E_FORM(e)      ((u32)((e) >> 8) & 15)
#define INTERP_E_IMMEDIATE(e) ((u32)((e) >> 12) & 7)
#define INTERP_E_MODRM        (1u << 15)
#define INTERP_E_SIZE(e)      ((u32)((e) >> 16) & 7)
#define INTERP_E_GROUP        (1u << 19)
#define INTERP_E_SPLIT        (1u << 20)
#define INTERP_E_ALIGNED      (1u << 21)                 /* a vector in memory has to be */
#define INTERP_E_TEN          (1u << 22)                 /* of the 16 bytes it stores: x87, sgdt */
#define INTERP_E_PREFIX       (1u << 23)                 /* no opcode: a legacy prefix */
#define INTERP_E_ESCAPE       (1ull << 60)               /* the opcode has more bytes */
#define INTERP_E_LEGACY(e)    ((u32)((e) >> 24) & 0xff)  /* which prefix: INTERP_P_* */
#define INTERP_E_FIRST(e)     ((u32)((e) >> 24) & 0xfff) /* of a group's entries */
#define INTERP_E_SET(e)       ((u32)((e) >> 24) & 0xfff) /* flags that get a value */
#define INTERP_E_UNDEFINED(e) ((u32)((e) >> 36) & 0xfff) /* flags that get any */

/* Operands, for what has one result (interp_alu.h): which of INTERP_N_* they are. */
#define INTERP_E_A(e)  ((u32)((e) >> 48) & 3)
#define INTERP_E_B(e)  ((u32)((e) >> 50) & 3)
#define INTERP_E_TO(e) ((u32)((e) >> 52) & 3) /* INTERP_N_OTHER: nowhere */
#define INTERP_E_SOURCE(e)                                                            \
	((u32)((e) >> 54) & 3)        /* of rm, 1 + log2 of the bytes; 0: as the rest \
				       */
#define INTERP_E_USES_A  (1ull << 56) /* the result depends on the first one */
#define INTERP_E_LOADS   (1ull << 57) /* a memory operand is read */
#define INTERP_E_COPIES  (1ull << 58) /* the result is the second one */
#define INTERP_E_QUICK   (1ull << 61) /* one of the plain ones that most code is made of */
#define INTERP_E_CANCELS (1ull << 59) /* a register with itself: the same always */

enum interp_operand { INTERP_N_REG, INTERP_N_RM, INTERP_N_OTHER /* immediate */, INTERP_N_V };

/* Results, for vectors and INTERP_OP_RESULT. */
#define INTERP_E_REG       (1ull << 48) /* the general register of modrm.reg */
#define INTERP_E_RM        (1ull << 49)
#define INTERP_E_V         (1ull << 50)
#define INTERP_E_RAX       (1ull << 51)
#define INTERP_E_RCX       (1ull << 52)
#define INTERP_E_RDX       (1ull << 53)
#define INTERP_E_RBX       (1ull << 54)
#define INTERP_E_XREG      (1ull << 55) /* the vector register of modrm.reg */
#define INTERP_E_XRM       (1ull << 56)
#define INTERP_E_XV        (1ull << 57)
#define INTERP_E_XMM0      (1ull << 58)
#define INTERP_E_XALL      (1ull << 59)
#define INTERP_E_STORE(e)  ((u32)((e) >> 61)) /* 0, or 1 + log2 of the bytes */
#define INTERP_E_STORE_VL  6                  /* as many as the vector is long */
#define INTERP_E_STORE_ANY 7

/* Entries. */
#define INTERP_ENTRY_0F      256
#define INTERP_FIRST_ENTRIES 512 /* found without a slot */

/* Slots. */
#define INTERP_SLOT_0F   0
#define INTERP_SLOT_0F38 1024
#define INTERP_SLOT_0F3A 2048
#define INTERP_SLOT_VEX  3072 /* maps 1 to 3 */
#define INTERP_SLOT_EVEX 6144 /* maps 1 to 3, 5, 6 */
#define INTERP_SLOTS     11264

/* Legacy prefixes. */
#define INTERP_P_16     0x01u
#define INTERP_P_ADDR32 0x02u
#define INTERP_P_REP    0x04u
#define INTERP_P_REPNE  0x08u
#define INTERP_P_LOCK   0x10u
#define INTERP_P_FS     0x20u
#define INTERP_P_GS     0x40u
#define INTERP_P_OTHER  0x80u
/* What else decoding notes. */
#define INTERP_P_REX      0x100u
#define INTERP_P_W        0x200u
#define INTERP_P_VEX      0x400u
#define INTERP_P_EVEX     0x800u
#define INTERP_P_VL(p)    (16u << ((p) >> 12 & 3)) /* bytes of a vector */
#define INTERP_P_VL_SHIFT 12

#endif
