/*
 * Calling contexts by -finstrument-functions: what a program's own calls of these two say, written
 * at its end to the file $TRACE as folded stacks, of all threads and processes, to be added up.
 * Frames that are below a new one have been left, whether they said so or not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_TRACED __attribute__((no_instrument_function))

struct node {
	void *procedure;
	struct node *parent, *child, *next;
	bool recursive;
	unsigned long count;
};

struct frame {
	struct node *node;
	void *at;
};

struct trace {
	struct node root;
	struct frame stack[100000];
	int depth;
	struct trace *next;
};

static __thread struct trace *mine;
static struct trace *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOT_TRACED static struct node *child_of(struct node *parent, void *procedure, bool recursive)
{
	struct node *n = parent->child;

	while (n && (n->procedure != procedure || n->recursive != recursive))
		n = n->next;
	if (!n) {
		n = calloc(1, sizeof *n);
		*n = (struct node){procedure, parent, NULL, parent->child, recursive, 0};
		parent->child = n;
	}
	return n;
}

NOT_TRACED static void put(const struct node *n, FILE *to)
{
	Dl_info info;

	if (n->parent && n->parent->parent) {
		put(n->parent, to);
		fputc(';', to);
	}
	fputs(dladdr(n->procedure, &info) && info.dli_sname ? info.dli_sname : "?", to);
}

NOT_TRACED static void put_tree(const struct node *n, FILE *to)
{
	if (n->count) {
		put(n, to);
		fprintf(to, " %lu\n", n->count);
	}
	for (n = n->child; n; n = n->next)
		put_tree(n, to);
}

NOT_TRACED static void forget(struct node *n)
{
	n->count = 0;
	for (n = n->child; n; n = n->next)
		forget(n);
}

NOT_TRACED static void forget_all(void)
{
	for (struct trace *t = all; t; t = t->next)
		forget(&t->root);
}

NOT_TRACED __attribute__((destructor)) static void finish(void)
{
	FILE *to = fopen(getenv("TRACE"), "a");

	for (struct trace *t = all; to && t; t = t->next)
		put_tree(&t->root, to);
	if (to)
		fclose(to);
}

NOT_TRACED static struct trace *start(void)
{
	struct trace *t = calloc(1, sizeof *t);

	pthread_mutex_lock(&lock);
	if (!all)
		pthread_atfork(NULL, NULL, forget_all);
	t->next = all;
	all = t;
	pthread_mutex_unlock(&lock);
	return mine = t;
}

NOT_TRACED void __cyg_profile_func_enter(void *procedure, void *site);
NOT_TRACED void __cyg_profile_func_exit(void *procedure, void *site);

NOT_TRACED void __cyg_profile_func_enter(void *procedure, void *site)
{
	struct trace *t = mine ? mine : start();
	void *at = __builtin_frame_address(1);
	struct node *caller, *up;

	(void)site;
	while (t->depth && t->stack[t->depth - 1].at <= at)
		t->depth--;
	caller = up = t->depth ? t->stack[t->depth - 1].node : &t->root;
	while (up && up->procedure != procedure)
		up = up->parent;
	if (up)
		child_of(caller, procedure, true)->count++;
	else
		(up = child_of(caller, procedure, false))->count++;
	t->stack[t->depth++] = (struct frame){up, at};
}

NOT_TRACED void __cyg_profile_func_exit(void *procedure, void *site)
{
	(void)procedure;
	(void)site;
	if (mine && mine->depth && mine->stack[mine->depth - 1].at == __builtin_frame_address(1))
		mine->depth--;
}
