/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload like those of other tools: its own malloc, fstat, open, read, clock_gettime and
 * pthread_mutex_lock, which do something in addition to their work. The environment selects it:
 *
 *   PRELOAD_ACTION  write: to the standard output and error, and to descriptors 3 to 64 except pipes
 *                   lock:  each call holds one mutex, or takes it first if the call may wait
 *                   fork:  makes a child that ends immediately, and waits for it
 *                   exit:  exit(0), once, at a call after the host has tried to open PRELOAD_BEGIN
 *                   thread: abort() if a thread ends after this file's destructor
 *   PRELOAD_IN      the functions, with any separator
 *   PRELOAD_EACH    acts at every Nth call
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define BEGIN "/preloads/begin"
#define MARK "<preload>"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

enum { MALLOC = 1, FSTAT = 2, OPEN = 4, READ = 8, CLOCK = 16, MUTEX = 32 };
/*
 * These functions may wait for another thread of the host, which must not need our mutex meanwhile. Python
 * takes a mutex while it holds the GIL's mutex, and hung even without queryprof.
 */
enum { WAITING = OPEN | READ | MUTEX };
static const struct {
	const char *name;
	unsigned bit;
} functions[] = { { "malloc", MALLOC }, { "fstat", FSTAT },         { "open", OPEN },
	          { "read", READ },     { "clock_gettime", CLOCK }, { "pthread_mutex_lock", MUTEX } };

static unsigned chosen, each = 1, calls;
static char action;
static bool has_begun;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int (*real_lock)(pthread_mutex_t *);
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static pthread_key_t end_of_thread;
static bool is_over; /* atomic */

static void choose(void)
{
	const char *what = getenv("PRELOAD_ACTION"), *in = getenv("PRELOAD_IN"),
		   *every = getenv("PRELOAD_EACH");

	inside = true;
	*(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	*(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
	inside = false;
	for (size_t i = 0; in && i < sizeof(functions) / sizeof(*functions); i++)
		if (strstr(in, functions[i].name))
			chosen |= functions[i].bit;
	if (every && atoi(every) > 0)
		each = (unsigned)atoi(every);
	if (what)
		action = *what;
}

static void thread_ends(void *value)
{
	(void)value;
	if (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
		abort();
}

__attribute__((constructor)) static void start(void)
{
	choose();
	if (action == 't')
		pthread_key_create(&end_of_thread, thread_ends);
}

__attribute__((destructor)) static void end(void)
{
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
}

/* A host may read pointers from its own pipe. node does so for signals, and crashed even without
 * queryprof. */
static bool is_pipe(int fd)
{
	struct stat status;

	return syscall(SYS_fstat, fd, &status) || S_ISFIFO(status.st_mode);
}

static void write_everywhere(void)
{
	for (int fd = 1; fd <= 64; fd++)
		if (fd <= 2 || !is_pipe(fd))
			(void)!syscall(SYS_write, fd, MARK, strlen(MARK));
}

static void make_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Returns whether the caller must call leave(). */
static bool enter(unsigned function)
{
	int error = errno;
	bool due;

	if (!(chosen & function) || inside)
		return false;
	inside = true;
	if (action == 'l') {
		if (function == MUTEX) /* avoids its own replacement */
			real_lock(&mutex);
		else
			pthread_mutex_lock(&mutex);
		if (!(function & WAITING)) {
			errno = error;
			return true;
		}
		pthread_mutex_unlock(&mutex);
	}
	due = (action != 'e' || has_begun) && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % each == 0;
	if (due && action == 'w')
		write_everywhere();
	if (due && action == 'f')
		make_child();
	if (due && action == 'e') {
		has_begun = false;
		exit(0);
	}
	inside = false;
	errno = error;
	return false;
}

static void leave(bool entered)
{
	int error = errno;

	if (!entered)
		return;
	pthread_mutex_unlock(&mutex);
	inside = false;
	errno = error;
}

#define THROUGH(function, type, call)                                                                        \
	bool entered = enter(function);                                                                      \
	type result = call;                                                                                  \
	leave(entered);                                                                                      \
	return result

PUBLIC void *malloc(size_t size)
{
	THROUGH(MALLOC, void *, __libc_malloc(size));
}

PUBLIC void *calloc(size_t count, size_t size)
{
	THROUGH(MALLOC, void *, __libc_calloc(count, size));
}

PUBLIC void *realloc(void *old, size_t size)
{
	THROUGH(MALLOC, void *, __libc_realloc(old, size));
}

PUBLIC int fstat(int fd, struct stat *status)
{
	THROUGH(FSTAT, int, (int)syscall(SYS_fstat, fd, status));
}

PUBLIC int fstat64(int fd, struct stat64 *status)
{
	THROUGH(FSTAT, int, (int)syscall(SYS_fstat, fd, status));
}

static int open_file(const char *path, int flags, mode_t mode)
{
	if (path && !strcmp(path, BEGIN))
		has_begun = true;
	THROUGH(OPEN, int, (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

#define OPENS(name)                                                                                          \
	PUBLIC int name(const char *path, int flags, ...)                                                    \
	{                                                                                                    \
		va_list more;                                                                                \
		va_start(more, flags);                                                                       \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                      \
		va_end(more);                                                                                \
		return open_file(path, flags, mode);                                                         \
	}
OPENS(open)
OPENS(open64)

PUBLIC ssize_t read(int fd, void *to, size_t size)
{
	THROUGH(READ, ssize_t, syscall(SYS_read, fd, to, size));
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *now)
{
	THROUGH(CLOCK, int, (int)syscall(SYS_clock_gettime, clock, now));
}

PUBLIC int pthread_mutex_lock(pthread_mutex_t *of_host)
{
	if (!real_lock)
		choose();
	THROUGH(MUTEX, int, real_lock(of_host));
}

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	pthread_setspecific(end_of_thread, &end_of_thread);
	return start.function(start.argument);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
	struct start *start = action == 't' ? malloc(sizeof(*start)) : NULL;

	if (!start)
		return real_create(thread, attributes, function, argument);
	*start = (struct start){ function, argument };
	return real_create(thread, attributes, start_thread, start);
}
