/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: makes calls of one library fail (libqueryprof.so, or INJECT_LIBRARY), or calls of the program if
 * INJECT_PROGRAM is set. INJECT selects the calls:
 *
 *   INJECT=list:FILE         none; writes the calling places to FILE, one "FUNCTION OFFSET" a line
 *   INJECT=once:OFFSET       the first call from that place in the library
 *   INJECT=always:OFFSET     each call from that place
 *
 * A place is the return address of a call, relative to the start of the library or program. Calls within
 * libc, and calls of other libraries, never fail.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PLACES 4096

static enum { UNKNOWN, NOTHING, LIST, ONCE, ALWAYS } mode;
static uintptr_t wanted;
static _Atomic bool has_failed;
static const char *list;
static bool in_program;
static const char *library = "libqueryprof.so"; /* the beginning of its name */
static _Atomic uintptr_t places[PLACES];

/* This file's syscall() may fail, so this function calls libc's. */
static long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*real)(long number, ...);

	if (!real)
		real = (long (*)(long number, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a, b, c, d, e, f);
}

static void read_environment(void)
{
	const char *text = getenv("INJECT"), *colon = text ? strchr(text, ':') : NULL;
	const char *other = getenv("INJECT_LIBRARY");

	if (other)
		library = other;
	if (!colon)
		mode = NOTHING;
	else if (strncmp(text, "list", 4) == 0)
		mode = LIST;
	else
		mode = strncmp(text, "once", 4) == 0 ? ONCE : ALWAYS;
	list = colon ? colon + 1 : NULL;
	in_program = getenv("INJECT_PROGRAM") != NULL;
	wanted = colon ? strtoull(colon + 1, NULL, 16) : 0;
}

/* Appends the line immediately, because the process may end in any way. */
static void note(const char *function, uintptr_t place)
{
	char line[100];
	int size = snprintf(line, sizeof(line), "%s %zx\n", function, (size_t)place);

	for (size_t i = place % PLACES, tries = 0; tries < PLACES; i = (i + 1) % PLACES, tries++) {
		uintptr_t none = 0;

		if (atomic_load(&places[i]) == place)
			return;
		if (atomic_compare_exchange_strong(&places[i], &none, place))
			break;
		if (none == place)
			return;
	}
	long fd = raw_call(SYS_openat, (long)AT_FDCWD, (long)list,
	                   (long)O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, (long)0600, 0, 0);
	if (fd >= 0) {
		raw_call(SYS_write, (long)fd, (long)line, (long)size, 0, 0, 0);
		raw_call(SYS_close, (long)fd, 0, 0, 0, 0, 0);
	}
}

/* Returns whether the call that returns to `address` must fail. */
static bool fails(const char *function, void *address)
{
	struct dl_find_object found;
	const char *name, *slash;
	uintptr_t place;
	int error = errno;

	if (mode == UNKNOWN)
		read_environment();
	if (mode == NOTHING || _dl_find_object(address, &found))
		return false;
	name = found.dlfo_link_map->l_name; /* empty for the program */
	slash = strrchr(name, '/');
	if (in_program ? *name != '\0' : !slash || strncmp(slash + 1, library, strlen(library)) != 0)
		return false;
	place = (uintptr_t)address - found.dlfo_link_map->l_addr;
	if (mode == LIST)
		note(function, place);
	errno = error;
	return mode > LIST && place == wanted && (!atomic_exchange(&has_failed, true) || mode == ALWAYS);
}

/* Called by own_memory.c. */
__attribute__((visibility("default"))) bool inject_fails(const char *function, void *address);

bool inject_fails(const char *function, void *address)
{
	return fails(function, address);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(name, number, result)                                                                           \
	do {                                                                                                 \
		if (fails(#name, __builtin_return_address(0))) {                                             \
			errno = number;                                                                      \
			return result;                                                                       \
		}                                                                                            \
	} while (0)

/* glibc's own names for these functions. dlsym() may allocate, so it cannot find them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
	FAIL(malloc, ENOMEM, NULL);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	FAIL(calloc, ENOMEM, NULL);
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	FAIL(realloc, ENOMEM, NULL);
	return __libc_realloc(memory, size);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;

	FAIL(strdup, ENOMEM, NULL);
	void *copy = __libc_malloc(size);
	return copy ? memcpy(copy, text, size) : NULL;
}

void *reallocarray(void *memory, size_t count, size_t size)
{
	FAIL(reallocarray, ENOMEM, NULL);
	return REAL(reallocarray)(memory, count, size);
}

char *strndup(const char *text, size_t most)
{
	FAIL(strndup, ENOMEM, NULL);
	return REAL(strndup)(text, most);
}

int vasprintf(char **text, const char *format, va_list arguments)
{
	FAIL(vasprintf, ENOMEM, -1);
	return REAL(vasprintf)(text, format, arguments);
}

int asprintf(char **text, const char *format, ...)
{
	va_list arguments;
	int size;

	FAIL(asprintf, ENOMEM, -1);
	va_start(arguments, format);
	size = REAL(vasprintf)(text, format, arguments);
	va_end(arguments);
	return size;
}

/* Optimized code calls this for getdelim() and getline(). */
ssize_t __getdelim(char **line, size_t *size, int delimiter, FILE *file)
{
	FAIL(__getdelim, ENOMEM, -1);
	return REAL(__getdelim)(line, size, delimiter, file);
}

FILE *open_memstream(char **text, size_t *size)
{
	FAIL(open_memstream, ENOMEM, NULL);
	return REAL(open_memstream)(text, size);
}

void *mmap(void *at, size_t size, int rights, int flags, int fd, off_t offset)
{
	FAIL(mmap, ENOMEM, MAP_FAILED);
	return (void *)raw_call(SYS_mmap, (long)at, (long)size, (long)rights, (long)flags, (long)fd,
	                        (long)offset);
}

void *mmap64(void *at, size_t size, int rights, int flags, int fd, off_t offset)
{
	FAIL(mmap64, ENOMEM, MAP_FAILED);
	return (void *)raw_call(SYS_mmap, (long)at, (long)size, (long)rights, (long)flags, (long)fd,
	                        (long)offset);
}

void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
	va_list arguments;
	void *to;

	va_start(arguments, flags);
	to = va_arg(arguments, void *);
	va_end(arguments);
	FAIL(mremap, ENOMEM, MAP_FAILED);
	return (void *)raw_call(SYS_mremap, (long)at, (long)size, (long)new_size, (long)flags, (long)to, 0);
}

int mprotect(void *at, size_t size, int rights)
{
	FAIL(mprotect, ENOMEM, -1);
	return (int)raw_call(SYS_mprotect, (long)at, (long)size, (long)rights, 0, 0, 0);
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t rights;

	va_start(arguments, flags);
	rights = va_arg(arguments, mode_t);
	va_end(arguments);
	FAIL(open, EMFILE, -1);
	return (int)raw_call(SYS_openat, (long)AT_FDCWD, (long)path, (long)flags, (long)rights, 0, 0);
}

int open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t rights;

	va_start(arguments, flags);
	rights = va_arg(arguments, mode_t);
	va_end(arguments);
	FAIL(open64, EMFILE, -1);
	return (int)raw_call(SYS_openat, (long)AT_FDCWD, (long)path, (long)flags, (long)rights, 0, 0);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t rights;

	va_start(arguments, flags);
	rights = va_arg(arguments, mode_t);
	va_end(arguments);
	FAIL(openat, EMFILE, -1);
	return (int)raw_call(SYS_openat, (long)folder, (long)path, (long)flags, (long)rights, 0, 0);
}

DIR *opendir(const char *path)
{
	FAIL(opendir, EMFILE, NULL);
	return REAL(opendir)(path);
}

FILE *fopen(const char *path, const char *how)
{
	FAIL(fopen, EMFILE, NULL);
	return REAL(fopen)(path, how);
}

FILE *fopen64(const char *path, const char *how)
{
	FAIL(fopen64, EMFILE, NULL);
	return REAL(fopen64)(path, how);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	FAIL(write, ENOSPC, -1);
	return raw_call(SYS_write, (long)fd, (long)bytes, (long)size, 0, 0, 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	FAIL(writev, ENOSPC, -1);
	return raw_call(SYS_writev, (long)fd, (long)parts, (long)count, 0, 0, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	FAIL(pwrite, ENOSPC, -1);
	return raw_call(SYS_pwrite64, (long)fd, (long)bytes, (long)size, (long)offset, 0, 0);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
	FAIL(pwrite64, ENOSPC, -1);
	return raw_call(SYS_pwrite64, (long)fd, (long)bytes, (long)size, (long)offset, 0, 0);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	FAIL(pread, EIO, -1);
	return raw_call(SYS_pread64, (long)fd, (long)bytes, (long)size, (long)offset, 0, 0);
}

ssize_t pread64(int fd, void *bytes, size_t size, off_t offset)
{
	FAIL(pread64, EIO, -1);
	return raw_call(SYS_pread64, (long)fd, (long)bytes, (long)size, (long)offset, 0, 0);
}

int ftruncate(int fd, off_t size)
{
	FAIL(ftruncate, EFBIG, -1);
	return (int)raw_call(SYS_ftruncate, (long)fd, (long)size, 0, 0, 0, 0);
}

int ftruncate64(int fd, off_t size)
{
	FAIL(ftruncate64, EFBIG, -1);
	return (int)raw_call(SYS_ftruncate, (long)fd, (long)size, 0, 0, 0, 0);
}

int fdatasync(int fd)
{
	FAIL(fdatasync, EIO, -1);
	return (int)raw_call(SYS_fdatasync, (long)fd, 0, 0, 0, 0, 0);
}

int socket(int domain, int type, int protocol)
{
	FAIL(socket, EMFILE, -1);
	return (int)raw_call(SYS_socket, (long)domain, (long)type, (long)protocol, 0, 0, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	FAIL(sendmsg, ENOBUFS, -1);
	return raw_call(SYS_sendmsg, (long)fd, (long)message, (long)flags, 0, 0, 0);
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *value))
{
	FAIL(pthread_key_create, EAGAIN, EAGAIN);
	return REAL(pthread_key_create)(key, destroy);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	FAIL(pthread_create, EAGAIN, EAGAIN);
	return REAL(pthread_create)(thread, attributes, run, argument);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	FAIL(sigaction, EINVAL, -1);
	return REAL(sigaction)(number, action, before);
}

/* The library makes timers by syscall(), and calls functions by it that older C libraries lack. */
long syscall_of_libc(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long syscall_of_libc(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_timer_create: FAIL(timer_create, EAGAIN, -1); break;
	case SYS_timer_settime: FAIL(timer_settime, EINVAL, -1); break;
	case SYS_close_range: FAIL(close_range, ENOSYS, -1); break;
	case SYS_epoll_create1: FAIL(epoll_create1, EMFILE, -1); break;
	case SYS_pidfd_open: FAIL(pidfd_open, EMFILE, -1); break;
	default: break;
	}
	return raw_call(number, (long)a, (long)b, (long)c, (long)d, (long)e, (long)f);
}

int unshare(int flags)
{
	FAIL(unshare, EPERM, -1);
	return (int)raw_call(SYS_unshare, (long)flags, 0, 0, 0, 0, 0);
}

int memfd_create(const char *name, unsigned flags)
{
	FAIL(memfd_create, EMFILE, -1);
	return (int)raw_call(SYS_memfd_create, (long)name, (long)flags, 0, 0, 0, 0);
}

void *dlopen(const char *name, int flags)
{
	FAIL(dlopen, ENOMEM, NULL);
	return REAL(dlopen)(name, flags);
}
