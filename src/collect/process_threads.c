#include "collect/process_threads.h"

#include "collect/procfs.h"

#include <stdio.h>

struct thread_entry {
	int32_t tid, pid;
	uint64_t since;
	char name[PROCFS_COMM];
};

void thread_names_init(struct thread_names *t)
{
	hmap_init(&t->names, sizeof(struct thread_entry), sizeof(int32_t));
}

void thread_names_deinit(struct thread_names *t)
{
	hmap_deinit(&t->names);
}

const char *thread_names_get(const struct thread_names *t, pid_t pid, pid_t tid)
{
	const struct thread_entry *entry = hmap_get(&t->names, &tid);

	return entry && entry->pid == pid ? entry->name : NULL;
}

void thread_names_set(struct thread_names *t, pid_t pid, pid_t tid, const char *name, uint64_t time)
{
	char copy[PROCFS_COMM]; /* the name may be another entry's, which moves */
	struct thread_entry *entry;

	snprintf(copy, sizeof copy, "%.*s", PROCFS_COMM - 1, name);
	entry = hmap_put(&t->names, &tid, NULL);
	entry->pid = pid;
	entry->since = time;
	snprintf(entry->name, sizeof entry->name, "%s", copy);
}

void thread_names_forget(struct thread_names *t, pid_t tid, uint64_t time)
{
	const struct thread_entry *entry = hmap_get(&t->names, &tid);

	if (entry && entry->since <= time)
		hmap_delete(&t->names, &tid);
}

size_t thread_names_memory(const struct thread_names *t)
{
	return t->names.slots * (sizeof(struct thread_entry) + sizeof(uint32_t));
}
