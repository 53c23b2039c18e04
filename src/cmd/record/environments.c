/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/environments.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/ui/process_files.h"

/* The reader is held if it has been in one file for this long and sleeps uninterruptibly. If it only lacks
 * a processor, it is runnable. */
#define HELD_MS 1000

/* What the reader reports before it opens a file, and once more if that file has the line. */
struct report {
	pid_t process;
	bool is_found;
};

/* Whether the file contains `wanted`. It may belong to a stranger's process, so nothing of it is kept. */
static bool has_bytes(int fd, const char *wanted, size_t size)
{
	char bytes[16384] = { 0 }; /* the first 0 is before the first text */
	size_t kept = 1, all;
	ssize_t got;

	while ((got = read(fd, bytes + kept, sizeof(bytes) - kept)) > 0) {
		all = kept + (size_t)got;
		if (memmem(bytes, all, wanted, size))
			return true;
		kept = all < size ? all : size - 1;
		memmove(bytes, bytes + all - kept, kept);
	}
	return false;
}

static bool has_variable(pid_t process, const char *wanted, size_t size)
{
	FILE *file = process_file(process, 0, "environ");
	bool found = file && has_bytes(fileno(file), wanted, size);

	if (file)
		fclose(file);
	return found;
}

/* The kernel lists processes by their numbers. A reader that is held must keep neither the command's output
 * open nor the descriptors by which `dump` and `top` find the command. Before Linux 5.9 it does. */
static _Noreturn void read_environments(int to, pid_t after, const char *wanted, size_t size)
{
	struct report report = { .is_found = false };
	DIR *processes;

	dup2(to, STDIN_FILENO);
	syscall(SYS_close_range, STDIN_FILENO + 1, ~0u, 0);
	processes = process_folder(0, NULL);
	while (!report.is_found && (report.process = process_next(processes)) >= 0) {
		if (report.process <= after)
			continue;
		if (write(STDIN_FILENO, &report, sizeof(report)) < 0)
			break;
		report.is_found = has_variable(report.process, wanted, size);
	}
	if (report.is_found && write(STDIN_FILENO, &report, sizeof(report)) < 0)
		_exit(1);
	_exit(0);
}

/* Follows the reader until it ends (false), or until the process of its last report holds it (true). */
static bool is_held(int from, pid_t reader, struct report *last)
{
	struct pollfd polled = { .fd = from, .events = POLLIN };

	for (;;) {
		const int ready = poll(&polled, 1, HELD_MS);

		if (ready > 0 && read(from, last, sizeof(*last)) != (ssize_t)sizeof(*last))
			return false;
		if (ready == 0 && process_state(reader, 0) == 'D')
			return true;
	}
}

/* Starts a reader that begins after the process in `last`, and stores its last report in `last`. True: the
 * reader was held. */
static bool read_after(struct report *last, const char *wanted, size_t size)
{
	pid_t reader;
	int ends[2];
	bool held;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	reader = fork();
	if (reader == 0)
		read_environments(ends[1], last->process, wanted, size);
	close(ends[1]);
	held = reader > 0 && is_held(ends[0], reader, last);
	close(ends[0]);
	if (held)
		kill(reader, SIGKILL);
	while (reader > 0 && waitpid(reader, NULL, 0) < 0 && errno == EINTR)
		;
	return held;
}

pid_t environments_find(const char *line)
{
	/* Includes the 0 that ends the text, and, in place of the first byte, the 0 that ends the text
	 * before it. */
	char *wanted = text_format("-%s", line);
	struct report last = { .process = 0 };

	if (!wanted)
		return 0;
	*wanted = '\0';
	while (read_after(&last, wanted, strlen(line) + 2))
		;
	free(wanted);
	return last.is_found ? last.process : 0;
}
