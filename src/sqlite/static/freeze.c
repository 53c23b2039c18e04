/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/freeze.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bounded_wait.h"

#define THREADS_MAX 1024
#define CHUNK ((size_t)4096)

/* So much of a thread's stack is looked through, from its newest frame on. */
#define INSPECTED_BYTES ((size_t)256 << 10)

BOUNDED_WAIT_DEFINE(for_stop, "code that is patched: other threads stop", BOUND_MS(200),
                    "nothing, so it looks every 20 us; the kernel stops them");
BOUNDED_WAIT_DEFINE(for_all, "code that is patched: no other thread runs it", BOUND_MS(800),
                    "nothing, so it tries every ms");
#define STOP_PAUSE_NS 20000
#define PAUSE_NS 1000000
#define FORBIDDEN_MAX 10 /* attempts that end so */

struct freeze {
	const struct static_range *ranges;
	size_t count;
	const char *(*change)(void *);
	void *context;
	pid_t process, caller;
	int tasks; /* /proc/self/task */
	pid_t threads[THREADS_MAX];
	size_t threads_count;
	bool is_over; /* trying again is useless */
	int forbidden;
	const char *refused;
	union {
		char entries[CHUNK];
		uintptr_t words[CHUNK / sizeof(uintptr_t)];
	} buffer;
	_Alignas(16) char stack[(size_t)64 << 10];
};

/* The child shares the caller's thread-local memory, and must not use that thread's cancellation
 * state or hooks: it waits by bare system calls, like all of the library. */

/* --- stopping ------------------------------------------------------------------------------- */

static bool is_known(const struct freeze *freeze, pid_t thread)
{
	for (size_t i = 0; i < freeze->threads_count; i++)
		if (freeze->threads[i] == thread)
			return true;
	return thread == freeze->caller;
}

static const char *stop_thread(struct freeze *freeze, const char *name)
{
	pid_t thread = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		thread = thread * 10 + (*name - '0');
	if (!thread || is_known(freeze, thread))
		return NULL;
	if (freeze->threads_count == THREADS_MAX) {
		freeze->is_over = true;
		return "there are too many threads";
	}
	/* Also refused for a thread that is ending: it does not exist the next time. */
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL)) {
		freeze->is_over = ++freeze->forbidden == FORBIDDEN_MAX;
		return "ptrace(), which stops the other threads, is not permitted";
	}
	freeze->threads[freeze->threads_count++] = thread;
	return NULL;
}

static const char *stop_new(struct freeze *freeze)
{
	struct entry {
		uint64_t number, next;
		unsigned short size;
		unsigned char kind;
		char name[];
	};
	const char *why = NULL;
	long size;

	lseek(freeze->tasks, 0, SEEK_SET);
	while (!why && (size = syscall(SYS_getdents64, freeze->tasks, freeze->buffer.entries, CHUNK)) > 0)
		for (long at = 0; !why && at < size;) {
			const struct entry *entry = (const void *)(freeze->buffer.entries + at);

			why = stop_thread(freeze, entry->name);
			at += entry->size;
		}
	return why;
}

/* A thread that has ended is 0 from then on. */
static const char *await(pid_t *thread, struct bounded_wait *wait)
{
	for (;;) {
		int status = 0;
		long got = syscall(SYS_wait4, *thread, &status, __WALL | WNOHANG, NULL);

		if (got < 0 || (got && !WIFSTOPPED(status))) {
			*thread = 0;
			return NULL;
		}
		if (got && status >> 16 == PTRACE_EVENT_STOP)
			return NULL;
		if (got) /* a signal was pending: it comes first */
			ptrace(PTRACE_CONT, *thread, NULL, (void *)(intptr_t)WSTOPSIG(status));
		else if (!bounded_wait_nap(wait, STOP_PAUSE_NS))
			return "a thread does not stop";
	}
}

/* The next pass finds threads that the last of them have started. */
static const char *stop_all(struct freeze *freeze)
{
	struct bounded_wait wait = bounded_wait_begin(&for_stop);
	const char *why;
	size_t before;

	do {
		before = freeze->threads_count;
		why = stop_new(freeze);
		for (size_t i = before; !why && i < freeze->threads_count; i++)
			why = await(&freeze->threads[i], &wait);
	} while (!why && freeze->threads_count > before);
	return why;
}

/* --- where they are ----------------------------------------------------------------------------- */

static bool is_within(const struct freeze *freeze, uintptr_t address)
{
	for (size_t i = 0; i < freeze->count; i++)
		if (static_is_in(&freeze->ranges[i], address))
			return true;
	return false;
}

/* Return addresses, and where signal handlers go back to, are words of the stack. The kernel
 * reads it, as its end is unknown. */
static bool stack_leads_within(struct freeze *freeze, uintptr_t sp)
{
	const uintptr_t end = sp + INSPECTED_BYTES;

	for (uintptr_t at = sp & ~(sizeof(uintptr_t) - 1); at < end;) {
		size_t size = CHUNK - at % CHUNK;
		struct iovec local = { freeze->buffer.words, size }, remote = { (void *)at, size };

		if (process_vm_readv(freeze->process, &local, 1, &remote, 1, 0) != (ssize_t)size)
			break;
		for (size_t i = 0; i < size / sizeof(uintptr_t); i++)
			if (is_within(freeze, freeze->buffer.words[i]))
				return true;
		at += size;
	}
	return false;
}

static bool is_inside(struct freeze *freeze, pid_t thread)
{
	struct user_regs_struct registers;
	struct iovec area = { &registers, sizeof(registers) };

	if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_PRSTATUS, &area))
		return true;
#if defined(__x86_64__)
	return is_within(freeze, registers.rip) || stack_leads_within(freeze, registers.rsp);
#else
	return is_within(freeze, registers.pc) || is_within(freeze, registers.regs[30]) ||
	       stack_leads_within(freeze, registers.sp);
#endif
}

/* --- the child ------------------------------------------------------------------------------------ */

static int work(void *argument)
{
	struct freeze *freeze = argument;

	freeze->refused = stop_all(freeze);
	for (size_t i = 0; !freeze->refused && i < freeze->threads_count; i++)
		if (freeze->threads[i] && is_inside(freeze, freeze->threads[i]))
			freeze->refused = "at each attempt another thread was inside it";
	if (freeze->refused)
		return 0;
	freeze->is_over = true;
	freeze->refused = freeze->change(freeze->context);
	/* No processor continues with instructions that it has fetched before. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	return 0;
}

/* The caller waits inside of clone() until the child has ended. */
static void attempt(struct freeze *freeze)
{
	pid_t child;

	freeze->threads_count = 0;
	freeze->refused = "the child process that stops the other threads cannot be created";
	child = clone(work, freeze->stack + sizeof(freeze->stack),
	              CLONE_VM | CLONE_VFORK | CLONE_FS | CLONE_FILES, freeze);
	freeze->is_over |= child < 0;
	while (child > 0 && syscall(SYS_wait4, child, NULL, __WALL, NULL) < 0 && errno == EINTR)
		;
}

static const char *freeze_with(struct freeze *freeze)
{
	struct bounded_wait wait = bounded_wait_begin(&for_all);
	sigset_t all, before;
	int cancellation;

	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the child must run no handlers */
	do
		attempt(freeze);
	while (!freeze->is_over && bounded_wait_nap(&wait, PAUSE_NS));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancellation, NULL);
	return freeze->refused;
}

const char *freeze_others(const struct static_range *ranges, size_t count, const char *(*change)(void *),
                          void *context)
{
	struct freeze *freeze;
	const char *refused;

	if (syscall(SYS_prctl, PR_GET_SECCOMP, 0ul, 0ul, 0ul, 0ul) > 0)
		return "a seccomp filter may forbid stopping the other threads";
	freeze = calloc(1, sizeof(*freeze));
	if (!freeze)
		return "out of memory";
	freeze->ranges = ranges;
	freeze->count = count;
	freeze->change = change;
	freeze->context = context;
	freeze->process = getpid();
	freeze->caller = (pid_t)syscall(SYS_gettid);
	freeze->tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	refused = freeze->tasks < 0 ? "/proc/self/task cannot be opened" : freeze_with(freeze);
	if (freeze->tasks >= 0)
		close(freeze->tasks);
	free(freeze);
	return refused;
}
