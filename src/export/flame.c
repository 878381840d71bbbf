#include "export/flame.h"

#include "base/utf8.h"
#include "base/vec.h"

#include <inttypes.h>
#include <string.h>

/* All in pixels. */
#define WIDTH  1200.0
#define MARGIN 10.0
#define ROW    18.0
#define HEAD   56.0 /* above the boxes */
#define LEAST  0.3  /* narrower ones are not drawn */
#define LETTER 7.0  /* of the font, about */

/* ---- text ---- */

/* What XML does not take becomes a '?': names come from files. */
static void put_text(FILE *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n && s[i]; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '&')
			fputs("&amp;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else
			fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
}

/* Names that are no UTF-8 would make the whole file unreadable. */
static void put_name(FILE *out, const char *s, size_t most)
{
	for (size_t columns = 0; *s && columns < most; columns++) {
		size_t n;

		if (utf8_decode(s, &n) == UTF8_BAD)
			fputc('?', out);
		else
			put_text(out, s, n);
		s += n;
	}
	if (*s)
		fputs("\xe2\x80\xa6", out); /* an ellipsis */
}

/* ---- boxes ---- */

/* One colour a name, warm and light, so that black text can be read on it. */
static void put_colour(FILE *out, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	fprintf(out, "hsl(%" PRIu32 ",%" PRIu32 "%%,%" PRIu32 "%%)", 8 + h % 46, 62 + (h >> 8) % 26,
		62 + (h >> 16) % 12);
}

struct drawing {
	const struct flame *flame;
	FILE *out;
	double scale; /* pixels of a weight */
	double bottom;
	VEC(double) taken; /* by depth: where the next box begins */
};

static void put_title(struct drawing *d, const struct flame_box *b)
{
	double total = d->flame->total;

	fputs("<title>", d->out);
	put_name(d->out, b->name, SIZE_MAX);
	fprintf(d->out, ": %.2f%%, %.0f ", total > 0 ? 100 * b->weight / total : 0, b->weight);
	put_name(d->out, d->flame->unit, SIZE_MAX);
	if (b->detail) {
		fputs(", ", d->out);
		put_name(d->out, b->detail, SIZE_MAX);
	}
	fputs("</title>", d->out);
}

static void put_box(struct drawing *d, const struct flame_box *b, double x)
{
	double width = b->weight * d->scale, y = d->bottom - ROW * (b->depth + 1);
	size_t letters = width > 12 ? (size_t)((width - 6) / LETTER) : 0;

	fputs("<g>", d->out);
	put_title(d, b);
	fprintf(d->out,
		"<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\" fill=\"", x, y,
		width > 0.6 ? width - 0.4 : width, ROW - 1);
	put_colour(d->out, b->name);
	fputs("\"/>", d->out);
	if (letters >= 3) {
		fprintf(d->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5.5);
		put_name(d->out, b->name, strlen(b->name) > letters ? letters - 1 : letters);
		fputs("</text>", d->out);
	}
	fputs("</g>\n", d->out);
}

/* Where a box begins: where its parent did, or where its last sibling ended. */
static double place(struct drawing *d, const struct flame_box *b)
{
	double x = d->taken.p[b->depth];

	d->taken.n = b->depth + 1;
	d->taken.p[b->depth] = x + b->weight * d->scale;
	*vec_add(&d->taken) = x; /* for its children */
	return x;
}

static void put_boxes(struct drawing *d)
{
	uint32_t skipped = UINT32_MAX; /* the depth of a box that is too narrow */

	*vec_add(&d->taken) = MARGIN;
	for (size_t i = 0; i < d->flame->n; i++) {
		const struct flame_box *b = &d->flame->boxes[i];

		if (b->depth > skipped || b->depth >= d->taken.n)
			continue;
		skipped = UINT32_MAX;
		if (b->weight * d->scale < LEAST)
			skipped = b->depth;
		else
			put_box(d, b, place(d, b));
	}
	vec_deinit(&d->taken);
}

/* ---- the picture ---- */

static uint32_t height_of(const struct flame *f, double scale)
{
	uint32_t deepest = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->boxes[i].weight * scale >= LEAST && f->boxes[i].depth + 1 > deepest)
			deepest = f->boxes[i].depth + 1;
	return deepest;
}

static void put_heading(const struct flame *f, double height, FILE *out)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n"
		"<style>text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1a1a1a;"
		"pointer-events:none}.t{font-size:16px;font-weight:bold}.s{fill:#666}"
		"rect{stroke:none}g:hover rect{stroke:#222;stroke-width:.8}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfcfa\"/>\n"
		"<text class=\"t\" x=\"%.0f\" y=\"24\">",
		WIDTH, height, WIDTH, height, MARGIN);
	put_name(out, f->title, 100);
	fprintf(out, "</text>\n<text class=\"s\" x=\"%.0f\" y=\"42\">", MARGIN);
	put_name(out, f->subtitle, 170);
	fputs("</text>\n", out);
}

void flame_write(const struct flame *f, FILE *out)
{
	struct flame whole = *f;
	struct drawing d = {.flame = &whole, .out = out};

	if (!(whole.total > 0))
		for (size_t i = 0; i < f->n; i++)
			whole.total += f->boxes[i].depth ? 0 : f->boxes[i].weight;
	d.scale = whole.total > 0 ? (WIDTH - 2 * MARGIN) / whole.total : 0;
	d.bottom = HEAD + ROW * height_of(f, d.scale);
	put_heading(f, d.bottom + MARGIN, out);
	put_boxes(&d);
	fputs("</svg>\n", out);
}
