/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdout becomes a stream of the command's own, so other code prints as usual. The pager starts only after
 * more than one screen of output. So a short result stays on the screen whatever the pager does at its end,
 * and progress is shown until then.
 */
#include "cmd/ui/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/ui/limits.h"
#include "cmd/ui/progress.h"

static struct {
	FILE *terminal; /* the original stdout; NULL: no pager_begin() */
	char *held;     /* until the pager starts */
	size_t size, room;
	int lines, screen;
	pid_t pid; /* of the pager; 0: not started */
	int pipe;
} pager = { .pipe = -1 };

/* --- the pager's process ---------------------------------------------------------- */

static const char *pager_command(void)
{
	const char *command = getenv("PAGER");

	return command && *command ? command
	                           : "if command -v less >/dev/null; then exec less; else exec cat; fi";
}

static _Noreturn void become_pager(int input)
{
	dup2(input, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	memory_limit_lift();
	execl("/bin/sh", "sh", "-c", pager_command(), (char *)NULL);
	_exit(127);
}

/* If it fails, the result is printed directly. */
static bool start_pager(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	progress_stop(); /* the pager owns the screen now */
	pager.pid = fork();
	if (pager.pid == 0)
		become_pager(ends[0]);
	close(ends[0]);
	if (pager.pid < 0) {
		close(ends[1]);
		return false;
	}
	pager.pipe = ends[1];
	/* The pager handles Ctrl-C; this process ends when the pager does. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	return true;
}

/* --- the stream ---------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);
		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			bytes += written;
			size -= (size_t)written;
		}
	}
	return true;
}

/* Writes to the pager or, without one, to the terminal. */
static bool pass_on(const char *bytes, size_t size)
{
	return write_all(pager.pipe >= 0 ? pager.pipe : fileno(pager.terminal), bytes, size);
}

static bool hold(const char *bytes, size_t size)
{
	size_t room = pager.room ? pager.room : 4096;
	char *held = pager.held;

	while (room < pager.size + size)
		room *= 2;
	if (room != pager.room && !(held = realloc(pager.held, room)))
		return false;
	pager.held = held;
	pager.room = room;
	memcpy(held + pager.size, bytes, size);
	pager.size += size;
	return true;
}

static bool release(void)
{
	bool is_written = pass_on(pager.held, pager.size);

	free(pager.held);
	pager.held = NULL;
	pager.size = pager.room = 0;
	return is_written;
}

static ssize_t write_cookie(void *cookie, const char *bytes, size_t size)
{
	(void)cookie;
	if (pager.lines >= pager.screen)
		return pass_on(bytes, size) ? (ssize_t)size : 0;
	for (size_t i = 0; i < size; i++)
		pager.lines += bytes[i] == '\n';
	if (!hold(bytes, size))
		return 0;
	if (pager.lines >= pager.screen) {
		start_pager();
		if (!release())
			return 0;
	}
	return (ssize_t)size;
}

void pager_begin(void)
{
	struct winsize size;
	FILE *stream;

	if (pager.terminal || !isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
	    !size.ws_row)
		return;
	stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_cookie });
	if (!stream)
		return;
	pager.screen = size.ws_row;
	pager.terminal = stdout;
	stdout = stream;
}

int pager_end(void)
{
	FILE *stream = stdout;
	int error = 0;

	if (!pager.terminal)
		return 0;
	if (fclose(stream) || (pager.held && !release()))
		error = errno ? errno : EIO;
	stdout = pager.terminal;
	pager.terminal = NULL;
	if (pager.pipe >= 0)
		close(pager.pipe);
	while (pager.pid > 0 && waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager.pid = 0;
	pager.pipe = -1;
	return error;
}
