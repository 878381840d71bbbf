#include "web/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

bool access_is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strcmp(address, "::1") ||
	       !strcmp(address, "localhost");
}

int access_new_token(char out[WEB_TOKEN_SIZE])
{
	unsigned char bytes[(WEB_TOKEN_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return -errno;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

void access_cookie_name(const struct access *a, char out[32])
{
	snprintf(out, 32, "culprit-%u", a->port);
}

bool access_is_token(const struct access *a, const char *text, size_t n)
{
	size_t length = strlen(a->token);
	unsigned char differs = n != length;

	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(a->token[i] ^ (i < n ? text[i] : 0));
	return !differs;
}

/* "NAME:PORT" or "[NAME]:PORT"; the port may be missing where it is the usual one. */
static bool is_place(const char *text, const char *name, uint16_t port)
{
	bool brackets = strchr(name, ':');
	size_t n = strlen(name);
	char tail[8];

	if (brackets && *text++ != '[')
		return false;
	if (strncasecmp(text, name, n))
		return false;
	text += n;
	if (brackets && *text++ != ']')
		return false;
	snprintf(tail, sizeof tail, ":%u", port);
	return !strcmp(text, tail) || (port == 80 && !*text);
}

static bool is_ours(const struct access *a, const char *text)
{
	static const char *const loopback[] = {"127.0.0.1", "localhost", "::1"};

	if (is_place(text, a->address, a->port))
		return true;
	for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
		if (is_place(text, loopback[i], a->port))
			return true;
	for (size_t i = 0; i < a->nhosts; i++)
		if (is_place(text, a->hosts[i], a->port))
			return true;
	return false;
}

static bool has_cookie(const struct access *a, const char *cookies)
{
	char name[32];
	size_t n;

	access_cookie_name(a, name);
	n = strlen(name);
	while (*cookies) {
		size_t end;

		cookies += strspn(cookies, "; ");
		end = strcspn(cookies, ";");
		if (end > n && !strncmp(cookies, name, n) && cookies[n] == '=' &&
			access_is_token(a, cookies + n + 1, end - n - 1))
			return true;
		cookies += end;
	}
	return false;
}

enum access_verdict access_check(const struct access *a, const struct access_request *r)
{
	static const char bearer[] = "Bearer ";
	const char *origin = r->origin;

	if (!r->host || !is_ours(a, r->host))
		return ACCESS_FOREIGN_HOST;
	if (origin && (strncmp(origin, "http://", 7) || !is_ours(a, origin + 7)))
		return ACCESS_FOREIGN_ORIGIN;
	if (r->cookie && has_cookie(a, r->cookie))
		return ACCESS_GRANTED;
	if (r->authorization && !strncmp(r->authorization, bearer, sizeof bearer - 1)) {
		const char *token = r->authorization + sizeof bearer - 1;

		return access_is_token(a, token, strlen(token)) ? ACCESS_GRANTED : ACCESS_NO_TOKEN;
	}
	return ACCESS_NO_TOKEN;
}
