/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/mcp/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/line/command.h"
#include "store/file/schema.h"

struct folder {
	char *path; /* with links resolved */
	int fd;
};
static VECTOR(struct folder) folders;

int folders_open(int count, char **paths)
{
	for (int i = 0; i < count; i++) {
		struct folder folder = { .path = realpath(paths[i], NULL), .fd = -1 };

		if (folder.path)
			folder.fd = open(folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (folder.fd < 0) {
			const int error = errno;

			free(folder.path);
			return complain("mcp: %s: %s: expected a folder with trace files", paths[i],
			                strerror(error));
		}
		if (!vector_push(&folders, folder))
			return complain("mcp: out of memory");
	}
	return COMMAND_FINE;
}

/* --- listing ------------------------------------------------------------------------------------ */

struct found {
	char *path;
	int64_t size, changed; /* bytes, seconds */
};

/* The file's SQLite header contains the application id. */
static bool is_trace_file(int folder, const char *name, struct stat *status)
{
	unsigned char header[72];
	bool is_trace = false;
	int fd;

	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, status) || !S_ISREG(status->st_mode) || status->st_uid != geteuid())) {
		close(fd);
		return false;
	}
	if (fd >= 0 && pread(fd, header, sizeof(header), 0) == (ssize_t)sizeof(header))
		is_trace = memcmp(header, "SQLite format 3", 16) == 0 &&
		           ((uint32_t)header[68] << 24 | (uint32_t)header[69] << 16 |
		            (uint32_t)header[70] << 8 | header[71]) == STORE_APPLICATION_ID;
	if (fd >= 0)
		close(fd);
	return is_trace;
}

typedef VECTOR(struct found) found_vector;

static int compare(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	return a->changed != b->changed ? (a->changed < b->changed) - (a->changed > b->changed)
	                                : strcmp(a->path, b->path);
}

static found_vector find_all(void)
{
	found_vector all = { 0 };

	for (size_t i = 0; i < folders.count; i++) {
		const struct folder *folder = &folders.items[i];
		DIR *files = opendir(folder->path);
		const struct dirent *file;
		struct stat status;

		while (files && (file = readdir(files))) {
			/* Opening a device may have side effects. */
			if ((file->d_type != DT_REG && file->d_type != DT_UNKNOWN) ||
			    !is_trace_file(folder->fd, file->d_name, &status))
				continue;
			struct found found = { .path = text_format("%s/%s", folder->path, file->d_name),
				               .size = status.st_size,
				               .changed = status.st_mtim.tv_sec };

			if (!found.path || !vector_push(&all, found))
				free(found.path);
		}
		if (files)
			closedir(files);
	}
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), compare);
	return all;
}

static void free_all(found_vector *all)
{
	for (size_t i = 0; i < all->count; i++)
		free(all->items[i].path);
	free(all->items);
}

static void put_none(FILE *to)
{
	fprintf(to, "no trace file in");
	for (size_t i = 0; i < folders.count; i++)
		fprintf(to, "%s %s", i ? "," : "", folders.items[i].path);
	fprintf(to, "; to make one: queryprof record -o app.trace -- COMMAND\n");
}

void folders_list(FILE *to)
{
	found_vector all = find_all();

	for (size_t i = 0; i < all.count; i++) {
		const time_t changed = all.items[i].changed;
		char time[32] = "";
		struct tm parts;

		if (gmtime_r(&changed, &parts))
			strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S UTC", &parts);
		fprintf(to, "%s (%lld kB, changed %s)\n", all.items[i].path,
		        (long long)(all.items[i].size + 999) / 1000, time);
	}
	if (!all.count)
		put_none(to);
	free_all(&all);
}

/* --- finding one ---------------------------------------------------------------------------------- */

/* Why the file is refused; NULL: it is accepted. */
static const char *check(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return strerror(errno);
	return S_ISLNK(status.st_mode)      ? "it is a symbolic link"
	       : !S_ISREG(status.st_mode)   ? "it is not a regular file"
	       : status.st_uid != geteuid() ? "it belongs to another user"
	                                    : NULL;
}

static const char no_file[] = "there is no such file";

/* Opens one folder after the other, so no link and no ".." leads out. NULL: the file is in this folder. */
static const char *refuse(const struct folder *folder, const char *name)
{
	const char *why = NULL;
	int at = dup(folder->fd);

	while (!why) {
		const size_t size = strcspn(name, "/");
		char *part = text_format("%.*s", (int)size, name);
		const bool is_last = !name[size];
		int next = -1;

		if (!part || at < 0)
			why = "out of memory or descriptors";
		else if (strcmp(part, "..") == 0)
			why = "a path may not contain \"..\"";
		else if ((next = openat(at, part,
		                        O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY))) < 0)
			why = errno == ENOENT ? no_file
			      : errno == ENOTDIR || errno == ELOOP
			              ? "a part of the path is not a folder, or is a symbolic link"
			              : strerror(errno);
		else if (is_last)
			why = check(next);
		free(part);
		if (at >= 0)
			close(at);
		at = next;
		if (is_last)
			break;
		name += size + strspn(name + size, "/");
	}
	if (at >= 0)
		close(at);
	return why;
}

/* The part of an absolute path after the folder; NULL: the path is not below it. */
static const char *below(const struct folder *folder, const char *path)
{
	const size_t size = strlen(folder->path);

	if (size == 1)
		return path + 1; /* the root */
	return strncmp(path, folder->path, size) == 0 && path[size] == '/' ? path + size + 1 : NULL;
}

static char *find_newest(FILE *to)
{
	found_vector all = find_all();
	char *path = all.count ? all.items[0].path : NULL;

	if (path)
		all.items[0].path = NULL;
	else
		put_none(to);
	free_all(&all);
	return path;
}

/* NULL: no folder has it, and `why` has the reason. */
static char *find(const char *name, const char **why)
{
	*why = "it is in none of the folders with which the server was started";
	for (size_t i = 0; i < folders.count; i++) {
		const struct folder *folder = &folders.items[i];
		const char *rest = *name == '/' ? below(folder, name) : name;

		if (!rest)
			continue;
		*why = *rest ? refuse(folder, rest) : "it is not a regular file";
		if (!*why)
			return text_format("%s/%s", folder->path, rest);
	}
	return NULL;
}

char *folders_find(const char *name, FILE *to)
{
	const char *why;
	char *path;

	if (!name)
		return find_newest(to);
	path = find(name, &why);
	if (!path)
		fprintf(to, "%.200s: refused: %s. The tool `files` lists the files that can be read\n", name,
		        why);
	return path;
}

char *folders_find_database(const char *name, FILE *to)
{
	static const char *const next_to_it[] = { "", "-wal", "-journal" };
	char *path = NULL;

	for (size_t i = 0; i < sizeof(next_to_it) / sizeof(*next_to_it); i++) {
		char *part = text_format("%s%s", name, next_to_it[i]);
		const char *why = "out of memory";
		char *found = part ? find(part, &why) : NULL;

		free(part);
		if (!found && (i == 0 || why != no_file)) {
			fprintf(to,
			        "%.200s%s: refused: %s. Expected a database in the folders with which the "
			        "server was started\n",
			        name, next_to_it[i], why);
			free(path);
			return NULL;
		}
		if (i == 0)
			path = found;
		else
			free(found);
	}
	return path;
}
