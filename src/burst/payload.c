#include "burst/payload.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static const struct payload *const payloads[] = {
	&payload_references,
	&payload_calls,
	&payload_references_calls,
	&payload_paths,
	&payload_values,
};

int payload_find(const char *text, const struct payload **out, const char **more, struct err *e)
{
	size_t n = strcspn(text, "=");

	for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
		const struct payload *p = payloads[i];

		if (strlen(p->name) != n || memcmp(p->name, text, n))
			continue;
		*more = text[n] ? text + n + 1 : NULL;
		if (*more && !p->check)
			return err_set(e, -EINVAL, "%s takes nothing behind '='", p->name);
		*out = p;
		return *more ? p->check(*more, e) : 0;
	}
	return err_set(e, -EINVAL,
		"'%s' can not be recorded: refs, calls, refs+calls, paths or values can", text);
}
