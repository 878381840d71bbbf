#include "export/csv.h"

#include "base/buf.h"
#include "export/functions.h"
#include "export/stacks.h"

#include <inttypes.h>
#include <string.h>

/* Names come from files: what would end a line or a record early is quoted or replaced. */
static void put_text(FILE *out, const char *s)
{
	fputc('"', out);
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"')
			fputc('"', out);
		fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
	fputc('"', out);
}

static void put_heading(const struct stacks *s, FILE *out)
{
	const struct stack_measure *m;
	size_t n = stacks_measures(s, &m);

	fputs("process,pid,", out);
	for (size_t i = 0; i < n; i++) {
		put_text(out, m[i].name);
		fputc(',', out);
	}
	fputs("procedure,image,build_id,address,file,line,stack\r\n", out);
}

static void put_place(const struct stacks *s, const struct stack_frame *f, FILE *out)
{
	const struct selected_image *im = f->image;
	const struct inlined_line *lines, *at;
	char id[IMAGE_ID_TEXT];

	stacks_lines(s, &lines);
	at = f->nlines ? &lines[f->line] : NULL;
	put_text(out, f->name);
	fputc(',', out);
	put_text(out, im ? im->path : "");
	fprintf(out, ",%s,", im && im->identity.size ? image_id_text(&im->identity, id) : "");
	if (f->exact || f->address)
		fprintf(out, "0x%" PRIx64, f->address);
	fputc(',', out);
	if (at ? at->file : f->file)
		put_text(out, at ? at->file : f->file);
	fputc(',', out);
	if (at && at->line > 0)
		fprintf(out, "%d", at->line);
}

static void put_names(
	const struct functions *f, const function_list *list, struct buf *text, FILE *out)
{
	const struct function *all;

	functions_all(f, &all);
	text->n = 0;
	vec_each (number, list)
		buf_printf(text, "%s%s", number == list->p ? "" : ";", all[*number].name);
	put_text(out, buf_cstr(text));
}

void csv_write(const struct stacks *s, FILE *out)
{
	struct functions *f = functions_create(s);
	const struct stack_group *groups;
	const struct stack_node *nodes;
	const struct stack_frame *frames;
	const struct stack_measure *m;
	size_t n = stacks_groups(s, &groups), nmeasures = stacks_measures(s, &m);
	function_list list = {0};
	struct buf text = {0};

	stacks_nodes(s, &nodes);
	stacks_frames(s, &frames);
	put_heading(s, out);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = groups[i].first; k < groups[i].end; k++) {
			if (!(nodes[k].value[0] > 0))
				continue;
			put_text(out, groups[i].process);
			fprintf(out, groups[i].pid ? ",%d," : ",,", groups[i].pid);
			for (size_t v = 0; v < nmeasures; v++)
				fprintf(out, "%.0f,", nodes[k].value[v]);
			put_place(s, &frames[nodes[k].frame], out);
			fputc(',', out);
			functions_of_node(f, k, &list);
			put_names(f, &list, &text, out);
			fputs("\r\n", out);
		}
	vec_deinit(&list);
	buf_deinit(&text);
	functions_destroy(f);
}
