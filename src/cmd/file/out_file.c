/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See out_file.h.
 */
#include "cmd/file/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/line/command.h"

/* For the signals that end this process, because half a file would look complete. */
static const char *unfinished;
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };

static void remove_unfinished(int signal)
{
	if (unfinished)
		unlink(unfinished);
	raise(signal); /* SA_RESETHAND: this one ends the process */
}

static void catch_signals(void)
{
	struct sigaction was, action = { .sa_handler = remove_unfinished, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
}

/* A signal waits while the file exists but is not yet registered as unfinished. */
static int make_unfinished(char *path)
{
	sigset_t held, was;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&held, ends[i]);
	sigprocmask(SIG_BLOCK, &held, &was);
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0) {
		unfinished = path;
		catch_signals();
	}
	int error = errno;
	sigprocmask(SIG_SETMASK, &was, NULL);
	errno = error;
	return fd;
}

/* The file contains the trace file's texts of queries, so a new one is as private. */
#define NEW_FILE_MODE 0600

static int open_partial(struct out_file *out, const struct stat *old)
{
	/* A link's target is replaced, not the link. */
	out->target = old ? realpath(out->path, NULL) : strdup(out->path);
	if (!out->target || asprintf(&out->partial, "%s.XXXXXX", out->target) < 0)
		return -1;
	int fd = make_unfinished(out->partial);
	if (fd < 0)
		return -1;
	/* mkostemp() has made the file with a new file's mode. */
	if (old && fchmod(fd, old->st_mode & 07777) != 0) {
		/* a file system without modes */
	}
	return fd;
}

const char *out_file_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* After an error, which was reported. */
static void drop_output(void)
{
	__fpurge(stdout);
	clearerr(stdout);
}

static void forget(struct out_file *out)
{
	unfinished = NULL;
	free(out->target);
	free(out->partial);
	*out = (struct out_file){ 0 };
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* SQLite's log and its index are next to the target of a link. */
static bool is_beside(const char *path, const char *source)
{
	static const char *const beside[] = { "-wal", "-shm" };
	char *real = realpath(source, NULL);
	bool is = false;

	for (size_t i = 0; real && !is && i < sizeof(beside) / sizeof(beside[0]); i++) {
		char *name = text_format("%s%s", real, beside[i]);

		is = !name || is_same_file(path, name);
		free(name);
	}
	free(real);
	return is;
}

/* Exports are large, so this saves 15 of 16 system calls. One file is open at a time, and stdout keeps the
 * buffer until the process ends. */
static void enlarge_buffer(FILE *stream)
{
	static char buffer[1 << 16];

	if (!isatty(fileno(stream)))
		setvbuf(stream, buffer, _IOFBF, sizeof(buffer));
}

int out_file_open(struct out_file *out, const char *path, const char *const *sources)
{
	struct stat link, old;
	int fd;

	*out = (struct out_file){ .path = path };
	if (strcmp(path, "-") == 0) {
		out->stream = stdout;
		enlarge_buffer(stdout);
		return COMMAND_FINE;
	}
	for (; *sources; sources++) {
		if (is_same_file(path, *sources))
			return complain("%s: is the file being exported", path);
		if (is_beside(path, *sources))
			return complain("%s: is part of %s, which is being exported", path, *sources);
	}
	bool is_there = stat(path, &old) == 0;
	if (is_there ? S_ISREG(old.st_mode) : lstat(path, &link) != 0)
		fd = open_partial(out, is_there ? &old : NULL);
	else
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, NEW_FILE_MODE);
	out->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (out->stream) {
		enlarge_buffer(out->stream);
		return COMMAND_FINE;
	}
	complain("%s: %s", path, strerror(errno));
	if (fd >= 0 && unfinished)
		unlink(unfinished);
	forget(out);
	return COMMAND_FAILED;
}

int out_file_close(struct out_file *out, bool is_whole)
{
	int result = COMMAND_FINE;

	bool written = fflush(out->stream) == 0 && !ferror(out->stream);
	int error = written ? 0 : errno;
	if (out->stream != stdout && fclose(out->stream) != 0) {
		error = written ? errno : error;
		written = false;
	}
	/* A process that is killed before this leaves no file; after it, the complete file. */
	if (written && is_whole && out->partial && rename(out->partial, out->target) != 0) {
		error = errno;
		written = false;
	}
	if (is_whole && !written)
		result = complain("%s: %s", out_file_name(out->path),
		                  error ? strerror(error) : "cannot be written");
	if (out->stream == stdout && !written)
		drop_output();
	if (out->partial && !(is_whole && written))
		unlink(out->partial);
	forget(out);
	return result;
}
