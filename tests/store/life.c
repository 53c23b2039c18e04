/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's start and end: no thread and no file before they are needed, no wake-ups without records, a
 * drain on request, and nothing left at the end.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/ring_layout.h"

#include "support.h"

#include "queryprof.h"
#include "handler/budget.h"
#include "store/control/control.h"
#include "store/control/waiting.h"

#define KEY ((struct query_key){ 7, 7 })

static int count_entries(const char *where, const char *prefix)
{
	DIR *directory = opendir(where);
	struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += *entry->d_name != '.' && !strncmp(entry->d_name, prefix, strlen(prefix));
	closedir(directory);
	return count;
}

/* Returns the flusher's task id, or 0. */
static int find_flusher(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while ((entry = readdir(directory))) {
		char file[300], name[32] = "";
		FILE *comm;

		snprintf(file, sizeof(file), "/proc/self/task/%s/comm", entry->d_name);
		comm = fopen(file, "r");
		if (comm && fgets(name, sizeof(name), comm) && !strcmp(name, "queryprof\n"))
			found = atoi(entry->d_name);
		if (comm)
			fclose(comm);
	}
	closedir(directory);
	return found;
}

static long count_switches(int task)
{
	char file[100], line[200];
	long voluntary = -1;
	FILE *status;

	snprintf(file, sizeof(file), "/proc/self/task/%d/status", task);
	status = fopen(file, "r");
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "voluntary_ctxt_switches: %ld", &voluntary);
	if (status)
		fclose(status);
	return voluntary;
}

static void nothing_before_it_is_needed(void **state)
{
	struct store_config config = { .flush_interval_ns = 1000000 };

	(void)state;
	ring = ring_create(1 << 20);
	assert_int_equal(store_init(ring, &config), 0);
	assert_eventually(!find_flusher()); /* an earlier test's joined thread is listed for a moment */
	/* There is nothing to drain, so nothing starts. */
	drain();
	assert_int_equal(find_flusher(), 0);
	assert_int_equal(count_entries(folder, ""), 0);
	/* The tables can be read, and are empty. */
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 0);
	assert_int_equal(ask("SELECT count(*) FROM query_log"), 0);
	assert_null(store_path());
	store_start();
	assert_eventually(find_flusher() != 0);
	assert_int_equal(count_entries(folder, ""), 0);
	put_samples(T0, 1, 1, KEY);
	drain();
	assert_int_equal(count_entries(folder, "queryprof-"), 1);
	stop_store();
	assert_int_equal(count_entries(folder, ""), 0);
	assert_eventually(!find_flusher()); /* a joined thread is listed for a moment */
}

/* True if the flusher had no wake-up for a second. Its interval is 20 ms. */
static bool slept_for_a_second(int task)
{
	long before = count_switches(task);

	for (int i = 0; i < 100; i++)
		nap();
	return count_switches(task) == before;
}

static void sleeps_while_nothing_comes(void **state)
{
	bool slept = false;
	int task;

	(void)state;
	start_store(NULL, 0);
	put_samples(T0, 100, 2, KEY);
	drain();
	assert_eventually((task = find_flusher()) != 0);
	/* On a busy machine the flusher begins its unlimited sleep late. */
	for (int second = 0; second < 30 && !slept; second++)
		slept = slept_for_a_second(task);
	assert_true(slept);
	/* The next record wakes the flusher. */
	put_samples(T0 + 1000000, 1, 1, KEY);
	assert_eventually(ask("SELECT count(*) FROM trace_log") == 101);
	stop_store();
}

/* Stops a task as a debugger does, for longer than the task's wait. */
static void hold_task(int from, int to)
{
	int task;

	if (read(from, &task, sizeof(task)) != sizeof(task) || ptrace(PTRACE_SEIZE, task, 0, 0) ||
	    ptrace(PTRACE_INTERRUPT, task, 0, 0) || waitpid(task, NULL, __WALL) != task ||
	    write(to, &task, sizeof(task)) != sizeof(task) || read(from, &task, sizeof(task)) != sizeof(task))
		_exit(1);
	usleep(BUDGET_CHECK_NS / 1000 + 100000);
	ptrace(PTRACE_DETACH, task, 0, 0);
	_exit(0);
}

/* True if the flusher waits for more records. Otherwise it may wait for a first record, so this puts one. */
static bool gathers(void)
{
	if (__atomic_load_n((uint32_t *)&ring->sleep, __ATOMIC_RELAXED) == RING_SLEEP_TIMED)
		return true;
	put_samples(T0, 1, 1, KEY);
	return false;
}

/* A late flusher once mistook a request for the end of its own wait, and the request was lost. */
static void requests_reach_a_late_flusher(void **state)
{
	const int64_t interval_ns = flush_interval_ns;
	int there[2], back[2], task, status;
	pid_t other;

	(void)state;
	assert_int_equal(pipe(there) | pipe(back), 0);
	other = fork();
	if (!other) {
		/* The child ends when this process ends. */
		close(there[1]);
		close(back[0]);
		hold_task(there[0], back[1]);
	}
	prctl(PR_SET_PTRACER, other, 0, 0, 0);
	flush_interval_ns = 600000000000;
	start_store(NULL, 0);
	flush_interval_ns = interval_ns;
	put_samples(T0, 1, 1, KEY);
	drain();
	assert_eventually((task = find_flusher()) != 0);
	assert_eventually(gathers());
	assert_int_equal(write(there[1], &task, sizeof(task)), sizeof(task));
	close(back[1]);
	if (read(back[0], &task, sizeof(task)) == sizeof(task)) { /* not if the task is traced already */
		assert_int_equal(write(there[1], &task, sizeof(task)), sizeof(task));
		assert_true(store_drain(20000));
	}
	assert_int_equal(waitpid(other, &status, 0), other);
	close(there[0]);
	close(there[1]);
	close(back[0]);
	stop_store();
}

static void takes_no_signals(void **state)
{
	char file[100], line[200];
	unsigned long long blocked = 0;
	FILE *status;
	int task;

	(void)state;
	start_store(NULL, 0);
	assert_eventually((task = find_flusher()) != 0);
	snprintf(file, sizeof(file), "/proc/self/task/%d/status", task);
	status = fopen(file, "r");
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(status);
	/* All signals except KILL, STOP and the two that libc reserves, which cannot be blocked. */
	assert_int_equal(~blocked & ~(1ull << 8 | 1ull << 18 | 3ull << 31), 0);
	stop_store();
}

static void *put_more(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 50; i++)
		put_samples(T0 + 10000000 + i * 1000000, 100, 3, KEY);
	return NULL;
}

static void drain_means_all_before_it(void **state)
{
	pthread_t other;

	(void)state;
	start_store(NULL, 0);
	/* Another thread keeps writing meanwhile. */
	pthread_create(&other, NULL, put_more, NULL);
	for (uint64_t i = 1; i <= 100; i++) {
		put_samples(T0 + i * 1000, 1, 1, (struct query_key){ 1, 1 });
		drain();
		assert_int_equal(
			ask("SELECT count(*) FROM trace_log WHERE query_id LIKE '00000000-0000-0001%'"), i);
	}
	pthread_join(other, NULL);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 5100);
	stop_store();
}

static void drain_waits_for_a_record_being_written(void **state)
{
	struct sample_record *record;

	(void)state;
	start_store(NULL, 0);
	record = ring_reserve(ring, sizeof(*record));
	*record = (struct sample_record){ .timestamp_ns = T0, .period_ns = 1, .thread_id = 1, .weight = 1 };
	assert_false(store_drain(50));
	ring_commit(ring, record, RECORD_SAMPLE);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 1);
	stop_store();
}

/* Runs `end` in a child with a temporary store; returns how the child ended. */
static int run_child(void (*end)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		start_store(NULL, 0);
		put_samples(T0, 10, 1, KEY);
		if (!store_drain(PATIENCE_MS) || count_entries(folder, "queryprof-") < 1)
			_exit(9);
		end();
		_exit(8);
	}
	waitpid(child, &status, 0);
	return status;
}

static void end_normally(void)
{
	exit(0);
}

static void end_at_once(void)
{
	_exit(0);
}

static void end_by_signal(void)
{
	raise(SIGKILL);
}

static void forked_child_exits(void)
{
	int status;
	pid_t child = fork(); /* without our hooks, as after a raw clone() */

	if (!child)
		exit(0);
	waitpid(child, &status, 0);
	_exit(count_entries(folder, "queryprof-") == 1 && WIFEXITED(status) ? 0 : 7);
}

/* exit() waits for the flusher for two seconds, and a busy machine sometimes needs longer. */
#define ENDS 10

/* Whether a process that ends removes its file, and those that others left. */
static bool end_leaves_nothing(void)
{
	for (int i = 0; i < ENDS; i++) {
		assert_int_equal(run_child(end_normally), 0);
		if (!count_entries(folder, ""))
			return true;
	}
	return false;
}

static void temporary_file_goes_with_the_process(void **state)
{
	(void)state;
	assert_true(end_leaves_nothing());
	/* A child that did not make the file does not remove it. */
	assert_int_equal(run_child(forked_child_exits), 0);
	assert_int_equal(count_entries(folder, "queryprof-"), 1);
	assert_true(end_leaves_nothing());
}

static void left_directories_are_swept(void **state)
{
	struct stat status;
	int lock;

	(void)state;
	assert_int_equal(run_child(end_at_once), 0);
	assert_int_equal(run_child(end_by_signal), SIGKILL);
	/* The second process removed the first one's directory. */
	assert_int_equal(count_entries(folder, "queryprof-"), 1);
	/* A directory in use, and others that only look like queryprof's. */
	mkdir(in_folder("queryprof-inuse1"), 0700);
	lock = open(in_folder("queryprof-inuse1/lock"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	mkdir(in_folder("queryprof-notours"), 0700);
	mkdir(in_folder("precious"), 0700);
	close(open(in_folder("precious/lock"), O_CREAT | O_RDWR, 0600));
	close(open(in_folder("precious/trace.db"), O_CREAT | O_RDWR, 0600));
	assert_int_equal(symlink(in_folder("precious"), in_folder("queryprof-AAAAAA")), 0);

	start_store(NULL, 0);
	put_samples(T0, 1, 1, KEY);
	drain();
	assert_int_equal(count_entries(folder, "queryprof-"), 4);
	assert_int_equal(access(in_folder("queryprof-inuse1/lock"), F_OK), 0);
	assert_int_equal(access(in_folder("precious/trace.db"), F_OK), 0);
	{
		char *path = store_path();

		*strrchr(path, '/') = '\0';
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_mode & 0777, 0700);
		free(path);
	}
	stop_store();
	close(lock);
	assert_int_equal(count_entries(folder, "queryprof-"), 3);
}

/* Returns whether a child's exit() stores its records, and leaves only the file. The file exists already
 * because a loaded machine may not make it in the 2 s that exit() has. */
static bool exit_stores(const char *name)
{
	struct store_config config = { .path = in_folder(name), .flush_interval_ns = 1000000000 };
	const char *count;
	char *error;
	int status;
	pid_t child;

	start_store(config.path, 0);
	assert_int_equal(store_open(&error), 0);
	stop_store();
	child = fork();
	if (!child) {
		ring = ring_create(1 << 20);
		if (store_init(ring, &config))
			_exit(9);
		put_samples(T0, 500, 1, KEY);
		exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	count = ask_file(in_folder(name), "SELECT count(*) FROM trace_log");
	print_message("%s of 500 samples\n", count);
	return !strcmp(count, "500") && count_entries(folder, name) == 1;
}

/* No thread read, and none started the flusher, but exit() stores the records. */
static void exit_stores_what_is_left(void **state)
{
	bool has_stored = false;

	(void)state;
	for (int i = 0; i < ENDS && !has_stored; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d.db", i);
		has_stored = exit_stores(name);
	}
	assert_true(has_stored);
}

static void shutdown_stores_what_is_left(void **state)
{
	(void)state;
	start_store(in_folder("x.db"), 0);
	put_samples(T0, 500, 1, KEY);
	stop_store();
	assert_string_equal(ask_file(in_folder("x.db"), "SELECT count(*) FROM trace_log"), "500");
	/* The one file can be copied as it is. */
	assert_int_equal(count_entries(folder, ""), 1);
	start_store(in_folder("x.db"), 0);
	put_samples(T0 + 1000000, 500, 1, KEY);
	stop_store();
	assert_string_equal(ask_file(in_folder("x.db"), "SELECT count(*) FROM trace_log"), "1000");
	/* Both stores ran in the same process. */
	assert_string_equal(ask_file(in_folder("x.db"), "SELECT count(*) FROM processes"), "1");
}

/* A thread may be stopped while it writes a record. Nobody reads the records after it. */
static void shutdown_counts_what_it_cannot_read(void **state)
{
	(void)state;
	start_store(in_folder("x.db"), 0);
	put_samples(T0, 10, 1, KEY);
	assert_non_null(ring_reserve(ring, sizeof(struct sample_record)));
	put_samples(T0 + 1000000, 5, 1, KEY);
	stop_store();
	assert_string_equal(ask_file(in_folder("x.db"), "SELECT count(*) FROM trace_log"), "10");
	assert_string_equal(ask_file(in_folder("x.db"), "SELECT samples FROM losses"), "6");
}

static void path_is_that_of_the_start(void **state)
{
	char *path;

	(void)state;
	assert_int_equal(chdir(folder), 0);
	start_store("x.db", 0);
	assert_int_equal(chdir("/"), 0);
	put_samples(T0, 5, 1, KEY);
	drain();
	path = store_path();
	assert_string_equal(path, in_folder("x.db"));
	free(path);
	stop_store();
}

BOUNDED_WAIT_DEFINE(of_test, "this test", BOUND_OF_CALLER, "the flusher");

/* Parks the flusher as fork() does. */
static void park_flusher(void)
{
	struct waiting waiting = waiting_begin_ms(&of_test, PATIENCE_MS);

	control_lock();
	store_control.pauses++;
	ring_wake(ring);
	while (store_control.state != STORE_PARKED && control_wait(&waiting))
		ring_wake(ring);
	assert_int_equal(store_control.state, STORE_PARKED);
	control_unlock();
}

static void wake_flusher(void)
{
	control_lock();
	store_control.pauses--;
	condition_change(&store_control.changed);
	control_unlock();
}

/* The caller has timed out, and continues with the earlier settings. */
static void request_in_vain_is_withdrawn(void **state)
{
	struct settings_of_store other = { .path = strdup(in_folder("other.db")) };
	struct waiting waiting = waiting_begin_ms(&of_test, 1);
	char *error = NULL;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 1, 1, KEY);
	drain();
	park_flusher();
	assert_int_equal(control_request(REQUEST_CONFIGURE, &other, &waiting, &error), QP_STORE);
	free(error);
	wake_flusher();
	put_samples(T0 + 1000, 1, 1, KEY);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 2);
	assert_int_not_equal(access(in_folder("other.db"), F_OK), 0);
	stop_store();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(temporary_file_goes_with_the_process),
		TEST(left_directories_are_swept),
		TEST(exit_stores_what_is_left),
		TEST(nothing_before_it_is_needed),
		TEST(sleeps_while_nothing_comes),
		TEST(requests_reach_a_late_flusher),
		TEST(takes_no_signals),
		TEST(drain_means_all_before_it),
		TEST(drain_waits_for_a_record_being_written),
		TEST(shutdown_stores_what_is_left),
		TEST(shutdown_counts_what_it_cannot_read),
		TEST(path_is_that_of_the_start),
		TEST(request_in_vain_is_withdrawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
