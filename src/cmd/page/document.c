/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/page/document.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/file/trace_file.h"
#include "cmd/ui/complain.h"

#define SECONDS_MAX 120
#define SIZE_MAX_BYTES ((rlim_t)64 << 20)
#define AGE_TIMES 5 /* as long as making it took */

static void add_state(const char *path, uint64_t numbers[3])
{
	struct stat status;

	if (!path || stat(path, &status) != 0)
		return;
	numbers[0] = (uint64_t)status.st_ino;
	numbers[1] = (uint64_t)status.st_size;
	numbers[2] = ns_of_timespec(status.st_mtim);
}

static struct file_state state_of(const char *path)
{
	struct file_state state = { { 0 } };
	char *log = trace_file_log(path);

	add_state(path, state.numbers);
	add_state(log, state.numbers + 3);
	free(log);
	return state;
}

bool document_is_fresh(const struct document *document)
{
	const struct file_state now = state_of(document->path);
	const uint64_t age = clock_ns(CLOCK_MONOTONIC) - document->ended_ns;
	uint64_t least = AGE_TIMES * (document->ended_ns - document->began_ns);

	if (!document->number)
		return false;
	if (least < document->least_age_ns)
		least = document->least_age_ns;
	return age < least ||
	       (!document->has_failed && memcmp(&now, &document->state, sizeof(now)) == 0 && document->text);
}

/* --- the child ------------------------------------------------------------------------------------- */

/* Except the standard ones, because the server's sockets would stay open with the child. close_range() exists
 * since Linux 5.9. */
static void close_descriptors(void)
{
	DIR *fds = syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) ? opendir("/proc/self/fd") : NULL;
	const struct dirent *entry;

	while (fds && (entry = readdir(fds)))
		if (atoi(entry->d_name) > STDERR_FILENO && atoi(entry->d_name) != dirfd(fds))
			close(atoi(entry->d_name));
	if (fds)
		closedir(fds);
}

static _Noreturn void make(const struct document *document, int output, int said, pid_t parent)
{
	const struct rlimit size = { SIZE_MAX_BYTES, SIZE_MAX_BYTES };
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
	    dup2(output, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0)
		_exit(COMMAND_FAILED);
	close_descriptors();
	setrlimit(RLIMIT_FSIZE, &size);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setlocale(LC_CTYPE, "C.UTF-8"); /* JSON is UTF-8, whatever the locale is */
	if (document->make(document->path))
		_exit(COMMAND_FAILED);
	if (fflush(stdout) != 0)
		complain("live: what the page would show is larger than %d MB", (int)(SIZE_MAX_BYTES >> 20));
	_exit(ferror(stdout) ? COMMAND_FAILED : COMMAND_FINE);
}

/* --- the server's side ------------------------------------------------------------------------------- */

static void end_attempt(struct document *document, bool has_failed)
{
	document->number++;
	document->has_failed = has_failed;
	document->state = document->next_state;
	document->ended_ns = clock_ns(CLOCK_MONOTONIC);
}

static void forget_text(struct document *document)
{
	free(document->text);
	document->text = NULL;
	document->size = 0;
}

bool document_start(struct document *document)
{
	int ends[2] = { -1, -1 };
	const pid_t parent = getpid();

	if (document->child)
		return true;
	document->began_ns = clock_ns(CLOCK_MONOTONIC);
	document->next_state = state_of(document->path);
	document->output = memfd_create("queryprof-page", MFD_CLOEXEC);
	if (document->output >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
		document->child = fork();
	else
		document->child = -1;
	if (document->child == 0)
		make(document, document->output, ends[1], parent);
	if (ends[1] >= 0)
		close(ends[1]);
	document->said = ends[0];
	if (document->child > 0)
		return true;
	complain("live: no process to read the file with: %s", strerror(errno));
	document->child = 0;
	if (document->output >= 0)
		close(document->output);
	if (document->said >= 0)
		close(document->said);
	forget_text(document);
	end_attempt(document, true);
	return false;
}

/* Takes the child's text; false: it cannot be read. */
static bool take_text(struct document *document)
{
	struct stat status;
	size_t size, got = 0;
	char *text;

	if (fstat(document->output, &status) != 0 || status.st_size <= 0)
		return false;
	size = (size_t)status.st_size;
	text = malloc(size + 1);
	while (text && got < size) {
		const ssize_t part = pread(document->output, text + got, size - got, (off_t)got);

		if (part <= 0)
			break;
		got += (size_t)part;
	}
	if (got < size) {
		free(text);
		return false;
	}
	text[size] = 0;
	document->text = text;
	document->size = size;
	return true;
}

static void await_child(struct document *document, int *status)
{
	while (waitpid(document->child, status, 0) < 0 && errno == EINTR)
		;
	document->child = 0;
	close(document->said);
}

bool document_read(struct document *document)
{
	char text[1024];
	ssize_t got;
	int status = -1;

	/* Its complaints are for the user at the terminal; a page gets no path of the machine. */
	while ((got = read(document->said, text, sizeof(text))) > 0 || (got < 0 && errno == EINTR))
		if (got > 0 && write(STDERR_FILENO, text, (size_t)got) < 0)
			break;
	if (got < 0 && errno == EAGAIN)
		return false;
	await_child(document, &status);
	forget_text(document);
	end_attempt(document, !WIFEXITED(status) || WEXITSTATUS(status) || !take_text(document));
	close(document->output);
	return true;
}

uint64_t document_left_ns(const struct document *document)
{
	const uint64_t took = clock_ns(CLOCK_MONOTONIC) - document->began_ns, most = SECONDS_MAX * NS_PER_S;

	if (!document->child)
		return UINT64_MAX;
	if (took < most)
		return most - took;
	kill(document->child, SIGKILL);
	return 0;
}

void document_close(struct document *document)
{
	if (document->child) {
		kill(document->child, SIGKILL);
		await_child(document, &(int){ 0 });
		close(document->output);
	}
	forget_text(document);
}
