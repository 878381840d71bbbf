/*
 * Runs cases (native.h) in Unicorn, with the same memory at the same addresses. It says of a case
 * what the processor would, as signals, and also which bytes the instruction wrote, whether they
 * changed or not.
 */
#ifndef CULPRIT_TESTS_EMULATED_H
#define CULPRIT_TESTS_EMULATED_H

#include <unicorn/unicorn.h>

#include "isa/forms.h"
#include "isa/native.h"

enum { EMULATED_CHANGES = 1024, EMULATED_STEPS = 400 };

struct emulated_write {
	uint64_t address;
	uint32_t size;
};

struct emulated {
	uc_engine *uc;
	uc_context
		*fresh; /* as it was made: an exception leaves it waiting for its handler to end */
	uint8_t code[NATIVE_CODE_SIZE] __attribute__((aligned(NATIVE_PAGE)));
	uint64_t data[NATIVE_WORDS] __attribute__((aligned(NATIVE_PAGE)));
	uint64_t before[NATIVE_WORDS]; /* what data holds before each case */
	uint8_t rights[NATIVE_PAGES];
	int interrupt; /* the exception of the case, or -1 */
	/* Of the last case. */
	struct native_change change[EMULATED_CHANGES];
	struct emulated_write write[EMULATED_CHANGES];
	size_t writes;
};

static const int emulated_order[16] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX,
	UC_X86_REG_RBX, UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
	UC_X86_REG_R8, UC_X86_REG_R9, UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12,
	UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};

static inline void emulated_see_write(
	uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *arg)
{
	struct emulated *e = arg;
	(void)uc, (void)type, (void)value;
	if (e->writes < EMULATED_CHANGES)
		e->write[e->writes++] = (struct emulated_write){address, (uint32_t)size};
}

static inline void emulated_see_interrupt(uc_engine *uc, uint32_t number, void *arg)
{
	struct emulated *e = arg;
	e->interrupt = (int)number;
	uc_emu_stop(uc);
}

static inline void emulated_check(uc_err error)
{
	if (error) {
		fprintf(stderr, "unicorn: %s\n", uc_strerror(error));
		abort();
	}
}

/* Memory with these contents and rights for the cases that follow. */
static inline void emulated_map(
	struct emulated *e, const uint64_t data[NATIVE_WORDS], const uint8_t rights[NATIVE_PAGES])
{
	for (size_t i = 0; i < NATIVE_PAGES; i++) {
		uint64_t page = NATIVE_DATA + i * NATIVE_PAGE;
		if (e->rights[i] != NATIVE_ABSENT)
			emulated_check(uc_mem_unmap(e->uc, page, NATIVE_PAGE));
		e->rights[i] = rights[i];
		if (rights[i] != NATIVE_ABSENT)
			emulated_check(uc_mem_map_ptr(e->uc, page, NATIVE_PAGE,
				UC_PROT_READ | (rights[i] == NATIVE_WRITABLE ? UC_PROT_WRITE : 0),
				(uint8_t *)e->data + i * NATIVE_PAGE));
	}
	memcpy(e->before, data, sizeof e->before);
	memcpy(e->data, data, sizeof e->data);
}

static inline void emulated_open(struct emulated *e)
{
	uc_hook hook;
	memset(e, 0, sizeof *e);
	memset(e->rights, NATIVE_ABSENT, sizeof e->rights);
	emulated_check(uc_open(UC_ARCH_X86, UC_MODE_64, &e->uc));
	emulated_check(uc_mem_map_ptr(
		e->uc, NATIVE_CODE, NATIVE_CODE_SIZE, UC_PROT_READ | UC_PROT_EXEC, e->code));
	emulated_check(uc_hook_add(
		e->uc, &hook, UC_HOOK_MEM_WRITE, (void *)emulated_see_write, e, 1ul, 0ul));
	emulated_check(uc_hook_add(
		e->uc, &hook, UC_HOOK_INTR, (void *)emulated_see_interrupt, e, 1ul, 0ul));
	emulated_check(uc_context_alloc(e->uc, &e->fresh));
	emulated_check(uc_context_save(e->uc, e->fresh));
}

static inline void emulated_close(struct emulated *e)
{
	uc_context_free(e->fresh);
	uc_close(e->uc);
}

static inline void emulated_load(struct emulated *e, const struct native_case *c)
{
	uint64_t at = c->before.ip - NATIVE_CODE, room = NATIVE_CODE_SIZE - at, base[2];
	memset(e->code, NATIVE_INT3, sizeof e->code);
	memcpy(e->code + at, c->code, c->size < room ? c->size : room);
	emulated_check(uc_ctl_remove_cache(e->uc, NATIVE_CODE, NATIVE_CODE + NATIVE_CODE_SIZE));
	emulated_check(uc_context_restore(e->uc, e->fresh));
	for (int i = 0; i < 16; i++) {
		uc_reg_write(e->uc, emulated_order[i], &c->before.r[i]);
		uc_reg_write(e->uc, UC_X86_REG_XMM0 + i, c->before.xmm[i]);
	}
	base[0] = NATIVE_FS;
	base[1] = NATIVE_GS;
	uc_reg_write(e->uc, UC_X86_REG_FS_BASE, &base[0]);
	uc_reg_write(e->uc, UC_X86_REG_GS_BASE, &base[1]);
	uc_reg_write(e->uc, UC_X86_REG_EFLAGS, &c->before.flags);
	uc_reg_write(e->uc, UC_X86_REG_RIP, &c->before.ip);
}

static inline void emulated_note_changes(struct emulated *e, struct native_case *c)
{
	c->change = c->changes = 0;
	c->overflow = e->writes == EMULATED_CHANGES;
	for (uint32_t i = 0; i < NATIVE_WORDS; i++) {
		if (e->data[i] == e->before[i])
			continue;
		if (c->changes < EMULATED_CHANGES)
			e->change[c->changes++] = (struct native_change){i, e->data[i]};
		else
			c->overflow = true;
		e->data[i] = e->before[i];
	}
}

static inline int emulated_signal(const struct emulated *e, uc_err error)
{
	if (e->interrupt == 0)
		return SIGFPE;
	if (e->interrupt == 6)
		return SIGILL;
	if (e->interrupt >= 0)
		return SIGSEGV;
	switch (error) {
	case UC_ERR_OK:
		return SIGTRAP;
	case UC_ERR_INSN_INVALID:
		return SIGILL;
	default:
		return SIGSEGV;
	}
}

static inline void emulated_note(struct emulated *e, struct native_case *c, uc_err error)
{
	for (int i = 0; i < 16; i++) {
		uc_reg_read(e->uc, emulated_order[i], &c->after.r[i]);
		uc_reg_read(e->uc, UC_X86_REG_XMM0 + i, c->after.xmm[i]);
	}
	uc_reg_read(e->uc, UC_X86_REG_EFLAGS, &c->after.flags);
	uc_reg_read(e->uc, UC_X86_REG_RIP, &c->after.ip);
	c->signal = emulated_signal(e, error);
	c->signal_code = (int)error;
	/* It looks where it would go on, which is beyond the case. */
	if ((error == UC_ERR_FETCH_UNMAPPED || error == UC_ERR_FETCH_PROT) && c->steps &&
		c->after.ip != c->before.ip)
		c->signal = SIGTRAP;
	emulated_note_changes(e, c);
}

/* Runs a case of one instruction. False: it repeats too often to see the end of it. */
static inline bool emulated_run(struct emulated *e, struct native_case *c, const struct form *f)
{
	uint64_t end = c->before.ip + f->in.length;
	bool repeats = form_repeats(f);
	e->interrupt = -1;
	e->writes = 0;
	emulated_load(e, c);
	uc_err error = uc_emu_start(
		e->uc, c->before.ip, c->steps ? ~0ull : end, 0, repeats ? EMULATED_STEPS : 1);
	emulated_note(e, c, error);
	return !(repeats && c->signal == SIGTRAP && c->after.ip == c->before.ip);
}

#endif
