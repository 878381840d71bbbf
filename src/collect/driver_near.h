/*
 * The part of the sampler (driver.bpf.c, which includes it) that knows what to do where there is
 * little left for stacks: new contexts then tell their nearest callers, and those whose call was
 * seen before leave what there is to others.
 */
#ifndef CULPRIT_COLLECT_DRIVER_NEAR_H
#define CULPRIT_COLLECT_DRIVER_NEAR_H

static __always_inline struct trail trail_from(
	const struct driver_seen *known, const struct place *p)
{
	const struct mm_struct *mm = ((struct task_struct *)bpf_get_current_task_btf())->mm;

	return (struct trail){.seen = known,
		.program = program_hash(mm),
		.code = mm->start_code,
		.code_size = mm->end_code - mm->start_code,
		.libraries = mm->mmap_base,
		.sp = p->sp,
		.words = (p->base - p->sp) / 8};
}

/* A new context whose stack may not be taken tells its nearest callers, as far as they are known. */
static __always_inline void tell_near(
	struct key *k, const struct place *p, const struct driver_seen *known)
{
	struct trail t = trail_from(known, p);

	if (!k->context.caller[0] && (p->kind == WHERE_MAIN || p->kind == WHERE_THREAD) &&
		follow_some(&t, p->pc, k->context.caller))
		k->context.where |= WHERE_NEAR;
}

/* Whether its caller was seen to call at this height. */
static __always_inline bool is_called_so(
	const struct driver_seen *known, const struct place *p, u64 caller)
{
	const struct mm_struct *mm = ((struct task_struct *)bpf_get_current_task_btf())->mm;
	u64 words = (p->base - p->sp) / 8 - (caller >> CALLER_SHIFT);
	u64 hash = DRIVER_HASH_CALL(program_hash(mm), place_in(mm, CALLER_ADDRESS(caller)),
		p->kind, words);
	u32 bit = DRIVER_CALL(hash);

	return known->called[bit / 64 % (DRIVER_CALLS / 64)] >> bit % 64 & 1;
}

/*
 * Where little is left, it is for contexts of which less is known, and for those that come often.
 * True: this one gets nothing.
 */
static __always_inline bool gives_way(const struct driver_cpu *c, struct key *k,
	const struct place *p, const struct driver_seen *known, u32 why, u32 dice)
{
	if (!(why & WHY_NEW) || why & WHY_WANTED || c->stacks_left >= DRIVER_KNOWN ||
		(how != DRIVER_INFER && how != DRIVER_JUDGE))
		return false;
	tell_near(k, p, known);
	return dice % DRIVER_INSISTS && k->context.where & WHERE_NEAR &&
	       is_called_so(known, p, k->context.caller[0]);
}

#endif
