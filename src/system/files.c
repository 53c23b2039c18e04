/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's functions of files, memory maps and sockets as bare system calls. They are not cancellation
 * points. The names for large files are aliases, because off_t has 64 bits.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "system/call.h"

_Static_assert(sizeof(off_t) == sizeof(long) && sizeof(struct stat) == sizeof(struct stat64),
               "as the kernel's");

/* Older headers do not know it. */
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#if defined(__GLIBC__)
#define ALSO(type, name, of, parameters) type name parameters __attribute__((alias(#of)))
#else /* musl's headers have them as macros */
#define ALSO(type, name, of, parameters) _Static_assert(sizeof(type), #name)
#endif

/* --- opening and closing ------------------------------------------------------------------------- */

static int open_with(int folder, const char *path, int flags, va_list more)
{
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;

	return (int)CALL(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list more;
	int fd;

	va_start(more, flags);
	fd = open_with(AT_FDCWD, path, flags, more);
	va_end(more);
	return fd;
}
ALSO(int, open64, open, (const char *path, int flags, ...));

int openat(int folder, const char *path, int flags, ...)
{
	va_list more;
	int fd;

	va_start(more, flags);
	fd = open_with(folder, path, flags, more);
	va_end(more);
	return fd;
}
ALSO(int, openat64, openat, (int folder, const char *path, int flags, ...));

SYSTEM_CALL(int, close, (int fd), SYS_close, fd)

int fcntl(int fd, int command, ...)
{
	va_list more;
	long argument;

	va_start(more, command);
	argument = va_arg(more, long);
	va_end(more);
	return (int)CALL(SYS_fcntl, fd, command, argument);
}
ALSO(int, fcntl64, fcntl, (int fd, int command, ...));

SYSTEM_CALL(int, flock, (int fd, int operation), SYS_flock, fd, operation)
SYSTEM_CALL(int, memfd_create, (const char *name, unsigned flags), SYS_memfd_create, name, flags)

/* --- reading and writing ------------------------------------------------------------------------- */

SYSTEM_CALL(ssize_t, read, (int fd, void *bytes, size_t size), SYS_read, fd, bytes, size)
SYSTEM_CALL(ssize_t, write, (int fd, const void *bytes, size_t size), SYS_write, fd, bytes, size)
SYSTEM_CALL(ssize_t, pread, (int fd, void *bytes, size_t size, off_t offset), SYS_pread64, fd, bytes, size,
            offset)
ALSO(ssize_t, pread64, pread, (int fd, void *bytes, size_t size, off64_t offset));
SYSTEM_CALL(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t offset), SYS_pwrite64, fd, bytes,
            size, offset)
ALSO(ssize_t, pwrite64, pwrite, (int fd, const void *bytes, size_t size, off64_t offset));
SYSTEM_CALL(off_t, lseek, (int fd, off_t offset, int from), SYS_lseek, fd, offset, from)
ALSO(off64_t, lseek64, lseek, (int fd, off64_t offset, int from));
SYSTEM_CALL(int, ftruncate, (int fd, off_t size), SYS_ftruncate, fd, size)
ALSO(int, ftruncate64, ftruncate, (int fd, off64_t size));
SYSTEM_CALL(int, fdatasync, (int fd), SYS_fdatasync, fd)
SYSTEM_CALL(ssize_t, process_vm_readv,
            (pid_t process, const struct iovec *to, unsigned long to_count, const struct iovec *from,
             unsigned long from_count, unsigned long flags),
            SYS_process_vm_readv, process, to, to_count, from, from_count, flags)

/* --- what a file is -------------------------------------------------------------------------------- */

SYSTEM_CALL(int, fstatat, (int folder, const char *path, struct stat *status, int flags), SYS_newfstatat,
            folder, path, status, flags)
SYSTEM_CALL(int, fstat, (int fd, struct stat *status), SYS_fstat, fd, status)
ALSO(int, fstat64, fstat, (int fd, struct stat64 *status));

int stat(const char *path, struct stat *status)
{
	return fstatat(AT_FDCWD, path, status, 0);
}
ALSO(int, stat64, stat, (const char *path, struct stat64 *status));

int lstat(const char *path, struct stat *status)
{
	return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
ALSO(int, lstat64, lstat, (const char *path, struct stat64 *status));

SYSTEM_CALL(int, fstatfs, (int fd, struct statfs *status), SYS_fstatfs, fd, status)

/* Linux before 5.8 has no flags, so the rights of the real user must suffice. */
int faccessat(int folder, const char *path, int how, int flags)
{
	long result = flags ? CALL_KERNEL(SYS_faccessat2, folder, path, how, flags) : -ENOSYS;

	/* Older containers return EPERM for unknown calls. */
	return (int)call_result(result == -ENOSYS || result == -EPERM
	                                ? CALL_KERNEL(SYS_faccessat, folder, path, how)
	                                : result);
}

int access(const char *path, int how)
{
	return faccessat(AT_FDCWD, path, how, 0);
}

SYSTEM_CALL(ssize_t, readlink, (const char *path, char *target, size_t size), SYS_readlinkat, AT_FDCWD, path,
            target, size)
SYSTEM_CALL(int, chmod, (const char *path, mode_t mode), SYS_fchmodat, AT_FDCWD, path, mode)
SYSTEM_CALL(int, fchmod, (int fd, mode_t mode), SYS_fchmod, fd, mode)
SYSTEM_CALL(int, fchown, (int fd, uid_t user, gid_t group), SYS_fchown, fd, user, group)

int utime(const char *path, const struct utimbuf *times)
{
	struct timespec both[2];

	if (times) {
		both[0] = (struct timespec){ .tv_sec = times->actime };
		both[1] = (struct timespec){ .tv_sec = times->modtime };
	}
	return (int)CALL(SYS_utimensat, AT_FDCWD, path, times ? both : NULL, 0);
}

/* --- names ----------------------------------------------------------------------------------------- */

SYSTEM_CALL(int, unlinkat, (int folder, const char *path, int flags), SYS_unlinkat, folder, path, flags)

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

SYSTEM_CALL(int, mkdir, (const char *path, mode_t mode), SYS_mkdirat, AT_FDCWD, path, mode)

/* The kernel returns a path that begins with "(unreachable)" for files outside the root. */
char *getcwd(char *path, size_t size)
{
	char room[PATH_MAX];

	if (!path)
		return getcwd(room, sizeof(room)) ? strdup(room) : NULL;
	if (CALL(SYS_getcwd, path, size) < 0)
		return NULL;
	if (*path == '/')
		return path;
	errno = ENOENT;
	return NULL;
}

#define LINKS_MAX 40

struct resolution {
	char path[PATH_MAX];    /* without links, so far */
	char pending[PATH_MAX]; /* the rest of the path */
	size_t length;
	int links;
};

/* `path` ends in a name that was appended. The link's target is inserted before the pending part. */
static bool follow(struct resolution *at, size_t before, const char *rest)
{
	char target[PATH_MAX];
	ssize_t size = readlink(at->path, target, sizeof(target));
	size_t rest_size = strlen(rest) + 1;

	if (size < 0) {
		memmove(at->pending, rest, rest_size);
		return errno == EINVAL; /* it is not a link */
	}
	if ((size_t)size + rest_size > sizeof(at->pending)) {
		errno = ENAMETOOLONG;
		return false;
	}
	if (++at->links > LINKS_MAX) {
		errno = ELOOP;
		return false;
	}
	memmove(at->pending + size, rest, rest_size);
	memcpy(at->pending, target, (size_t)size);
	at->length = *target == '/' ? 0 : before;
	return true;
}

static bool resolve_next(struct resolution *at)
{
	const char *name = at->pending + strspn(at->pending, "/"), *rest = name + strcspn(name, "/");
	const size_t size = (size_t)(rest - name), before = at->length;

	if (size == 2 && memcmp(name, "..", 2) == 0) {
		while (at->length && at->path[--at->length] != '/')
			;
	} else if (size && !(size == 1 && *name == '.')) {
		if (before + size + 2 > sizeof(at->path)) {
			errno = ENAMETOOLONG;
			return false;
		}
		at->path[at->length++] = '/';
		memcpy(at->path + at->length, name, size);
		at->path[at->length += size] = '\0';
		return follow(at, before, rest);
	}
	memmove(at->pending, rest, strlen(rest) + 1);
	return true;
}

char *realpath(const char *path, char *resolved)
{
	struct resolution at = { .length = 0 };

	if (!*path || strlen(path) >= sizeof(at.pending)) {
		errno = *path ? ENAMETOOLONG : ENOENT;
		return NULL;
	}
	strcpy(at.pending, path);
	if (*path != '/') {
		if (!getcwd(at.path, sizeof(at.path)))
			return NULL;
		at.length = at.path[1] ? strlen(at.path) : 0;
	}
	while (*at.pending)
		if (!resolve_next(&at))
			return NULL;
	if (!at.length)
		at.path[at.length++] = '/';
	at.path[at.length] = '\0';
	return resolved ? memcpy(resolved, at.path, at.length + 1) : strdup(at.path);
}

/* --- memory ---------------------------------------------------------------------------------------- */

SYSTEM_CALL(void *, mmap, (void *at, size_t size, int rights, int flags, int fd, off_t offset), SYS_mmap, at,
            size, rights, flags, fd, offset)
ALSO(void *, mmap64, mmap, (void *at, size_t size, int rights, int flags, int fd, off64_t offset));
SYSTEM_CALL(int, munmap, (void *at, size_t size), SYS_munmap, at, size)

void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
	va_list more;
	void *to;

	va_start(more, flags);
	to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
	va_end(more);
	return (void *)CALL(SYS_mremap, at, size, new_size, flags, to);
}

SYSTEM_CALL(int, mprotect, (void *at, size_t size, int rights), SYS_mprotect, at, size, rights)
SYSTEM_CALL(int, madvise, (void *at, size_t size, int advice), SYS_madvise, at, size, advice)

/* --- sockets --------------------------------------------------------------------------------------- */

SYSTEM_CALL(int, socket, (int domain, int type, int protocol), SYS_socket, domain, type, protocol)
SYSTEM_CALL(int, connect, (int fd, const struct sockaddr *address, socklen_t size), SYS_connect, fd, address,
            size)
SYSTEM_CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), SYS_sendmsg, fd, message,
            flags)

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };

	return (int)CALL(SYS_ppoll, fds, count, ms < 0 ? NULL : &time, NULL, 0);
}
