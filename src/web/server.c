#include "web/web.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "web/access.h"
#include "web/answers.h"
#include "web/assets.h"
#include "web/query.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MOST = 128, IDLE_SECONDS = 60, LINE_MOST = 32 << 10 };

struct web {
	const struct web_options *options;
	struct access access;
	struct answers *answers;
	struct MHD_Daemon *daemon;
};

/* ---- responses ---- */

/*
 * Nothing from elsewhere, no code but our files, in nobody's frame: names in a profile are other
 * people's text.
 */
static const struct header {
	const char *name, *value;
} headers[] = {
	{"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

static enum MHD_Result send_response(
	struct MHD_Connection *c, unsigned status, const char *type, struct MHD_Response *r)
{
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", type);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(r, headers[i].name, headers[i].value);
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result send_text(
	struct MHD_Connection *c, unsigned status, const char *type, const char *text, size_t n)
{
	return send_response(c, status, type,
		MHD_create_response_from_buffer(n, (void *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *words)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct json j;

	if (!out)
		return MHD_NO;
	json_init(&j, out);
	json_open(&j, '{');
	json_kstr(&j, "error", words);
	json_close(&j);
	fclose(out);
	return send_text(c, status, "application/json", text, n);
}

/* ---- reports ---- */

struct held {
	struct answers *answers;
	const struct answer *answer;
};

static void release(void *arg)
{
	struct held *h = arg;

	answers_put(h->answers, h->answer);
	free(h);
}

/* "culprit: WORDS\n" as one line. */
static const char *last_words(struct buf *words, int code)
{
	static const char name[] = "culprit: ";
	char *text, *line;

	if (code == -ETIMEDOUT)
		return "this takes too long; select less (a time, an image, a procedure)";
	if (code == -EFBIG)
		return "the answer is too large; select less (a time, an image, a procedure)";
	if (code == -ECANCELED)
		return "the report ended by a signal; is the database damaged? 'culprit db check' "
		       "tells";
	if (code < 0)
		return strerror(-code);
	text = (char *)buf_cstr(words);
	text[strcspn(text, "\n")] = '\0';
	line = strstr(text, name);
	return line == text ? line + sizeof name - 1 : text;
}

static enum MHD_Result send_answer(
	struct web *w, struct MHD_Connection *c, const char *type, const struct answer *a)
{
	struct held *h;
	struct buf words = {0};
	enum MHD_Result rc;

	/* "No" is an answer too (diff). */
	if (a->code >= 0 && a->code <= EXIT_NO) {
		h = xmalloc(sizeof *h);
		*h = (struct held){w->answers, a};
		return send_response(c, MHD_HTTP_OK, type,
			MHD_create_response_from_buffer_with_free_callback_cls(a->output.n,
				a->output.p ? (void *)a->output.p : (void *)"", release, h));
	}
	buf_put(&words, a->words.p, a->words.n);
	rc = refuse(c, a->code == EXIT_USAGE ? MHD_HTTP_NOT_FOUND : MHD_HTTP_INTERNAL_SERVER_ERROR,
		last_words(&words, a->code));
	buf_deinit(&words);
	answers_put(w->answers, a);
	return rc;
}

typedef VEC(struct query_parameter) parameter_list;

static enum MHD_Result take_parameter(
	void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	parameter_list *list = arg;

	(void)kind;
	*vec_add(list) = (struct query_parameter){name, value};
	return MHD_YES;
}

static enum MHD_Result send_report(struct web *w, struct MHD_Connection *c, const char *endpoint)
{
	const struct web_options *o = w->options;
	parameter_list list = {0};
	query_line line = {0};
	struct err e = {0};
	enum MHD_Result rc;
	int failed;

	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, take_parameter, &list);
	failed = query_command(endpoint, list.p, list.n, o->databases, o->ndatabases, &line, &e);
	rc = failed ? refuse(c, failed == -ENOENT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST,
			      e.text)
		    : send_answer(
			      w, c, query_content_type(endpoint), answers_get(w->answers, &line));
	query_free(&line);
	vec_deinit(&list);
	return rc;
}

static enum MHD_Result send_databases(struct web *w, struct MHD_Connection *c)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct json j;

	if (!out)
		return MHD_NO;
	json_init(&j, out);
	json_open(&j, '{');
	json_kstr(&j, "version", CULPRIT_VERSION);
	json_key(&j, "databases");
	json_open(&j, '[');
	for (size_t i = 0; i < w->options->ndatabases; i++)
		json_str(&j, w->options->databases[i]);
	json_close(&j);
	json_close(&j);
	fclose(out);
	return send_text(c, MHD_HTTP_OK, "application/json", text, n);
}

/* ---- access ---- */

static enum MHD_Result refuse_access(struct MHD_Connection *c, enum access_verdict verdict)
{
	switch (verdict) {
	case ACCESS_FOREIGN_HOST:
		return refuse(c, MHD_HTTP_MISDIRECTED_REQUEST,
			"this Host is not served; open the address that 'culprit serve' printed");
	case ACCESS_FOREIGN_ORIGIN:
		return refuse(c, MHD_HTTP_FORBIDDEN, "requests of other sites are not answered");
	default:
		return refuse(c, MHD_HTTP_UNAUTHORIZED,
			"no token: open the address that 'culprit serve' printed, all of it");
	}
}

static enum MHD_Result put_unless_token(
	void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct buf *to = arg;

	(void)kind;
	if (!strcmp(name, "token"))
		return MHD_YES;
	buf_printf(to, to->n > 1 ? "&" : "?");
	for (int part = 0; part < 2; part++) {
		if (part)
			buf_printf(to, "=");
		for (const char *s = part ? value : name; s && *s; s++)
			if (strchr("-_.~", *s) || (*s >= '0' && *s <= '9') ||
				((*s | 32) >= 'a' && (*s | 32) <= 'z'))
				buf_printf(to, "%c", *s);
			else
				buf_printf(to, "%%%02X", (unsigned char)*s);
	}
	return MHD_YES;
}

/* The printed address: from now on a cookie has the token, which leaves the address. */
static enum MHD_Result let_in(struct web *w, struct MHD_Connection *c)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
	struct buf to = {0};
	char name[32], *cookie;
	enum MHD_Result rc;

	buf_printf(&to, "/");
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, put_unless_token, &to);
	access_cookie_name(&w->access, name);
	cookie = xasprintf("%s=%s; Path=/; HttpOnly; SameSite=Strict", name, w->access.token);
	MHD_add_response_header(r, "Set-Cookie", cookie);
	MHD_add_response_header(r, "Location", buf_cstr(&to));
	rc = send_response(c, MHD_HTTP_SEE_OTHER, "text/plain", r);
	free(cookie);
	buf_deinit(&to);
	return rc;
}

static const char *header_of(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	static int begun;
	struct web *w = arg;
	struct access_request asked = {header_of(c, "Host"), header_of(c, "Origin"),
		header_of(c, "Cookie"), header_of(c, "Authorization")};
	enum access_verdict verdict = access_check(&w->access, &asked);
	const char *token = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
	const struct asset *asset;

	(void)version, (void)data;
	/* It is called first when the headers are there; an answer then would close the connection.
	 */
	if (!*state) {
		*state = &begun;
		return MHD_YES;
	}
	if (*size) {
		*size = 0; /* what is sent along is not read */
		return MHD_YES;
	}
	if (verdict == ACCESS_NO_TOKEN && token && !strcmp(url, "/") &&
		access_is_token(&w->access, token, strlen(token)))
		return let_in(w, c);
	if (verdict != ACCESS_GRANTED)
		return refuse_access(c, verdict);
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "this server can only be read");
	if (token)
		return let_in(w, c);
	if (!strcmp(url, "/api/databases"))
		return send_databases(w, c);
	if (!strncmp(url, "/api/", 5))
		return send_report(w, c, url + 5);
	asset = asset_find(url);
	if (!asset)
		return refuse(c, MHD_HTTP_NOT_FOUND, "there is no such page");
	return send_response(c, MHD_HTTP_OK, asset->type,
		MHD_create_response_from_buffer(
			asset->size, (void *)asset->data, MHD_RESPMEM_PERSISTENT));
}

/* ---- beginning and end ---- */

static int listen_at(const char *address, uint16_t port, int *out, struct err *e)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool six = strchr(address, ':');
	int one = 1, fd;

	if (inet_pton(six ? AF_INET6 : AF_INET, address,
		    six ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return err_set(e, -EINVAL, "%s is no address: give one in numbers", address);
	fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, six ? (void *)&v6 : (void *)&v4, six ? sizeof v6 : sizeof v4) ||
		listen(fd, SOMAXCONN)) {
		int rc = -errno;

		close(fd);
		return err_errno(
			e, rc, "cannot listen on %s port %u; --port names another", address, port);
	}
	*out = fd;
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof at;

	getsockname(fd, (struct sockaddr *)&at, &size);
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					      : ((struct sockaddr_in *)&at)->sin_port);
}

int web_start(const struct web_options *o, struct web **out, struct err *e)
{
	struct web *w;
	int fd = -1, rc = listen_at(o->address, o->port, &fd, e);

	if (rc)
		return rc;
	w = xcalloc(1, sizeof *w);
	w->options = o;
	w->access = (struct access){o->address, port_of(fd), o->token, o->hosts, o->nhosts};
	w->answers = answers_create(o->program, o->databases, o->ndatabases);
	w->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
		NULL, NULL, answer, w, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LINE_MOST, MHD_OPTION_END);
	if (!w->daemon) {
		close(fd);
		web_stop(w);
		return err_set(e, -EAGAIN, "cannot start the server's threads");
	}
	*out = w;
	return 0;
}

uint16_t web_port(const struct web *w)
{
	return w->access.port;
}

void web_stop(struct web *w)
{
	if (!w)
		return;
	if (w->daemon)
		MHD_stop_daemon(w->daemon);
	answers_destroy(w->answers);
	free(w);
}
