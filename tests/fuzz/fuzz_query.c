/*
 * Requests from any bytes: "ENDPOINT NUL NAME NUL VALUE NUL ...". Whatever is accepted names only
 * the database that is served, and options end before what was sent as operands.
 */
#include "base/err.h"
#include "web/access.h"
#include "web/query.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 };

static const char *const files[] = {"served.db"};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_line(const query_line *line)
{
	bool operands = false, served = false;

	vec_each (word, line) {
		if (operands) {
			served |= !strncmp(*word, "served.db", 9);
			continue;
		}
		operands = !strcmp(*word, "--");
		require(strncmp(*word, "--output", 8) || !strcmp(*word, "--output=-.svg"));
		if (!strncmp(*word, "--input", 7)) {
			require(!strcmp(*word, "--input=served.db"));
			served = true;
		}
	}
	require(operands && served);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *words[2 * MOST + 1] = {text};
	struct query_parameter parameters[MOST];
	query_line line = {0};
	struct err e = {0};
	size_t n = 1;
	const struct access a = {.address = "127.0.0.1", .port = 80, .token = "0123456789abcdef"};

	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < size && n < 2 * MOST + 1; i++)
		if (!text[i])
			words[n++] = text + i + 1;
	for (size_t i = 0; 2 * i + 2 < n; i++)
		parameters[i] = (struct query_parameter){words[2 * i + 1], words[2 * i + 2]};
	if (!query_command(words[0], parameters, (n - 1) / 2, files, 1, &line, &e))
		check_line(&line);
	else
		require(*e.text);
	query_free(&line);
	access_check(&a, &(struct access_request){"localhost", NULL, words[0], words[n - 1]});
	free(text);
	return 0;
}
