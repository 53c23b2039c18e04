/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/limits.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The kernel limits it. SQLite counts its memory only with SQLITE_CONFIG_MEMSTATUS, which costs each
 * allocation a lock, and most memory of a command is not SQLite's. RLIMIT_DATA, not RLIMIT_AS, because mapped
 * files are harmless. Not with sanitizers, which need much memory. */
static struct rlimit before;
static bool is_set;

void memory_limit_set(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (pages <= 0 || size <= 0 || getrlimit(RLIMIT_DATA, &before) != 0)
		return;
	limit = (struct rlimit){ (rlim_t)pages / 2 * (rlim_t)size, before.rlim_max };
	if (limit.rlim_cur < before.rlim_cur)
		is_set = setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
}

void memory_limit_lift(void)
{
	if (is_set)
		setrlimit(RLIMIT_DATA, &before);
}

#define LARGE_PAGE (UINT64_C(2) << 20)
#define HEAP_BYTES (256 << 20) /* of addresses; memory is used when it is written */
#define STEP_BYTES (1 << 20)   /* by which it grows after that */
#define BLOCK_BYTES (32 << 20) /* larger ones are mapped separately, so growing does not copy them */

void large_pages_use(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	mallopt(M_ARENA_MAX, 1); /* the helper thread's tables, too */
	mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	/* The heap grows to its size in one step, because the kernel does not extend a range with large
	 * pages. If it refuses, the heap grows in small steps as usual. */
	const uintptr_t first = ((uintptr_t)sbrk(0) + LARGE_PAGE - 1) & -LARGE_PAGE;

	mallopt(M_TOP_PAD, HEAP_BYTES);
	void *volatile block = malloc(LARGE_PAGE); /* volatile: the compiler keeps the call */
	free(block);
	mallopt(M_TOP_PAD, STEP_BYTES);
	const uintptr_t end = (uintptr_t)sbrk(0) & -LARGE_PAGE;

	if (first < end)
		madvise((void *)first, end - first, MADV_HUGEPAGE);
#endif
}

#define STACK_BYTES (8u << 20)

void heap_share(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TOP_PAD, STEP_BYTES);
	mallopt(M_TRIM_THRESHOLD, 4 * STEP_BYTES);
}

struct call {
	int (*run)(int argc, char **argv);
	int argc, result;
	char **argv;
	sigset_t blocked;
};

static void *run_on_thread(void *context)
{
	struct call *call = context;

	pthread_sigmask(SIG_SETMASK, &call->blocked, NULL);
	call->result = call->run(call->argc, call->argv);
	return NULL;
}

int stack_limit_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct call call = { .run = run, .argc = argc, .argv = argv };
	struct rlimit limit;
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	int error;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES)
		return run(argc, argv);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
	/* The new thread handles signals; this one only waits. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &call.blocked);
	error = pthread_create(&thread, NULL, run_on_thread, &call);
	if (!error)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &call.blocked, NULL);
	return error ? run(argc, argv) : call.result;
}

void file_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
