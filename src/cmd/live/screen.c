/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cmd/ui/terminal.h"

/* The alternate screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

#define ESCAPE_NS 50000000ull /* after this time an escape is a key, and not the beginning of a sequence */

static struct termios before;
static volatile sig_atomic_t is_open, has_changed;
static sigset_t in_poll; /* the mask while it waits: without SIGWINCH and SIGCONT */

/* --- signals: everything here may run inside a handler ------------------------------------------ */

static void put(const char *bytes, size_t size)
{
	while (size) {
		const ssize_t written = write(STDOUT_FILENO, bytes, size);

		if (written < 0 && errno != EINTR)
			return;
		bytes += written > 0 ? written : 0;
		size -= written > 0 ? (size_t)written : 0;
	}
}

static void take_over(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ^C and ^Z remain signals */
	raw.c_iflag &= ~(tcflag_t)(IXON);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	put(ENTER, sizeof(ENTER) - 1);
}

static void give_back(void)
{
	put(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void note_change(int number)
{
	(void)number;
	has_changed = 1;
}

/* Ends the process as without a handler. */
static void end(int number)
{
	const int saved = errno;

	if (is_open)
		give_back();
	is_open = 0;
	signal(number, SIG_DFL);
	raise(number);
	errno = saved;
}

static void stop(int number)
{
	const int saved = errno;

	(void)number;
	if (is_open)
		give_back();
	raise(SIGSTOP);
	errno = saved;
}

/* Also after a SIGSTOP, which a handler does not see. */
static void go_on(int number)
{
	const int saved = errno;

	(void)number;
	if (is_open)
		take_over();
	has_changed = 1;
	errno = saved;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler }, old;

	/* An ignored signal remains ignored. */
	sigfillset(&action.sa_mask);
	sigdelset(&action.sa_mask, SIGCONT);
	if (handler == end)
		action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

static void handle_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGABRT, SIGSEGV,
		                    SIGBUS, SIGFPE,  SIGILL, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU };
	sigset_t changes;

	sigemptyset(&changes);
	sigaddset(&changes, SIGWINCH);
	sigprocmask(SIG_BLOCK, &changes, &in_poll);
	sigdelset(&in_poll, SIGWINCH);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		handle(ends[i], end);
	handle(SIGTSTP, stop);
	handle(SIGCONT, go_on);
	handle(SIGWINCH, note_change);
}

/* --- drawing ---------------------------------------------------------------------------------------- */

bool screen_open(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
		return false;
	handle_signals();
	atexit(screen_close);
	is_open = 1;
	take_over();
	return true;
}

void screen_close(void)
{
	fflush(stdout);
	if (is_open)
		give_back();
	is_open = 0;
}

struct screen_size screen_size(void)
{
	struct screen_size size = { 24, 80 };
	struct winsize window;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 && window.ws_col > 0)
		size = (struct screen_size){ window.ws_row, window.ws_col };
	return size;
}

/* The last column stays free, because terminals differ in what they do after it. */
void screen_draw(const struct screen_line *lines, size_t count)
{
	const struct screen_size size = screen_size();
	const int width = size.columns > 1 ? size.columns - 1 : 1;

	fputs("\033[H", stdout);
	for (int row = 0; row < size.rows; row++) {
		const struct screen_line *line = (size_t)row < count ? &lines[row] : NULL;
		int at = 0;

		fputs(row ? "\r\n" : "", stdout);
		if (line && line->is_reversed)
			fputs("\033[7m", stdout);
		if (line)
			at = terminal_print_cut(line->text, strlen(line->text), width, false);
		if (line && line->is_reversed)
			terminal_print_padding(width - at);
		fputs("\033[0m\033[K", stdout);
	}
	fflush(stdout);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

/* Bytes that have come. */
static struct {
	char bytes[256];
	size_t at, count;
} input;

enum wait_result { WAIT_INPUT, WAIT_OVER, WAIT_CHANGED, WAIT_CLOSED };

static bool take_change(void)
{
	const bool is_taken = has_changed;

	has_changed = 0;
	return is_taken;
}

static enum wait_result wait_for_input(uint64_t until_ns)
{
	struct pollfd polled = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now;

	while (input.at == input.count) {
		struct timespec left;
		ssize_t size;

		if (take_change())
			return WAIT_CHANGED;
		now = clock_ns(CLOCK_MONOTONIC);
		left = timespec_of_ns(until_ns > now ? until_ns - now : 0);
		if (ppoll(&polled, 1, &left, &in_poll) <= 0) {
			if (!has_changed && clock_ns(CLOCK_MONOTONIC) >= until_ns)
				return WAIT_OVER;
			continue;
		}
		size = read(STDIN_FILENO, input.bytes, sizeof(input.bytes));
		if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
			return WAIT_CLOSED;
		input.at = 0;
		input.count = size > 0 ? (size_t)size : 0;
	}
	return WAIT_INPUT;
}

/* What follows an escape: of "[A" and "OA" the last, which is between '@' and '~'. */
static enum screen_key read_sequence(void)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ESCAPE_NS;
	char byte;

	if (wait_for_input(until_ns) != WAIT_INPUT)
		return KEY_ESCAPE;
	byte = input.bytes[input.at];
	if (byte != '[' && byte != 'O')
		return KEY_ESCAPE;
	input.at++;
	for (int i = 0; i < 32 && wait_for_input(until_ns) == WAIT_INPUT; i++) {
		byte = input.bytes[input.at++];
		if (byte >= '@' && byte <= '~')
			return byte == 'A' ? KEY_UP : byte == 'B' ? KEY_DOWN : KEY_NONE;
	}
	return KEY_NONE;
}

enum screen_key screen_key(uint64_t until_ns, char *character)
{
	for (;;) {
		enum screen_key key;

		switch (wait_for_input(until_ns)) {
		case WAIT_OVER: return KEY_NONE;
		case WAIT_CHANGED: return KEY_RESIZE;
		case WAIT_CLOSED: return KEY_END;
		default: break;
		}
		*character = input.bytes[input.at++];
		if (*character == '\r' || *character == '\n')
			return KEY_ENTER;
		if (*character == '\033' && (key = read_sequence()) != KEY_NONE)
			return key;
		if (*character >= ' ' && *character <= '~')
			return KEY_CHARACTER;
		if (*character == '\x04') /* ^D */
			return KEY_END;
	}
}
