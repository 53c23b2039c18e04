/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process ids cannot show whether a directory is still in use, because they are reused. So the owner holds an
 * flock on the file `lock` in it, which the kernel drops when the process ends, even by a signal.
 *
 * Only files with queryprof's names are ever removed, and only in a directory of queryprof that belongs to
 * the process's user and is not a link.
 */
#include "store/file/tempdir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/free_later.h"
#include "base/text.h"

#define PREFIX "queryprof-"
#define LOCK "lock"

/* A directory without a lock file that is at least this old was abandoned by a process that ended before it
 * made the lock file. */
#define UNLOCKED_SECONDS 60

/* The sweep of a crowded folder gives up after this many names. */
#define SWEEP_LIMIT 20000

static const char *const our_files[] = {
	"trace.db", "trace.db-wal", "trace.db-shm", "trace.db-journal", LOCK,
};

static const char *parent_folder(void)
{
	const char *folder = secure_getenv("TMPDIR");

	/* The host may change its working directory. */
	return folder && *folder == '/' ? folder : "/tmp";
}

static bool is_our_name(const char *name)
{
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || strlen(name) != sizeof(PREFIX) - 1 + 6)
		return false;
	for (name += sizeof(PREFIX) - 1; *name; name++) {
		if (!isalnum((unsigned char)*name))
			return false;
	}
	return true;
}

/* True if no process uses the directory: the caller now holds its lock, or it has had no lock file for so
 * long that none will be made. */
static bool is_abandoned(int folder, int *lock)
{
	const time_t now = (time_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S);
	struct stat status;

	*lock = openat(folder, LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (*lock >= 0)
		return !flock(*lock, LOCK_EX | LOCK_NB);
	return errno == ENOENT && !fstat(folder, &status) && now - status.st_mtime > UNLOCKED_SECONDS;
}

static void sweep_one(int parent, const char *name)
{
	struct stat status;
	int lock = -1;
	int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (folder < 0)
		return;
	if (!fstat(folder, &status) && status.st_uid == geteuid() && is_abandoned(folder, &lock)) {
		for (size_t i = 0; i < sizeof(our_files) / sizeof(*our_files); i++)
			unlinkat(folder, our_files[i], 0);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
	if (lock >= 0)
		close(lock);
	close(folder);
}

static void sweep(const char *parent)
{
	DIR *folder = opendir(parent);
	struct dirent *entry;

	if (!folder)
		return;
	for (int i = 0; i < SWEEP_LIMIT && (entry = readdir(folder)); i++) {
		if (is_our_name(entry->d_name))
			sweep_one(dirfd(folder), entry->d_name);
	}
	closedir(folder);
}

/* Another process's sweep may find the directory before the lock is held, and remove it. The lock file has no
 * name then. */
static int acquire_lock(const char *folder, struct tempdir *directory)
{
	char *path = text_format("%s/%s", folder, LOCK);
	struct stat status;
	int error = 0;
	int lock;

	if (!path)
		return ENOMEM;
	lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0)
		error = errno == ENOENT ? EAGAIN : errno;
	else if (flock(lock, LOCK_EX | LOCK_NB) || fstat(lock, &status) || !status.st_nlink)
		error = EAGAIN;
	if (error && lock >= 0) {
		close(lock);
		unlink(path);
	}
	if (!error)
		directory->lock = lock;
	free(path);
	return error;
}

int tempdir_make(struct tempdir *directory)
{
	const char *parent = parent_folder();
	int error = EAGAIN;

	*directory = (struct tempdir){ .lock = -1 };
	sweep(parent);
	for (int tries = 0; error == EAGAIN && tries < 5; tries++) {
		char *path = text_format("%s/" PREFIX "XXXXXX", parent);

		if (!path)
			return ENOMEM;
		if (!mkdtemp(path)) {
			error = errno;
			free(path);
			return error;
		}
		chmod(path, 0700); /* independent of the umask */
		error = acquire_lock(path, directory);
		if (error) {
			rmdir(path);
			free(path);
		} else {
			directory->path = path;
		}
	}
	return error;
}

void tempdir_remove(struct tempdir *directory)
{
	if (!directory->path)
		return;
	for (size_t i = 0; i < sizeof(our_files) / sizeof(*our_files); i++) {
		char *path = text_format("%s/%s", directory->path, our_files[i]);

		if (path)
			unlink(path);
		free(path);
	}
	rmdir(directory->path);
	close(directory->lock);
	tempdir_forget(directory);
}

bool tempdir_is_there(const struct tempdir *directory)
{
	return !access(directory->path, F_OK);
}

void tempdir_forget(struct tempdir *directory)
{
	free_text_later(directory->path); /* even in a forked child */
	*directory = (struct tempdir){ .lock = -1 };
}
