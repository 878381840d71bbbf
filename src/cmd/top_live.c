#include "cmd/top_live.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/screen.h"
#include "base/term.h"
#include "cmd/live_source.h"
#include "cmd/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	REFRESH_MS = 2000,
	ROWS = 1000,       /* more than anybody scrolls through */
	EXPLAINED_S = 600, /* of a procedure: reasons want more samples than a glance */
};

/* Seconds back from now; 0: all. */
static const int windows[] = {5, 10, 30, 60, 300, 1800, 0};
enum { WINDOW_USUAL = 2, WINDOW_ALL = 6 };

struct live {
	struct top *top;
	struct live_source *source;
	size_t window;
	bool fixed; /* the reader has said which time */
	bool paused, typing, help;
	char match[64];
	char message[sizeof((struct err *)0)->text];
	char *image, *comm; /* what was opened, as a filter */
	char *sort;         /* the event chosen */
	top_rows rows;
	size_t hidden, at, first; /* the row marked, and the first on the screen */
	char *marked;             /* its name, to find it again */
	char *text;               /* of the lines */
	VEC(char *) lines;        /* the heading, then one for each row */
	size_t heading;
};

/* ---- what is shown ---- */

static void forget_rows(struct live *l)
{
	vec_deinit(&l->rows);
	l->rows = (top_rows){0};
	tally_destroy(l->top->tally);
	l->top->tally = NULL;
	report_close(&l->top->report);
}

static int read_rows(struct live *l, struct err *e)
{
	struct top *t = l->top;
	int64_t now = (int64_t)(io_clock_ns(CLOCK_REALTIME) / 1000), back = windows[l->window];
	int rc;

	forget_rows(l);
	if (!l->fixed) {
		t->report.filter.t0 = back ? now - back * 1000000 : 0;
		t->report.filter.t1 = 0;
	}
	t->match = *l->match ? l->match : NULL;
	rc = report_select(&t->report, t->sort, e);
	if (!rc)
		rc = tally_create(t->report.sel, t->view->by, t->report.procedure, &t->tally, e);
	if (!rc)
		l->rows = top_shown(t, &l->hidden);
	return rc;
}

static void split_lines(struct live *l)
{
	l->lines.n = 0;
	for (char *p = l->text; p && *p; p += strcspn(p, "\n") + 1) {
		char *end = strchr(p, '\n');

		*vec_add(&l->lines) = p;
		if (!end)
			break;
		*end = '\0';
	}
}

/* The same row as before is marked, if it is still there. */
static void mark_again(struct live *l)
{
	for (size_t i = 0; l->marked && i < l->rows.n; i++)
		if (!strcmp(l->rows.p[i]->name, l->marked)) {
			l->at = i;
			return;
		}
	l->at = l->at < l->rows.n ? l->at : l->rows.n ? l->rows.n - 1 : 0;
}

static void render(struct live *l)
{
	const struct top *t = l->top;
	size_t size;
	FILE *out;

	free(l->text);
	l->text = NULL;
	out = open_memstream(&l->text, &size);
	if (t->tally && t->report.nevents) {
		top_print_heading(t, out);
		top_print_rows(t, &l->rows, out);
	} else {
		fprintf(out, "no samples yet\n");
	}
	fclose(out);
	split_lines(l);
	l->heading = l->lines.n - (t->tally && t->report.nevents ? l->rows.n : 0);
	mark_again(l);
}

static void refresh(struct live *l)
{
	struct err e = {0};

	if (!l->paused && (live_source_turn(l->source, &e) || read_rows(l, &e)))
		snprintf(l->message, sizeof l->message, "%s", e.text);
	render(l);
}

/* ---- drawing ---- */

static const char *const keys[] = {
	"up, down, page up, page down, home, end   move",
	"enter, w      why is this procedure slow; of an image or a name of processes: its "
	"procedures",
	"l             source and assembly of this procedure",
	"b, B          next, previous view: procedures, images, processes, ...",
	"e             sort by the next event",
	"/             only rows with some text in them",
	"+, -          more, less of the time that is past",
	"space         stop and go on",
	"escape        back",
	"q             end",
};

/* What is shown, of when, and what from. */
static void put_title(const struct live *l, struct buf *b)
{
	int back = windows[l->window];

	buf_printf(b, "%sculprit%s  by %s, ", term_bold(), term_reset(), l->top->view->name);
	if (l->fixed)
		buf_printf(b, "of the time given");
	else if (!back)
		buf_printf(b, "of all time");
	else if (back < 60)
		buf_printf(b, "of the last %d s", back);
	else
		buf_printf(b, "of the last %d min", back / 60);
	if (l->image || l->comm)
		buf_printf(
			b, ", %s %s", l->image ? "in" : "processes", l->image ? l->image : l->comm);
	if (*l->match && !l->typing)
		buf_printf(b, ", rows with \"%s\"", l->match);
	buf_printf(b, "  (%s)%s", live_source_words(l->source), l->paused ? "  stopped" : "");
}

static void put_status(const struct live *l, struct buf *b)
{
	if (l->typing)
		buf_printf(b, "rows with: %s_", l->match);
	else if (*l->message)
		buf_printf(b, "%s%s%s", term_red(), l->message, term_reset());
	else
		buf_printf(b,
			"%sq end  enter why  l list  b by  / search  +- time  space stop  ? keys%s",
			term_dim(), term_reset());
}

static void scroll_to(struct live *l, size_t room)
{
	if (l->at < l->first)
		l->first = l->at;
	if (room && l->at >= l->first + room)
		l->first = l->at + 1 - room;
	if (l->first + room > l->rows.n)
		l->first = l->rows.n > room ? l->rows.n - room : 0;
}

/* Rows of the screen that are left for rows. */
static size_t room_for_rows(const struct live *l)
{
	enum { TITLE = 1, STATUS = 1 };
	int rows, columns;

	screen_size(&rows, &columns);
	return rows > TITLE + STATUS + (int)l->heading ? (size_t)rows - TITLE - STATUS - l->heading
						       : 0;
}

static void draw(struct live *l)
{
	VEC(const char *) all = {0};
	struct buf head = {0}, status = {0};
	size_t room = room_for_rows(l), marked = SIZE_MAX, n;

	scroll_to(l, room);
	put_title(l, &head);
	put_status(l, &status);
	*vec_add(&all) = buf_cstr(&head);
	n = l->help ? sizeof keys / sizeof *keys : l->heading;
	for (size_t i = 0; i < n; i++)
		*vec_add(&all) = l->help ? keys[i] : l->lines.p[i];
	for (size_t i = 0; !l->help && i < room; i++) {
		size_t row = l->first + i;

		if (row < l->rows.n && row == l->at)
			marked = all.n;
		*vec_add(&all) = row < l->rows.n ? l->lines.p[l->heading + row] : "";
	}
	*vec_add(&all) = buf_cstr(&status);
	screen_draw(all.p, all.n, marked);
	vec_deinit(&all);
	buf_deinit(&head);
	buf_deinit(&status);
}

/* ---- opening ---- */

/* Another verb, with the terminal for itself until the reader is done with it. */
static void run_verb(struct live *l, const char *verb, const char *what)
{
	const char *database = live_source_database(l->source);
	int back = windows[l->window], status = 0;
	char time[32] = "0,";
	pid_t child;

	if (back)
		snprintf(time, sizeof time, "-%ds,", back > EXPLAINED_S ? back : EXPLAINED_S);
	screen_close();
	child = fork();
	if (child == 0) {
		setenv("LESS", "R", 0); /* also what is short stays until it is read */
		execl("/proc/self/exe", "culprit", verb, "-i", database, "--time", time, what,
			(char *)NULL);
		_exit(EXIT_MACHINE);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	if (status || !term_has_pager()) {
		printf("\nany key: back to the list");
		fflush(stdout);
	}
	screen_open(NULL);
	if (status || !term_has_pager())
		screen_key(-1);
}

static void explain(struct live *l, const char *verb)
{
	const struct tally_row *r = l->rows.n ? l->rows.p[l->at] : NULL;
	_cleanup_free_ char *what = NULL;

	if (!r || l->top->view->by != TALLY_PROCEDURE || !r->known) {
		snprintf(l->message, sizeof l->message, "no procedure is marked");
		return;
	}
	what = xasprintf("%s!0x%" PRIx64, selected_image_name(r->image), r->start);
	run_verb(l, verb, what);
}

static void set_view(struct live *l, size_t view)
{
	size_t n;
	const struct top_by *views = top_views(&n);

	l->top->view = &views[view % n];
	l->at = l->first = 0;
	free(l->marked);
	l->marked = NULL;
}

static void turn_view(struct live *l, bool on)
{
	size_t n;
	const struct top_by *views = top_views(&n);

	set_view(l, (size_t)(l->top->view - views) + (on ? 1 : n - 1));
}

/* A procedure is explained; what has procedures shows them. */
static void open_row(struct live *l)
{
	const struct tally_row *r = l->rows.n ? l->rows.p[l->at] : NULL;
	struct store_filter *f = &l->top->report.filter;

	if (r && l->top->view->by == TALLY_IMAGE && !f->image) {
		f->image = l->image = xstrdup(r->name);
		set_view(l, 0);
	} else if (r && l->top->view->by == TALLY_COMM && !f->comm) {
		f->comm = l->comm = xstrdup(r->name);
		set_view(l, 0);
	} else {
		explain(l, "why");
	}
}

static void go_back(struct live *l)
{
	struct store_filter *f = &l->top->report.filter;

	if (*l->match) {
		*l->match = '\0';
		return;
	}
	if (l->image)
		f->image = NULL;
	if (l->comm)
		f->comm = NULL;
	free(l->image);
	free(l->comm);
	l->image = l->comm = NULL;
}

static void next_event(struct live *l)
{
	struct top *t = l->top;

	/* The last of those that are selected comes first then: all have their turn. */
	if (t->report.nevents < 2)
		return;
	free(l->sort);
	t->sort = l->sort = xstrdup(t->report.event[t->report.nevents - 1].name);
}

/* ---- keys ---- */

static void type(struct live *l, int key)
{
	size_t n = strlen(l->match);

	if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
		l->typing = false;
		if (key == SCREEN_ESCAPE)
			*l->match = '\0';
	} else if (key == SCREEN_ERASE && n) {
		l->match[n - 1] = '\0';
	} else if (key >= ' ' && key < SCREEN_ERASE && n + 1 < sizeof l->match) {
		l->match[n] = (char)key;
		l->match[n + 1] = '\0';
	}
}

static void move(struct live *l, int key)
{
	size_t page = room_for_rows(l), last = l->rows.n ? l->rows.n - 1 : 0;

	switch (key) {
	case SCREEN_UP:
		l->at -= l->at > 0;
		break;
	case SCREEN_DOWN:
		l->at++;
		break;
	case SCREEN_PAGE_UP:
		l->at -= l->at < page ? l->at : page;
		break;
	case SCREEN_PAGE_DOWN:
		l->at += page;
		break;
	case SCREEN_HOME:
		l->at = 0;
		break;
	case SCREEN_LAST:
		l->at = last;
		break;
	}
	l->at = l->at < last ? l->at : last;
	free(l->marked);
	l->marked = l->rows.n ? xstrdup(l->rows.p[l->at]->name) : NULL;
}

/* True when what is shown has changed. */
static bool act(struct live *l, int key)
{
	switch (key) {
	case SCREEN_ENTER:
		open_row(l);
		return true;
	case SCREEN_ESCAPE:
		go_back(l);
		return true;
	case 'w':
		explain(l, "why");
		return false;
	case 'l':
		explain(l, "list");
		return false;
	case 'b':
	case 'B':
		turn_view(l, key == 'b');
		return true;
	case 'e':
		next_event(l);
		return true;
	case '/':
		l->typing = true;
		return false;
	case '+':
		l->window += l->window + 1 < sizeof windows / sizeof *windows;
		return true;
	case '-':
		l->window -= l->window > 0;
		return true;
	case ' ':
		l->paused = !l->paused;
		return true;
	case 'k':
	case 'j':
		move(l, key == 'k' ? SCREEN_UP : SCREEN_DOWN);
		return false;
	default:
		move(l, key);
		return false;
	}
}

/* Keys that came while it is stopped change what is shown, too: of the same samples. */
static void show_anew(struct live *l)
{
	struct err e = {0};

	if (read_rows(l, &e))
		snprintf(l->message, sizeof l->message, "%s", e.text);
	render(l);
}

static bool take_key(struct live *l, int key)
{
	bool typing = l->typing;

	*l->message = '\0';
	if (key == SCREEN_END || (key == 'q' && !typing && !l->help))
		return false;
	if (key == SCREEN_RESIZED) {
		term_resized();
		render(l);
	} else if (l->help) {
		l->help = false;
	} else if (key == '?' && !typing) {
		l->help = true;
	} else if (typing) {
		type(l, key);
		show_anew(l);
	} else if (act(l, key)) {
		show_anew(l);
	}
	return true;
}

static void run(struct live *l)
{
	uint64_t next = 0;
	bool on = true;

	while (on) {
		uint64_t now = io_clock_ns(CLOCK_MONOTONIC) / 1000000;
		int key;

		if (now >= next) {
			refresh(l);
			next = io_clock_ns(CLOCK_MONOTONIC) / 1000000 + REFRESH_MS;
			now = next - REFRESH_MS;
		}
		draw(l);
		key = screen_key((int)(next - now));
		if (key != SCREEN_NOTHING)
			on = take_key(l, key);
	}
}

int top_live(struct top *t, struct err *e)
{
	struct live l = {.top = t, .fixed = t->report.filter.t0 || t->report.filter.t1};
	int rc;

	if (!term_is_tty() || !isatty(STDIN_FILENO))
		return err_set(e, -EINVAL, "--live wants a terminal; without one, leave it out");
	cmd_progress("starting");
	rc = live_source_open(t->report.input, &l.source, e);
	cmd_progress_end();
	if (!rc) {
		t->report.input = live_source_database(l.source);
		l.window = live_source_grows(l.source) ? WINDOW_USUAL : WINDOW_ALL;
		t->report.rows = t->report.rows ? t->report.rows : ROWS;
		rc = screen_open(e);
	}
	if (!rc)
		run(&l);
	screen_close();
	forget_rows(&l);
	live_source_close(l.source);
	vec_deinit(&l.lines);
	free(l.text);
	free(l.marked);
	free(l.sort);
	free(l.image);
	free(l.comm);
	return rc;
}
