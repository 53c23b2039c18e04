/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See replaced_file.h. A process that is killed meanwhile leaves FILE.old-XXXXXX, a trace file like any
 * other.
 */
#include "cmd/file/replaced_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/line/command.h"
#include "cmd/ui/program.h"

/* The file first: without it, SQLite does not use the log for another file. */
static const char *const ends[] = { "", "-wal", "-shm" };
#define ENDS (sizeof(ends) / sizeof(ends[0]))

static struct {
	const char *path;
	char *aside; /* NULL: no file was set aside */
} old;

void trace_file_remove(const char *path)
{
	for (size_t i = 0; i < ENDS; i++) {
		char *name = text_format("%s%s", path, ends[i]);

		if (name)
			unlink(name);
		free(name);
	}
}

/* False: errno has the reason. */
static bool rename_part(const char *from, const char *to, const char *end)
{
	char *old_name = text_format("%s%s", from, end), *new_name = text_format("%s%s", to, end);
	bool fine = old_name && new_name;

	if (!fine)
		errno = ENOMEM;
	else
		fine = rename(old_name, new_name) == 0;
	int error = errno;
	free(old_name);
	free(new_name);
	errno = error;
	return fine;
}

/* Makes an empty file with a new name next to the file. NULL: errno has the reason. */
static char *make_name(const char *path)
{
	char *name = text_format("%s.old-XXXXXX", path);
	int fd = name ? mkostemp(name, O_CLOEXEC) : -1;
	int error = name ? errno : ENOMEM;

	if (fd >= 0) {
		close(fd);
		return name;
	}
	free(name);
	errno = error;
	return NULL;
}

/* Renames the file, then the others that exist. False: errno has the reason. */
static bool set_aside(const char *path)
{
	char *aside = make_name(path);

	if (!aside)
		return false;
	if (!rename_part(path, aside, ends[0])) {
		int error = errno;

		unlink(aside);
		free(aside);
		errno = error;
		return false;
	}
	old.path = path;
	old.aside = aside;
	for (size_t i = 1; i < ENDS; i++)
		if (!rename_part(path, aside, ends[i]) && errno != ENOENT)
			return false;
	return true;
}

/* The file last: when it is back, all that belongs to it is. */
static void put_back(void)
{
	for (size_t i = ENDS; old.aside && i-- > 0;)
		if (!rename_part(old.aside, old.path, ends[i]) && (errno != ENOENT || i == 0))
			complain("record: %s%s: cannot be renamed to %s%s: %s", old.aside, ends[i], old.path,
			         ends[i], strerror(errno));
	free(old.aside);
	old.aside = NULL;
}

int replaced_file_set_aside(const char *path, const char *given)
{
	program_hold_signals();
	if (set_aside(path))
		return COMMAND_FINE;
	int error = errno;
	put_back();
	return complain("record: %s: cannot be renamed, as --new requires: %s", given, strerror(error));
}

void replaced_file_put_back(void)
{
	if (old.aside)
		trace_file_remove(old.path); /* a remaining log would be applied to the old file */
	put_back();
}

void replaced_file_remove(void)
{
	if (old.aside)
		trace_file_remove(old.aside);
	free(old.aside);
	old.aside = NULL;
}
