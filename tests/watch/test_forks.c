/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program forks while another of its threads is inside the loader or malloc(). That thread does not exist
 * in the child, so nothing releases the loader's lock there. Only an allocator that handles forks releases
 * its own. A child that only ends or calls exec() must not request these locks.
 */
#include "host.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t is_inside, is_over;

static int stay(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)info, (void)size, (void)context;
	sem_post(&is_inside);
	while (sem_wait(&is_over)) /* signals interrupt it */
		;
	return 1;
}

static void *be_inside(void *unused)
{
	dl_iterate_phdr(stay, NULL);
	return unused;
}

/* Returns the child's status. Kills the child if it does not end. */
static int wait_for(pid_t child)
{
	const struct timespec pause = { 0, 10000000 };
	int status = -1;

	for (int i = 0; i < 6000; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return status;
}

static int fork_inside(void *db, int count, char **values, char **names)
{
	pthread_t thread;
	pid_t child;

	(void)db, (void)count, (void)values, (void)names;
	sem_init(&is_inside, 0, 0);
	sem_init(&is_over, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, be_inside, NULL), 0);
	while (sem_wait(&is_inside))
		;
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(wait_for(child), 0);
	sem_post(&is_over);
	pthread_join(thread, NULL);
	return 0;
}

/* --- the child's calls of the allocator -------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__ /* its allocator cannot be replaced */

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size), *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

static volatile pid_t parent; /* set during a fork */
static void *volatile callers[64];
static volatile int calls;

static void note(void *caller)
{
	pid_t from = parent; /* read once: the parent's other threads call this while it is reset */

	if (from && getpid() != from && calls < (int)(sizeof(callers) / sizeof(*callers)))
		callers[calls++] = caller;
}

#define NOTED(type, name, parameters, ...)                                                                   \
	type name parameters;                                                                                \
	__attribute__((visibility("default"))) type name parameters                                          \
	{                                                                                                    \
		note(__builtin_return_address(0));                                                           \
		return __VA_ARGS__;                                                                          \
	}

NOTED(void *, malloc, (size_t size), __libc_malloc(size))
NOTED(void *, calloc, (size_t count, size_t size), __libc_calloc(count, size))
NOTED(void *, realloc, (void *memory, size_t size), __libc_realloc(memory, size))
NOTED(void *, aligned_alloc, (size_t alignment, size_t size), __libc_memalign(alignment, size))
NOTED(void, free, (void *memory), __libc_free(memory))

static int fork_watched(void *db, int count, char **values, char **names)
{
	pid_t child;

	(void)db, (void)count, (void)values, (void)names;
	parent = getpid();
	child = fork();
	parent = 0;
	if (!child) {
		for (int i = 0; i < calls; i++) {
			Dl_info info = { .dli_fname = "?" };
			dladdr(callers[i], &info);
			print_error("the child called the allocator at %s+0x%zx\n", info.dli_fname,
			            (size_t)((char *)callers[i] - (char *)info.dli_fbase));
		}
		_exit(calls != 0);
	}
	assert_int_equal(wait_for(child), 0);
	return 0;
}

static void test_child_takes_no_memory(void **state)
{
	sqlite3 *db = host_open("memory");

	(void)state;
	host_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2); SELECT count(*) FROM t");
	assert_int_equal(sqlite3_exec(db, "SELECT 1", fork_watched, db, NULL), SQLITE_OK);
	fork_watched(db, 0, NULL, NULL);
	sqlite3_close(db);
	fork_watched(NULL, 0, NULL, NULL);
}

#endif

/* Forks inside a query and outside. */
static void test_child_of_a_thread_in_the_loader(void **state)
{
	sqlite3 *db = host_open("");

	(void)state;
	assert_int_equal(sqlite3_exec(db, "SELECT 1", fork_inside, db, NULL), SQLITE_OK);
	fork_inside(db, 0, NULL, NULL);
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_of_a_thread_in_the_loader),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_child_takes_no_memory),
#endif
	};

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
