/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/messages.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/line/command.h"
#include "recorder/mark.h"

static struct {
	char *path;
	int pipe;
	VECTOR(char) text; /* lines that were taken from the pipe */
} messages = { .pipe = -1 };

/* How much of them is kept: of the kinds that say what is missing, and of the others, which many processes
 * send. */
#define MISSING_KEPT (1 << 20)
#define OTHERS_KEPT MARKS_MAX

/* Other users may write to it, because a process may have given up its own user. They cannot read it. */
static bool open_pipe(void)
{
	if (mkfifo(messages.path, 0600))
		return false;
	messages.pipe = open(messages.path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (messages.pipe >= 0 && !fchmod(messages.pipe, 0622) &&
	    fcntl(messages.pipe, F_GETPIPE_SZ) < MARKS_MAX)
		fcntl(messages.pipe, F_SETPIPE_SZ, MARKS_MAX); /* refused: it keeps less */
	return messages.pipe >= 0;
}

int messages_begin(void)
{
	const char *folder = getenv("TMPDIR");
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return complain("record: no random number: %s", strerror(errno));
	messages.path = text_format("%s/queryprof-record-%016" PRIx64,
	                            folder && *folder == '/' ? folder : "/tmp", random);
	if (!messages.path)
		return complain("record: out of memory");
	if (!open_pipe()) {
		complain("record: %s: %s", messages.path, strerror(errno));
		messages_end();
		return COMMAND_FAILED;
	}
	return setenv("QUERYPROF_RECORD", messages.path, 1) == 0 ? COMMAND_FINE
	                                                         : complain("record: out of memory");
}

void messages_end(void)
{
	if (messages.pipe >= 0) {
		unlink(messages.path);
		close(messages.pipe);
	}
	messages.pipe = -1;
	vector_free(&messages.text);
	free(messages.path);
	messages.path = NULL;
}

int messages_pipe(void)
{
	return messages.pipe;
}

static void keep_line(const char *line, size_t size)
{
	const char kinds[] = { MARK_REFUSED, MARK_LOST, MARK_CONFINED };
	const size_t most = memchr(kinds, *line, sizeof(kinds)) ? MISSING_KEPT : OTHERS_KEPT;

	/* A zero would end the text. */
	if (memchr(line, 0, size) || messages.text.count + size > most ||
	    !vector_reserve(&messages.text, messages.text.count + size + 1))
		return;
	memcpy(messages.text.items + messages.text.count, line, size);
	messages.text.count += size;
}

/* Returns the size of the rest, which is moved to the beginning: a line without its end. */
static size_t keep_lines(char *text, size_t size)
{
	size_t at = 0;

	for (const char *end; (end = memchr(text + at, '\n', size - at)); at = (size_t)(end + 1 - text))
		keep_line(text + at, (size_t)(end + 1 - text) - at);
	memmove(text, text + at, size - at);
	return size - at;
}

void messages_take(void)
{
	char text[2 * PIPE_BUF];
	size_t rest = 0;
	ssize_t size;

	while (rest < sizeof(text) && (size = read(messages.pipe, text + rest, sizeof(text) - rest)) > 0)
		rest = keep_lines(text, rest + (size_t)size);
}

const char *messages_path(void)
{
	return messages.path;
}

const char *messages_all(void)
{
	messages_take();
	if (!messages.text.count)
		return "";
	messages.text.items[messages.text.count] = '\0';
	return messages.text.items;
}

/* Other users may have written it. */
char *messages_next(const char **lines, const char *kinds, long *process)
{
	while (**lines) {
		const char *line = *lines, *end = strchrnul(line, '\n');
		const char *text = memchr(line, ' ', (size_t)(end - line));
		char *copy;

		*lines = *end ? end + 1 : end;
		if (!strchr(kinds, *line) || !text)
			continue;
		*process = atol(line + 1);
		copy = strndup(text + 1, (size_t)(end - text) - 1);
		for (char *at = copy; at && *at; at++)
			if (iscntrl((unsigned char)*at))
				*at = '?';
		return copy;
	}
	return NULL;
}
