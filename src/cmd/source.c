#include "cmd/source.h"

#include "analyze/listing.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

void source_above_print(
	struct source_above *s, const struct listing_line *line, int indent, FILE *out)
{
	const char *slash;

	if (!line->file)
		return;
	if (s->file && s->line == line->line && !strcmp(s->file, line->file))
		return;
	free(s->file);
	s->file = xstrdup(line->file);
	s->line = line->line;
	slash = strrchr(line->file, '/');
	fprintf(out, "%*s%s", indent, "", term_dim());
	cmd_put(out, slash ? slash + 1 : line->file);
	fprintf(out, ":%d ", line->line);
	cmd_put(out, line->source);
	fprintf(out, "%s\n", term_reset());
}

void source_above_deinit(struct source_above *s)
{
	free(s->file);
}
