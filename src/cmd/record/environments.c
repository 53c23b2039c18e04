/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/environments.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/ui/process_files.h"

/* The reader is held if it is in one file at two moments with this distance and sleeps uninterruptibly. If it
 * only lacks a processor, it is runnable. */
#define HELD_MS 1000

/* What the reader writes into memory that it shares with its parent, before it opens a file and after it has
 * read it. A message for each process of the machine would wake the parent as often. */
struct report {
	pid_t process; /* atomic */
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

static bool has_variable(int process, const char *wanted, size_t size)
{
	char path[40];
	bool found;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	found = fd >= 0 && has_bytes(fd, wanted, size);
	if (fd >= 0)
		close(fd);
	return found;
}

/* As getdents64() writes it. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	unsigned char type;
	char name[];
};

/* The kernel lists processes by their numbers. A reader that is held must keep neither the command's output
 * open nor the descriptors by which `dump` and `top` find the command. Before Linux 5.9 it does.
 *
 * Nothing is allocated, because malloc() would write to the pages of freed blocks, which are the parent's
 * until they are copied. */
static _Noreturn void read_environments(int end, struct report *report, const char *wanted, size_t size)
{
	const pid_t after = report->process;
	_Alignas(struct entry) char entries[8192];
	long got;
	int folder;

	dup2(end, STDIN_FILENO);
	syscall(SYS_close_range, STDIN_FILENO + 1, ~0u, 0);
	folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while ((got = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
		for (long at = 0; at < got; at += ((const struct entry *)(entries + at))->size) {
			const int process = atoi(((const struct entry *)(entries + at))->name);
			if (process <= after)
				continue;
			/* Relaxed: the parent reads the rest when the reader has ended. */
			__atomic_store_n(&report->process, process, __ATOMIC_RELAXED);
			report->is_found = has_variable(process, wanted, size);
			if (report->is_found)
				_exit(0);
		}
	_exit(0);
}

/* Follows the reader until it ends and so closes its pipe (false), or until a process holds it (true). */
static bool is_held(int from, pid_t reader, const struct report *report)
{
	struct pollfd polled = { .fd = from };
	pid_t seen = 0, process;

	while (poll(&polled, 1, HELD_MS) <= 0) {
		process = __atomic_load_n(&report->process, __ATOMIC_RELAXED);
		if (process == seen && process_state(reader, 0) == 'D')
			return true;
		seen = process;
	}
	return false;
}

/* Starts a reader that begins after the process in the report. True: the process that is in the report now
 * held it. */
static bool read_after(struct report *report, const char *wanted, size_t size)
{
	pid_t reader;
	int ends[2];
	bool held;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	reader = fork();
	if (reader == 0)
		read_environments(ends[1], report, wanted, size);
	close(ends[1]);
	held = reader > 0 && is_held(ends[0], reader, report);
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
	struct report *report =
		mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t found = 0;

	if (wanted && report != MAP_FAILED) {
		*wanted = '\0';
		while (read_after(report, wanted, strlen(line) + 2))
			;
		found = report->is_found ? report->process : 0;
	}
	if (report != MAP_FAILED)
		munmap(report, sizeof(*report));
	free(wanted);
	return found;
}
