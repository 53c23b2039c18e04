/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replacements of these functions: each calls the real one once, with its own arguments, and
 * returns its result and errno.
 *
 * A thread that is cancelled in such a call, or leaves it by a longjmp, leaves only the beginning of
 * a wait in its slot, which the next wait overwrites.
 */
#include "hook/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mutex_words.h"
#include "hook/confine.h"
#include "query/wait.h"

/* musl's headers rename them. Its programs may import them all the same. */
#undef ftruncate64
#undef mmap64
#undef pread64
#undef pwrite64
#undef open64

/* X(result, name, parameters, arguments): functions that are called through and measured. */
#define WAITING_CALLS(X)                                                                                     \
	X(WAIT_CONDITION, int, pthread_cond_wait, (pthread_cond_t * a, pthread_mutex_t * b), (a, b))         \
	X(WAIT_CONDITION, int, pthread_cond_timedwait,                                                       \
	  (pthread_cond_t * a, pthread_mutex_t * b, const struct timespec *c), (a, b, c))                    \
	X(WAIT_CONDITION, int, pthread_cond_clockwait,                                                       \
	  (pthread_cond_t * a, pthread_mutex_t * b, clockid_t c, const struct timespec *d), (a, b, c, d))    \
	X(WAIT_CONDITION, int, sem_wait, (sem_t * a), (a))                                                   \
	X(WAIT_PROCESS, pid_t, wait, (int *a), (a))                                                          \
	X(WAIT_PROCESS, pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))                                 \
	X(WAIT_PROCESS, pid_t, wait4, (pid_t a, int *b, int c, struct rusage *d), (a, b, c, d))              \
	X(WAIT_PROCESS, int, waitid, (idtype_t a, id_t b, siginfo_t * c, int d), (a, b, c, d))               \
	X(WAIT_PROCESS, int, system, (const char *a), (a))                                                   \
	X(WAIT_PROCESS, int, pclose, (FILE * a), (a))                                                        \
	X(WAIT_THREAD, int, pthread_join, (pthread_t a, void **b), (a, b))                                   \
	X(WAIT_NETWORK, int, connect, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))             \
	X(WAIT_NETWORK, int, accept, (int a, struct sockaddr *b, socklen_t *c), (a, b, c))                   \
	X(WAIT_NETWORK, int, accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c, d))

/* The same for usually short calls: X also has the descriptor that is recorded, -1: none. */
#define FILE_CALLS(X)                                                                                        \
	X(WAIT_NETWORK, ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d), a)                   \
	X(WAIT_NETWORK, ssize_t, recvfrom,                                                                   \
	  (int a, void *b, size_t c, int d, struct sockaddr *e, socklen_t *f), (a, b, c, d, e, f), a)        \
	X(WAIT_NETWORK, ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c), a)                    \
	X(WAIT_NETWORK, ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d), a)             \
	X(WAIT_NETWORK, ssize_t, sendto,                                                                     \
	  (int a, const void *b, size_t c, int d, const struct sockaddr *e, socklen_t f),                    \
	  (a, b, c, d, e, f), a)                                                                             \
	X(WAIT_NETWORK, ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c), a)              \
	X(WAIT_FILE, int, ftruncate, (int a, off_t b), (a, b), a)                                            \
	X(WAIT_FILE, int, ftruncate64, (int a, off64_t b), (a, b), a)                                        \
	X(WAIT_FILE, int, close, (int a), (a), -1)                                                           \
	X(WAIT_FILE, int, unlink, (const char *a), (a), -1)                                                  \
	X(WAIT_FILE, void *, mmap, (void *a, size_t b, int c, int d, int e, off_t f), (a, b, c, d, e, f),    \
	  -1)                                                                                                \
	X(WAIT_FILE, void *, mmap64, (void *a, size_t b, int c, int d, int e, off64_t f),                    \
	  (a, b, c, d, e, f), -1)                                                                            \
	X(WAIT_FILE, int, munmap, (void *a, size_t b), (a, b), -1)

/* The same for reads and writes: X has the sum that counts them, which the bytes' follows. */
#define DATA_CALLS(X)                                                                                        \
	X(WAIT_READ, READS, read, (int a, void *b, size_t c), (a, b, c))                                     \
	X(WAIT_READ, READS, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))                        \
	X(WAIT_READ, READS, pread64, (int a, void *b, size_t c, off64_t d), (a, b, c, d))                    \
	X(WAIT_WRITE, WRITES, write, (int a, const void *b, size_t c), (a, b, c))                            \
	X(WAIT_WRITE, WRITES, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))               \
	X(WAIT_WRITE, WRITES, pwrite64, (int a, const void *b, size_t c, off64_t d), (a, b, c, d))

#define SYNC_CALLS(X)                                                                                        \
	X(fsync)                                                                                             \
	X(fdatasync)

#define OPEN_CALLS(X)                                                                                        \
	X(open)                                                                                              \
	X(open64)

#define LOCK_CALLS(X)                                                                                        \
	X(fcntl)                                                                                             \
	X(fcntl64)

static struct {
#define POINTER(cause, result, name, parameters, ...) result(*name) parameters;
	WAITING_CALLS(POINTER)
	FILE_CALLS(POINTER)
#undef POINTER
#define POINTER(cause, sum, name, parameters, ...) ssize_t(*name) parameters;
	DATA_CALLS(POINTER)
#undef POINTER
#define POINTER(name) int (*name)(int);
	SYNC_CALLS(POINTER)
#undef POINTER
#define POINTER(name) int (*name)(const char *, int, ...);
	OPEN_CALLS(POINTER)
#undef POINTER
#define POINTER(name) int (*name)(int, int, ...);
	LOCK_CALLS(POINTER)
#undef POINTER
	int (*pthread_mutex_lock)(pthread_mutex_t *);
	int (*pthread_mutex_trylock)(pthread_mutex_t *); /* NULL: it belongs to another library */
	long (*syscall)(long, long, long, long, long, long, long);
} real;

/* `after`: the code that counts, with the call and its value. */
#define MEASURED(of, result, name, parameters, arguments, file, is_likely, after)                            \
	static result queryprof_##name parameters                                                            \
	{                                                                                                    \
		struct thread *thread = wait_thread();                                                       \
		if (!thread)                                                                                 \
			return real.name arguments;                                                          \
		struct wait_call call;                                                                       \
		wait_begin(&call, thread, of);                                                               \
		result value = real.name arguments;                                                          \
		wait_end_call(&call, file, is_likely);                                                       \
		after;                                                                                       \
		return value;                                                                                \
	}
#define FILED(of, result, name, parameters, arguments, file)                                                 \
	MEASURED(of, result, name, parameters, arguments, file, false, (void)0)
FILE_CALLS(FILED)

#define WAITING(of, result, name, parameters, arguments)                                                     \
	MEASURED(of, result, name, parameters, arguments, -1, true, (void)0)
WAITING_CALLS(WAITING)

#define MOVED(of, sum, name, parameters, arguments)                                                          \
	MEASURED(of, ssize_t, name, parameters, arguments, a, false,                                         \
	         wait_count(&call, WAIT_##sum, value > 0 ? (uint64_t)value : 0))
DATA_CALLS(MOVED)

#define SYNCED(name)                                                                                         \
	MEASURED(WAIT_SYNC, int, name, (int file), (file), file, false,                                      \
	         wait_count_around(thread, WAIT_SYNCS, 0))
SYNC_CALLS(SYNCED)

/* Reads the third argument if the flags require it, like libc. */
#define OPENED(name)                                                                                         \
	static int queryprof_##name(const char *path, int flags, ...)                                        \
	{                                                                                                    \
		struct wait_call call;                                                                       \
		struct thread *thread = wait_thread();                                                       \
		mode_t mode = 0;                                                                             \
		if (flags & (O_CREAT | O_TMPFILE)) {                                                         \
			va_list more;                                                                        \
			va_start(more, flags);                                                               \
			mode = va_arg(more, mode_t);                                                         \
			va_end(more);                                                                        \
		}                                                                                            \
		if (!thread)                                                                                 \
			return real.name(path, flags, mode);                                                 \
		wait_begin(&call, thread, WAIT_FILE);                                                        \
		int value = real.name(path, flags, mode);                                                    \
		wait_end_call(&call, -1, false);                                                             \
		return value;                                                                                \
	}
OPEN_CALLS(OPENED)

/* If a lock was refused in a query: requests its holder from the kernel. By now the lock may be free. */
static __attribute__((noinline)) void find_refuser(int (*real_fcntl)(int, int, ...), int file,
                                                   const struct flock *lock)
{
	struct thread *thread = wait_thread_inside();
	int saved_errno = errno;
	struct flock refusing;

	if (!thread || (errno != EAGAIN && errno != EACCES))
		return;
	refusing = *lock;
	if (!real_fcntl(file, F_GETLK, &refusing) && refusing.l_type != F_UNLCK && refusing.l_pid > 0)
		thread->wait.refused_by = (uint32_t)refusing.l_pid;
	errno = saved_errno;
}

/* Reads a third argument, whatever it may be, like libc. Only two of the commands wait. */
#define LOCKED(name)                                                                                         \
	static int queryprof_##name(int file, int command, ...)                                              \
	{                                                                                                    \
		va_list more;                                                                                \
		va_start(more, command);                                                                     \
		void *argument = va_arg(more, void *);                                                       \
		va_end(more);                                                                                \
		if (command != F_SETLKW && command != F_OFD_SETLKW) {                                        \
			int result = real.name(file, command, argument);                                     \
			if (__builtin_expect(result < 0 && command == F_SETLK, 0))                           \
				find_refuser(real.name, file, argument);                                     \
			return result;                                                                       \
		}                                                                                            \
		struct wait_call call = { .thread = wait_thread() };                                         \
		if (call.thread)                                                                             \
			wait_begin(&call, call.thread, WAIT_LOCK);                                           \
		int value = real.name(file, command, argument);                                              \
		wait_end_call(&call, file, false);                                                           \
		return value;                                                                                \
	}
LOCK_CALLS(LOCKED)

static int try_lock(pthread_mutex_t *mutex)
{
	return real.pthread_mutex_trylock ? real.pthread_mutex_trylock(mutex) : EBUSY;
}

/* The attempt has every result of the real function except two errors, of a thread that already
 * holds it and of one that may not take it: the real function reports those. */
static int lock_measured(pthread_mutex_t *mutex, const void *caller)
{
	struct thread *thread = wait_thread();
	struct wait_call call;
	int result;

	/* The owner of a recursive mutex locks it once more. */
	if (!thread || mutex_owner_id(mutex) == (int)thread->id)
		return real.pthread_mutex_lock(mutex);
	result = try_lock(mutex);
	if (result == 0 || result == EOWNERDEAD)
		return result;
	wait_begin_of(&call, thread, WAIT_MUTEX, caller);
	result = real.pthread_mutex_lock(mutex);
	wait_end_mutex(&call, mutex);
	return result;
}

/* Not inlined, so that the frequent path saves no registers. */
static __attribute__((noinline)) int queryprof_mutex_acquired(pthread_mutex_t *mutex, const void *caller)
{
	wait_lock_outside *lock_outside = wait_thread_inside() ? NULL : wait_get_lock_outside();
	int result;

	if (!lock_outside)
		return lock_measured(mutex, caller);
	result = try_lock(mutex);
	return result == 0 || result == EOWNERDEAD ? result : lock_outside(mutex, caller, lock_measured);
}

/* SQLite locks one for each allocation, so a free one costs a look at its word: a thread that
 * takes it between the look and the lock is not seen. */
static int queryprof_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (__builtin_expect(mutex_lock_word(mutex) == 0, 1))
		return real.pthread_mutex_lock(mutex);
	return queryprof_mutex_acquired(mutex, __builtin_return_address(0));
}

static bool does_wait(long futex_operation)
{
	switch (futex_operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI: return true;
	default: return false;
	}
}

/* All arguments that a system call can have, like libc's. The kernel ignores those that were not given. */
static long queryprof_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct thread *thread;
	struct confining confining;
	struct wait_call call;
	long result;

	if (number == SYS_seccomp || number == SYS_prctl) {
		confining = confine_before_call(number, a, b, c);
		result = real.syscall(number, a, b, c, d, e, f);
		confine_after_call(&confining, result);
		return result;
	}
	if (number != SYS_futex || !does_wait(b) || !(thread = wait_thread()))
		return real.syscall(number, a, b, c, d, e, f);
	wait_begin(&call, thread, WAIT_FUTEX);
	result = real.syscall(number, a, b, c, d, e, f);
	wait_end_call(&call, -1, true);
	return result;
}

/* -------------------------------------------------------------------------- */

/* A preload that replaces the one and not the other is to see each call of the one. */
static void find_trylock(void)
{
	Dl_info lock, try;

	import_hook_of("pthread_mutex_trylock", &real.pthread_mutex_trylock, NULL);
	if (!real.pthread_mutex_lock || !real.pthread_mutex_trylock ||
	    !dladdr(*(void **)&real.pthread_mutex_lock, &lock) ||
	    !dladdr(*(void **)&real.pthread_mutex_trylock, &try) || lock.dli_fbase != try.dli_fbase)
		real.pthread_mutex_trylock = NULL;
}

int calls_hooks(struct import_hook hooks[CALLS_HOOKS_MAX])
{
	int count = 0;

#define HOOK(name) hooks[count++] = import_hook_of(#name, &real.name, (void *)queryprof_##name);
#define HOOK_WAITING(cause, result, name, ...) HOOK(name)
	WAITING_CALLS(HOOK_WAITING)
	FILE_CALLS(HOOK_WAITING)
	DATA_CALLS(HOOK_WAITING)
	SYNC_CALLS(HOOK)
	OPEN_CALLS(HOOK)
	LOCK_CALLS(HOOK)
	HOOK(pthread_mutex_lock)
	hooks[count - 1].spares_family = true;
	find_trylock();
	HOOK(syscall)
	return count;
}
