#include "export/folded.h"

#include "analyze/context_tree.h"
#include "base/vec.h"

/* A name may have what separates names, or ends a line. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : (unsigned char)*name < 0x20 ? '?' : *name, out);
}

void folded_write(const struct context_tree *t, FILE *out)
{
	const struct context_procedure *procedures;
	const struct context_node *nodes;
	size_t n = context_tree_nodes(t, &nodes);
	VEC(const char *) stack = {0};

	context_tree_procedures(t, &procedures);
	for (size_t i = 0; i < n; i++) {
		stack.n = nodes[i].depth;
		*vec_add(&stack) = procedures[nodes[i].procedure].name;
		if (nodes[i].own < 1)
			continue;
		vec_each (name, &stack) {
			if (name != stack.p)
				fputc(';', out);
			put_name(out, *name);
		}
		fprintf(out, " %.0f\n", nodes[i].own);
	}
	vec_deinit(&stack);
}
