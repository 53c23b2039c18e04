/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/private_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/ui/complain.h"
#include "cmd/ui/process_files.h"
#include "cmd/ui/progress.h"
#include "store/file/database.h"
#include "store/file/lock_bytes.h"

#define LIVE_WAIT_MS 5000 /* for a lock of another process */

/* The database and the files that SQLite has next to it, except -shm, which SQLite makes from the log. */
enum { MAIN, LOG, JOURNAL, PARTS };
static const char *const suffixes[PARTS] = { "", "-wal", "-journal" };

struct source {
	const char *command, *given; /* for complaints */
	char *paths[PARTS];
	int fds[PARTS]; /* -1: there is no such file */
	struct stat states[PARTS];
};

/* --- who has it open ---------------------------------------------------------------------------- */

/* A lock of SQLite on the file. Its bytes are at the first gigabyte. An open file description holds it, so
 * no process loses a lock when the descriptor is closed. */
static bool is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK,
		              .l_whence = SEEK_SET,
		              .l_start = LOCK_BYTE_PENDING,
		              .l_len = LOCK_BYTE_SHARED + LOCK_BYTES_SHARED - LOCK_BYTE_PENDING };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Whether the process has one of the files open. This cannot be seen of a process of another user; its
 * locks show it. */
static bool has_open(const char *process, const struct source *source)
{
	char path[600];
	DIR *folder;
	bool has = false;

	snprintf(path, sizeof(path), "/proc/%.100s/fd", process);
	folder = opendir(path);
	for (const struct dirent *one; folder && !has && (one = readdir(folder));) {
		struct stat state;

		snprintf(path, sizeof(path), "/proc/%.100s/fd/%.255s", process, one->d_name);
		if (one->d_name[0] == '.' || stat(path, &state) != 0)
			continue;
		for (int i = 0; i < PARTS; i++)
			has |= source->fds[i] >= 0 && state.st_dev == source->states[i].st_dev &&
			       state.st_ino == source->states[i].st_ino;
	}
	if (folder)
		closedir(folder);
	return has;
}

static int complain_of_use(const struct source *source, const char *who)
{
	return complain("%s: %s: %s; a copy could be of two moments. Stop it, or give --live, which locks "
	                "the database for reading while it is copied",
	                source->command, source->given, who);
}

static int check_unused(const struct source *source)
{
	DIR *processes = opendir("/proc");
	char own[16], name[64], who[160] = "";

	snprintf(own, sizeof(own), "%d", getpid());
	for (const struct dirent *one; processes && !*who && (one = readdir(processes));)
		if (one->d_name[0] >= '1' && one->d_name[0] <= '9' && strcmp(one->d_name, own) != 0 &&
		    has_open(one->d_name, source)) {
			process_name((pid_t)atoi(one->d_name), 0, name, sizeof(name));
			text_blank_controls(name);
			snprintf(who, sizeof(who), "process %.20s (%s) has it open", one->d_name,
			         *name ? name : "?");
		}
	if (processes)
		closedir(processes);
	if (!*who && is_locked(source->fds[MAIN]))
		snprintf(who, sizeof(who), "another process has it locked");
	return *who ? complain_of_use(source, who) : COMMAND_FINE;
}

/* --- the database ----------------------------------------------------------------------------------- */

/* Leaves the time of the last access unchanged, if that is permitted. */
static int open_quietly(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOATIME | O_NONBLOCK);

	return fd < 0 && errno == EPERM ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : fd;
}

/* A journal that names another journal belongs to a transaction over several databases. To roll it back,
 * SQLite would open, and could delete, the file of that name. */
static bool has_super_journal(int fd, off_t size)
{
	static const unsigned char magic[8] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	unsigned char end[8];

	return size >= 8 && (pread(fd, end, 8, size - 8) != 8 || memcmp(end, magic, 8) == 0);
}

static int check_file(const struct source *source)
{
	char head[16] = "";
	const struct stat *state = &source->states[MAIN];

	if (!S_ISREG(state->st_mode))
		return complain("%s: %s: is not a regular file; expected an SQLite database", source->command,
		                source->given);
	if (state->st_size == 0)
		return complain("%s: %s: is empty; expected an SQLite database with tables", source->command,
		                source->given);
	if (pread(source->fds[MAIN], head, 16, 0) != 16 || memcmp(head, "SQLite format 3", 16) != 0)
		return complain("%s: %s: is not an SQLite database, or is encrypted", source->command,
		                source->given);
	if (source->fds[JOURNAL] >= 0 &&
	    has_super_journal(source->fds[JOURNAL], source->states[JOURNAL].st_size))
		return complain("%s: %s-journal: belongs to an unfinished transaction over several "
		                "databases; open the database with sqlite3, which ends that, and try again",
		                source->command, source->given);
	return COMMAND_FINE;
}

static int open_source(struct source *source)
{
	char *real =
		realpath(source->given, NULL); /* SQLite has the log next to the file that a link leads to */

	for (int i = 0; i < PARTS; i++) {
		source->paths[i] = real ? text_format("%s%s", real, suffixes[i]) : NULL;
		if (source->paths[i])
			source->fds[i] = open_quietly(source->paths[i]);
		if (source->fds[i] < 0 && (i == MAIN || errno != ENOENT)) {
			free(real);
			return complain("%s: %s%s: %s", source->command, source->given, suffixes[i],
			                strerror(errno));
		}
		if (source->fds[i] >= 0)
			fstat(source->fds[i], &source->states[i]);
	}
	free(real);
	return check_file(source);
}

static void close_source(struct source *source)
{
	for (int i = 0; i < PARTS; i++) {
		if (source->fds[i] >= 0)
			close(source->fds[i]);
		free(source->paths[i]);
	}
}

/* Whether the files have neither been replaced nor changed since they were opened. */
static bool is_unchanged(const struct source *source)
{
	for (int i = 0; i < PARTS; i++) {
		const struct stat *was = &source->states[i];
		struct stat is;

		if (stat(source->paths[i], &is) != 0) {
			if (source->fds[i] >= 0)
				return false;
			continue;
		}
		if (source->fds[i] < 0 || is.st_ino != was->st_ino || is.st_size != was->st_size ||
		    is.st_mtim.tv_sec != was->st_mtim.tv_sec || is.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
			return false;
	}
	return true;
}

/* --- the copies --------------------------------------------------------------------------------------- */

static int64_t bytes_of(const struct source *source)
{
	int64_t bytes = 0;

	for (int i = 0; i < PARTS; i++)
		bytes += source->fds[i] >= 0 ? source->states[i].st_size : 0;
	return bytes;
}

/* Room for the copies, for indexes on one of them, and for what SQLite sorts to build an index. */
static int check_space(const struct source *source, int64_t bytes, int count, const char *folder)
{
	const int64_t needed = (count + 1) * bytes + (16 << 20);
	struct statvfs space;

	if (statvfs(folder, &space) != 0)
		return complain("%s: %s: %s", source->command, folder, strerror(errno));
	if ((int64_t)(space.f_bavail * space.f_frsize) >= needed)
		return COMMAND_FINE;
	return complain(
		"%s: %s: has %lld MB free; the copies of %s need %lld MB. TMPDIR=FOLDER names another folder",
		source->command, folder, (long long)(space.f_bavail * space.f_frsize >> 20), source->given,
		(long long)(needed >> 20));
}

static bool copy_bytes(int from, int to)
{
	static char buffer[1 << 18];
	off_t at = 0;
	ssize_t got;

	if (ioctl(to, FICLONE, from) == 0)
		return true;
	while ((got = pread(from, buffer, sizeof(buffer), at)) > 0) {
		if (pwrite(to, buffer, (size_t)got, at) != got) {
			errno = errno ? errno : ENOSPC;
			return false;
		}
		at += got;
	}
	return got == 0;
}

static int copy_all(const struct source *source, const struct private_copies *copies)
{
	for (int copy = 0; copy < copies->count; copy++)
		for (int i = 0; i < PARTS; i++) {
			char *path = source->fds[i] >= 0
			                     ? text_format("%s%s", copies->paths[copy], suffixes[i])
			                     : NULL;
			int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
			bool fine = source->fds[i] < 0 || (fd >= 0 && copy_bytes(source->fds[i], fd));

			if (!fine)
				complain("%s: a copy of %s%s: %s", source->command, source->given,
				         suffixes[i], strerror(errno));
			if (fd >= 0)
				close(fd);
			free(path);
			if (!fine)
				return COMMAND_FAILED;
		}
	return COMMAND_FINE;
}

static void remove_folder(const void *context)
{
	const char *path = context;
	DIR *folder = opendir(path);

	for (const struct dirent *one; folder && (one = readdir(folder));)
		if (one->d_name[0] != '.')
			unlinkat(dirfd(folder), one->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

static int make_folder(const char *command, struct private_copies *copies)
{
	const char *parent = getenv("TMPDIR");

	copies->folder = text_format("%s/queryprof-copy-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!copies->folder || !mkdtemp(copies->folder)) {
		complain("%s: %s: %s", command, copies->folder ? copies->folder : "TMPDIR", strerror(errno));
		free(copies->folder);
		copies->folder = NULL;
		return COMMAND_FAILED;
	}
	if (!keeper_start(&copies->keeper, false, remove_folder, copies->folder)) {
		rmdir(copies->folder);
		return complain("%s: the process that removes the copies: %s", command, strerror(errno));
	}
	for (int i = 0; i < copies->count; i++)
		if (!(copies->paths[i] = text_format("%s/%d.db", copies->folder, i)))
			return complain("%s: out of memory", command);
	return COMMAND_FINE;
}

/* Copies files that no other process uses. */
static int copy_unused(struct source *source, struct private_copies *copies)
{
	int result = open_source(source);

	if (!result)
		result = check_unused(source);
	if (!result)
		result = check_space(source, bytes_of(source), copies->count, copies->folder);
	if (!result)
		result = copy_all(source, copies);
	if (!result)
		result = check_unused(source);
	if (!result && !is_unchanged(source))
		result = complain_of_use(source, "it changed while it was copied");
	copies->bytes = bytes_of(source);
	return result;
}

/* --- of a database in use ------------------------------------------------------------------------------- */

/* SQLite's own backup in one step, which is one read transaction. */
static int back_up(const struct source *source, sqlite3 *from, const char *path)
{
	sqlite3 *to = NULL;
	int code = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix");
	sqlite3_backup *backup = code ? NULL : sqlite3_backup_init(to, "main", from, "main");

	if (backup) {
		sqlite3_backup_step(backup, -1);
		code = sqlite3_backup_finish(backup);
	} else {
		code = sqlite3_errcode(to);
	}
	if (code)
		complain("%s: %s: %s", source->command, source->given,
		         to ? sqlite3_errmsg(to) : sqlite3_errstr(code));
	sqlite3_close(to);
	return code ? COMMAND_FAILED : COMMAND_FINE;
}

/* SQLite makes the first copy; the others are copies of that one. No descriptor of the database may be
 * closed while SQLite has locks. */
static int copy_live(const struct source *source, struct private_copies *copies)
{
	sqlite3 *from = NULL;
	struct stat state;
	int result = COMMAND_FAILED;

	if (stat(source->given, &state) != 0)
		return complain("%s: %s: %s", source->command, source->given, strerror(errno));
	copies->bytes = state.st_size;
	if (check_space(source, copies->bytes, copies->count, copies->folder))
		return COMMAND_FAILED;
	if (sqlite3_open_v2(source->given, &from, SQLITE_OPEN_READONLY, "unix") == SQLITE_OK) {
		sqlite3_busy_timeout(from, LIVE_WAIT_MS);
		const bool wal =
			database_number(from, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0);
		const uint64_t began = clock_ns(CLOCK_MONOTONIC);

		result = back_up(source, from, copies->paths[0]);
		if (!result)
			fprintf(stderr, "queryprof: %s: --live: %s was locked for reading for %.3f s; %s\n",
			        source->command, source->given,
			        (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9,
			        wal ? "no checkpoint could reset its WAL meanwhile"
			            : "no process could write to it meanwhile");
	} else {
		complain("%s: %s: %s", source->command, source->given, sqlite3_errmsg(from));
	}
	sqlite3_close(from);
	for (int i = 1; !result && i < copies->count; i++) {
		struct source first = { .command = source->command,
			                .given = copies->paths[0],
			                .fds = { -1, -1, -1 } };
		struct private_copies other = { .count = 1, .paths = { copies->paths[i] } };

		result = open_source(&first);
		if (!result)
			result = copy_all(&first, &other);
		close_source(&first);
	}
	return result;
}

int private_copies_make(const char *command, const char *path, int count, bool is_live,
                        struct private_copies *copies)
{
	struct source source = { .command = command, .given = path, .fds = { -1, -1, -1 } };
	int result;

	*copies = (struct private_copies){ .count = count, .keeper.alive = -1 };
	progress_begin("copying the database");
	/* The keeper starts before the files are opened, so that it does not inherit them. */
	result = make_folder(command, copies);
	if (!result)
		result = is_live ? copy_live(&source, copies) : copy_unused(&source, copies);
	close_source(&source);
	if (result)
		private_copies_remove(copies);
	return result;
}

void private_copies_remove(struct private_copies *copies)
{
	keeper_clean_up(&copies->keeper);
	for (int i = 0; i < PRIVATE_COPIES_MAX; i++)
		free(copies->paths[i]);
	free(copies->folder);
	*copies = (struct private_copies){ .keeper.alive = -1 };
}
