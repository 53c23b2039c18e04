/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program forks while another of its threads is inside of the loader. That thread is not in the child,
 * whose loader's lock nobody gives back: a child that only ends, or calls exec, must not ask for it.
 */
#include "host.h"

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
	while (sem_wait(&is_over)) /* signals */
		;
	return 1;
}

static void *be_inside(void *unused)
{
	dl_iterate_phdr(stay, NULL);
	return unused;
}

/* Its status; killed where it does not end. */
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

/* In a query, and outside. */
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_child_of_a_thread_in_the_loader) };

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
