/*
 * Who may ask. A browser that visits a hostile page can be made to send requests to loopback
 * addresses, so being on this machine proves nothing: the Host must be one of ours (names that
 * resolve to loopback after all are refused), the Origin, if there is one, too, and the token must
 * be known, from the cookie that the printed address sets or as a bearer.
 */
#ifndef CULPRIT_WEB_ACCESS_H
#define CULPRIT_WEB_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEB_TOKEN_LEAST = 16, WEB_TOKEN_SIZE = 33 };

struct access {
	const char *address; /* that it listens on */
	uint16_t port;
	const char *token;
	const char *const *hosts;
	size_t nhosts;
};

struct access_request { /* NULL: not sent */
	const char *host, *origin, *cookie, *authorization;
};

enum access_verdict { ACCESS_GRANTED, ACCESS_FOREIGN_HOST, ACCESS_FOREIGN_ORIGIN, ACCESS_NO_TOKEN };

enum access_verdict access_check(const struct access *a, const struct access_request *r);
bool access_is_token(const struct access *a, const char *text, size_t n); /* in constant time */
/* The cookie's name has the port: cookies of one host are shared by all ports. */
void access_cookie_name(const struct access *a, char out[32]);

bool access_is_loopback(const char *address);
int access_new_token(char out[WEB_TOKEN_SIZE]);

#endif
