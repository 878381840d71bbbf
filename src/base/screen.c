#include "base/screen.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

static struct {
	bool open;
	struct termios before;
	struct sigaction old[4];
} screen;

static volatile sig_atomic_t resized, ended;

/* ---- the terminal ---- */

static const int watched[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT};

static void on_signal(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else
		ended = 1;
}

static void put(const char *s, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, s, n);

		if (done < 0 && errno != EINTR) {
			ended = 1;
			return;
		}
		s += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
}

/* A screen of its own, without a cursor, and with lines that do not wrap. */
static void put_on(void)
{
	static const char on[] = "\033[?1049h\033[?25l\033[?7l";

	put(on, sizeof on - 1);
}

static void put_off(void)
{
	static const char off[] = "\033[?7h\033[?25h\033[?1049l";

	put(off, sizeof off - 1);
}

static int set_keys(void)
{
	struct termios raw = screen.before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	return tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
}

int screen_open(struct err *e)
{
	struct sigaction act = {.sa_handler = on_signal};

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(e, -ENOTTY, "a terminal is needed for input and output");
	if (tcgetattr(STDIN_FILENO, &screen.before) || set_keys())
		return err_errno(e, -errno, "cannot read single keys from the terminal");
	resized = ended = 0;
	for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
		sigaction(watched[i], &act, &screen.old[i]);
	screen.open = true;
	put_on();
	return 0;
}

void screen_close(void)
{
	if (!screen.open)
		return;
	screen.open = false;
	put_off();
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen.before);
	for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
		sigaction(watched[i], &screen.old[i], NULL);
}

void screen_size(int *rows, int *columns)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*rows = size.ws_row ? size.ws_row : 24;
	*columns = size.ws_col ? size.ws_col : 80;
}

/* ---- keys ---- */

enum {
	CTRL_C = 3,
	CTRL_D = 4,
	BACKSPACE = 8,
	CTRL_Z = 26,
	SOON_MS = 30, /* the rest of a key's sequence comes at once */
};

static bool comes(int timeout_ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, timeout_ms) > 0;
}

/* The next byte of a sequence, 0 when there is none. */
static unsigned char next_byte(void)
{
	unsigned char c = 0;

	if (!comes(SOON_MS) || read(STDIN_FILENO, &c, 1) != 1)
		return 0;
	return c;
}

/* Behind escape: "[A", "OA" or "[5~". */
static int read_sequence(void)
{
	static const struct {
		char last;
		int number, key;
	} keys[] = {{'A', 0, SCREEN_UP}, {'B', 0, SCREEN_DOWN}, {'H', 0, SCREEN_HOME},
		{'F', 0, SCREEN_LAST}, {'~', 1, SCREEN_HOME}, {'~', 7, SCREEN_HOME},
		{'~', 4, SCREEN_LAST}, {'~', 8, SCREEN_LAST}, {'~', 5, SCREEN_PAGE_UP},
		{'~', 6, SCREEN_PAGE_DOWN}};
	unsigned char c = next_byte();
	int number = 0;

	if (!c)
		return SCREEN_ESCAPE;
	if (c != '[' && c != 'O')
		return SCREEN_UNKNOWN;
	while ((c = next_byte()) >= '0' && c <= '9' && number < 100)
		number = 10 * number + (c - '0');
	while (c == ';' || (c >= '0' && c <= '9'))
		c = next_byte(); /* with shift and the like */
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].last == c && (keys[i].number == number || c != '~'))
			return keys[i].key;
	return SCREEN_UNKNOWN;
}

/* One code point of which the first byte is read. */
static int read_text(unsigned char first)
{
	char text[5] = {(char)first};
	size_t n = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, used;

	for (size_t i = 1; i < n; i++)
		text[i] = (char)next_byte();
	return (int)utf8_decode(text, &used);
}

/* As the shell's jobs do it; what was drawn is gone afterwards. */
static void suspend(void)
{
	screen_close();
	raise(SIGTSTP);
	screen_open(NULL);
	resized = 1;
}

int screen_key(int timeout_ms)
{
	unsigned char c;

	if (ended)
		return SCREEN_END;
	if (!resized && !comes(timeout_ms) && !resized && !ended)
		return SCREEN_NOTHING;
	if (ended)
		return SCREEN_END;
	if (resized) {
		resized = 0;
		return SCREEN_RESIZED;
	}
	if (read(STDIN_FILENO, &c, 1) != 1 || c == CTRL_C || c == CTRL_D)
		return SCREEN_END;
	if (c == CTRL_Z) {
		suspend();
		return SCREEN_NOTHING;
	}
	if (c == SCREEN_ESCAPE)
		return read_sequence();
	if (c == '\n')
		return SCREEN_ENTER;
	return c == BACKSPACE ? SCREEN_ERASE : read_text(c);
}

/* ---- drawing ---- */

/* Bytes of a line that fit; colours (ESC [ ... m) take no columns. */
static size_t fitting(const char *s, int columns)
{
	const char *p = s;
	int width = 0;

	while (*p) {
		size_t n = 1;

		if (*p == '\033') {
			n = strcspn(p, "m");
			p += n + (p[n] == 'm');
			continue;
		}
		int w = wcwidth((wchar_t)utf8_decode(p, &n));

		width += w < 0 ? 1 : w;
		if (width > columns)
			break;
		p += n;
	}
	return (size_t)(p - s);
}

void screen_draw(const char *const *lines, size_t n, size_t marked)
{
	struct buf b = {0};
	int rows, columns;

	screen_size(&rows, &columns);
	buf_printf(&b, "\033[H");
	for (size_t i = 0; i < n && i < (size_t)rows; i++) {
		size_t bytes = fitting(lines[i], columns);

		buf_printf(&b, "%s%s%.*s\033[K\033[0m", i ? "\r\n" : "",
			i == marked ? "\033[7m" : "", (int)bytes, lines[i]);
	}
	buf_printf(&b, "\033[J");
	put((const char *)b.p, b.n);
	buf_deinit(&b);
}
