/*
 * What the verbs say, over HTTP: one page, and the verbs' own --json behind it. Read-only.
 *
 * Every answer is the output of a child process (`culprit VERB --json ...`), so that nothing is
 * computed twice and a damaged database ends a child, not the server. The page asks with a token
 * that was printed when the server began (access.h).
 */
#ifndef CULPRIT_WEB_WEB_H
#define CULPRIT_WEB_WEB_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct web;

struct web_options {
	const char *program;          /* what runs the verbs */
	const char *const *databases; /* what may be read; the page names them by number */
	size_t ndatabases;
	const char *address; /* "127.0.0.1", "::1", "0.0.0.0", ... */
	uint16_t port;       /* 0: any */
	const char *token;
	const char *const *hosts; /* names besides the address that browsers may use */
	size_t nhosts;
};

/* Answers in threads of its own from now on. The options must outlive it. */
int web_start(const struct web_options *o, struct web **out, struct err *e);
uint16_t web_port(const struct web *w);
void web_stop(struct web *w); /* takes NULL; requests under way are finished */

#endif
