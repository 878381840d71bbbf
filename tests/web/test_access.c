#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "web/access.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *const names[] = {"profiles.example"};
static const struct access ours = {.address = "127.0.0.1", .port = 8080, .token = TOKEN};
static const struct access open_to_all = {
	.address = "0.0.0.0", .port = 80, .token = TOKEN, .hosts = names, .nhosts = 1};

static enum access_verdict ask(const struct access *a, const char *host, const char *origin,
	const char *cookie, const char *authorization)
{
	return access_check(a, &(struct access_request){host, origin, cookie, authorization});
}

static void only_our_names_are_hosts(void **state)
{
	(void)state;
	assert_int_equal(ask(&ours, "127.0.0.1:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_GRANTED);
	assert_int_equal(ask(&ours, "localhost:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_GRANTED);
	assert_int_equal(ask(&ours, "[::1]:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_GRANTED);
	assert_int_equal(ask(&ours, "LocalHost:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_GRANTED);
	/* What a hostile name resolves to does not matter. */
	assert_int_equal(
		ask(&ours, "evil.example:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
	assert_int_equal(ask(&ours, "127.0.0.1", NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
	assert_int_equal(
		ask(&ours, "127.0.0.1:80801", NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
	assert_int_equal(ask(&ours, "127.0.0.1.evil:8080", NULL, NULL, "Bearer " TOKEN),
		ACCESS_FOREIGN_HOST);
	assert_int_equal(ask(&ours, "::1:8080", NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
	assert_int_equal(ask(&ours, "", NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
	assert_int_equal(ask(&ours, NULL, NULL, NULL, "Bearer " TOKEN), ACCESS_FOREIGN_HOST);
}

static void names_can_be_added(void **state)
{
	(void)state;
	assert_int_equal(
		ask(&open_to_all, "profiles.example", NULL, NULL, "Bearer " TOKEN), ACCESS_GRANTED);
	assert_int_equal(ask(&open_to_all, "profiles.example:80", NULL, NULL, "Bearer " TOKEN),
		ACCESS_GRANTED);
	assert_int_equal(ask(&open_to_all, "other.example", NULL, NULL, "Bearer " TOKEN),
		ACCESS_FOREIGN_HOST);
}

static void other_sites_may_not_ask(void **state)
{
	const char *host = "127.0.0.1:8080", *bearer = "Bearer " TOKEN;

	(void)state;
	assert_int_equal(ask(&ours, host, "http://127.0.0.1:8080", NULL, bearer), ACCESS_GRANTED);
	assert_int_equal(
		ask(&ours, host, "http://127.0.0.1:9090", NULL, bearer), ACCESS_FOREIGN_ORIGIN);
	assert_int_equal(
		ask(&ours, host, "https://127.0.0.1:8080", NULL, bearer), ACCESS_FOREIGN_ORIGIN);
	assert_int_equal(ask(&ours, host, "null", NULL, bearer), ACCESS_FOREIGN_ORIGIN);
	assert_int_equal(
		ask(&ours, host, "http://evil.example", NULL, bearer), ACCESS_FOREIGN_ORIGIN);
}

static void the_token_must_be_whole(void **state)
{
	const char *host = "127.0.0.1:8080";

	(void)state;
	assert_int_equal(ask(&ours, host, NULL, NULL, NULL), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, NULL, "Bearer "), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, NULL, "Bearer 0123"), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, NULL, "Bearer " TOKEN "0"), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, NULL, "Basic " TOKEN), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, "culprit-8080=" TOKEN, NULL), ACCESS_GRANTED);
	assert_int_equal(
		ask(&ours, host, NULL, "a=b; culprit-8080=" TOKEN "; c=d", NULL), ACCESS_GRANTED);
	assert_int_equal(
		ask(&ours, host, NULL, "culprit-8080=; culprit-80=" TOKEN, NULL), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, "xculprit-8080=" TOKEN, NULL), ACCESS_NO_TOKEN);
	assert_int_equal(ask(&ours, host, NULL, ";;;", NULL), ACCESS_NO_TOKEN);
}

static void tokens_differ(void **state)
{
	char a[WEB_TOKEN_SIZE], b[WEB_TOKEN_SIZE];

	(void)state;
	assert_int_equal(access_new_token(a), 0);
	assert_int_equal(access_new_token(b), 0);
	assert_int_equal(strlen(a), WEB_TOKEN_SIZE - 1);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_our_names_are_hosts),
		cmocka_unit_test(names_can_be_added),
		cmocka_unit_test(other_sites_may_not_ask),
		cmocka_unit_test(the_token_must_be_whole),
		cmocka_unit_test(tokens_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
