/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's copy of SQLite opens the same file in the same process. Closing it must neither break
 * queryprof's locks nor remove its log. Also a host that closes descriptors that it does not own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queryprof.h"
#include "support.h"

#define KEY ((struct query_key){ 7, 7 })

static struct {
	int (*open)(const char *, void **);
	int (*exec)(void *, const char *, void *, void *, char **);
	int (*close)(void *);
} host;

static int find_library(void **state)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

	set_up(state);
	if (!library)
		return 1;
	*(void **)&host.open = dlsym(library, "sqlite3_open");
	*(void **)&host.exec = dlsym(library, "sqlite3_exec");
	*(void **)&host.close = dlsym(library, "sqlite3_close");
	return 0;
}

static void host_reads_and_closes(void **state)
{
	struct stat before, after;
	char log[200];

	(void)state;
	snprintf(log, sizeof(log), "%s-wal", trace_path);
	start_store(trace_path, 0);
	for (uint64_t i = 0; i < 20; i++) {
		void *db;

		put_samples(T0 + i * 1000000, 1000, 5, KEY);
		drain();
		assert_int_equal(stat(log, &before), 0);
		assert_int_equal(host.open(trace_path, &db), 0);
		assert_int_equal(host.exec(db, "SELECT count(*) FROM trace_log", NULL, NULL, NULL), 0);
		assert_int_equal(host.close(db), 0);
		/* A connection that believes it is the last user removes the log. */
		assert_int_equal(stat(log, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(atoll(ask_file(trace_path, "SELECT count(*) FROM samples")),
		                 (int64_t)(i + 1) * 1000);
	}
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 20000);
	stop_store();
	assert_intact(trace_path);
}

/* The host's writes and the store's writes exclude each other, although both are in one process. */
static void host_locks_count(void **state)
{
	uint64_t stored;
	void *db;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 10, 5, KEY);
	drain();
	stored = store_counter(STORE_SAMPLES);
	assert_int_equal(host.open(trace_path, &db), 0);
	assert_int_equal(host.exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), 0);
	put_samples(T0 + 1000000, 10, 5, KEY);
	assert_false(store_drain(200));
	assert_int_equal(store_counter(STORE_SAMPLES), stored);
	assert_int_equal(host.exec(db, "ROLLBACK", NULL, NULL, NULL), 0);
	drain();
	assert_int_equal(store_counter(STORE_SAMPLES), stored + 10);
	host.close(db);
	stop_store();
	assert_intact(trace_path);
}

/* Uses bare system calls: the test closes descriptors that another thread uses, which ThreadSanitizer would
 * report. */
static void open_in_their_place(const char *mine)
{
	for (int i = 0; i < 400; i++)
		syscall(SYS_openat, AT_FDCWD, mine, O_RDWR | O_CREAT, 0600);
}

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		syscall(SYS_close, fd);
}

/* System calls that the kernel refuses, as older kernels and sandboxes do. The tests run in a child because a
 * filter is permanent, and because they close the test's own files, too. */
enum refused { REFUSED_NONE, REFUSED_CLOSE_RANGE, REFUSED_BOTH, REFUSED_NUMBERS };

static bool refuse(enum refused refused)
{
	static const unsigned calls[][2] = {
		[REFUSED_CLOSE_RANGE] = { SYS_close_range, SYS_close_range },
		[REFUSED_BOTH] = { SYS_close_range, SYS_unshare },
		[REFUSED_NUMBERS] = { SYS_epoll_create1, SYS_epoll_create1 },
	};
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[refused][0], 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[refused][1], 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return refused == REFUSED_NONE || (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	                                   !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
	                                   syscall(calls[refused][0], 5000, 5000, 0) && errno == EPERM);
}

/* Returns -1 on an error because a child cannot fail the test. */
static int64_t count_read(void)
{
	char *error;
	struct store_cursor *cursor = store_select("SELECT count(*) FROM trace_log", NULL, &error);
	int64_t count = cursor && store_step(cursor) == 1 ? store_column_int64(cursor, 0) : -1;

	store_close(cursor);
	return count;
}

static int close_descriptors(const char *mine)
{
	start_store(trace_path, 0);
	put_samples(T0, 1000, 5, KEY);
	drain();
	close_all();
	open_in_their_place(mine);
	put_samples(T0 + 10000000, 50000, 5, KEY);
	if (!store_drain(PATIENCE_MS))
		return 1;
	if (store_counter(STORE_SAMPLES) != 51000 || store_counter(STORE_ERRORS) || has_error())
		return 2;
	if (count_read() != 51000)
		return 3;
	stop_store();
	return 0;
}

/* The store's descriptor table must not keep the host's descriptors open. Otherwise the reader of a pipe
 * would wait for ever. */
static int close_a_pipe(const char *mine)
{
	int ends[2];
	char byte;

	open_in_their_place(mine);
	if (pipe2(ends, O_NONBLOCK))
		return 1;
	start_store(trace_path, 0);
	put_samples(T0, 1000, 5, KEY);
	if (!store_drain(PATIENCE_MS) || count_read() != 1000)
		return 2;
	close(ends[1]);
	if (read(ends[0], &byte, 1))
		return 3;
	stop_store();
	return 0;
}

struct closer {
	const char *mine;
	int stop, rounds;
};

static void *keep_closing(void *context)
{
	struct closer *closer = context;

	while (!__atomic_load_n(&closer->stop, __ATOMIC_RELAXED)) {
		close_all();
		open_in_their_place(closer->mine);
		__atomic_fetch_add(&closer->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Two threads close all descriptors without a pause while the store makes, writes and reads its file. The
 * store has its own descriptor table, so it notices nothing. */
static int close_without_pause(const char *mine)
{
	struct closer closers[2] = { { .mine = mine }, { .mine = mine } };
	pthread_t threads[2];
	uint64_t put = 0;
	int64_t read = 0;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, keep_closing, &closers[i]))
			return 1;
	start_store(trace_path, 0);
	for (int i = 0; i < 50; i++) {
		put_samples(T0 + put * 1000, 1000, 5, KEY);
		put += 1000;
		if (!store_drain(PATIENCE_MS))
			return 2;
		read = count_read();
		if (read != (int64_t)put)
			break;
	}
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&closers[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(threads[i], NULL);
	}
	fprintf(stderr, "%llu samples in %d and %d rounds: %llu stored, %lld read, %llu errors\n",
	        (unsigned long long)put, closers[0].rounds, closers[1].rounds,
	        (unsigned long long)store_counter(STORE_SAMPLES), (long long)read,
	        (unsigned long long)store_counter(STORE_ERRORS));
	if (store_counter(STORE_SAMPLES) != put || store_counter(STORE_ERRORS) || has_error() ||
	    read != (int64_t)put)
		return 3;
	stop_store();
	return 0;
}

/* Without its own table, the store opens no file. It stores in memory, can be read, and reports the
 * reason. */
static int store_without_table(const char *mine)
{
	struct store_config elsewhere = { .path = strdup(in_folder("elsewhere.db")) };
	struct stat status;
	char *error;
	int code;

	start_store(trace_path, 0);
	put_samples(T0, 1000, 5, KEY);
	if (!store_drain(PATIENCE_MS))
		return 1;
	close_all();
	open_in_their_place(mine);
	put_samples(T0 + 10000000, 50000, 5, KEY);
	if (!store_drain(PATIENCE_MS) || store_counter(STORE_SAMPLES) != 51000 || count_read() != 51000)
		return 2;
	error = store_error();
	if (!error || !strstr(error, "in memory") || !strstr(error, strerror(EPERM)))
		return 3;
	if (store_path() || !stat(trace_path, &status))
		return 4;
	error = NULL;
	if (store_open(&error) != QP_STORE || !error || !strstr(error, "in memory"))
		return 5;
	code = store_configure(&elsewhere, &error);
	if (code != QP_STORE || !strstr(error, "in memory") || !stat(elsewhere.path, &status))
		return 6;
	store_before_fork();
	if (!fork()) {
		store_after_fork_child();
		store_start();
		put_samples(T0, 10, 5, KEY);
		_exit(!store_drain(PATIENCE_MS) || count_read() != 10);
	}
	store_after_fork_parent();
	if (wait(&code) < 0 || code)
		return 7;
	put_samples(T0 + 900000000, 10, 5, KEY);
	if (!store_drain(PATIENCE_MS) || count_read() != 51010)
		return 8;
	stop_store();
	return 0;
}

/* Runs a host that closes all descriptors, as daemons do. Before the store's next write, the closed numbers
 * belong to the host's own files. */
static void check_closing(enum refused refused, int (*host_that_closes)(const char *mine))
{
	char *mine = strdup(in_folder("mine"));
	struct stat status;
	int ended;
	pid_t child = fork();

	if (!child)
		_exit(!refuse(refused) ? 77 : host_that_closes(mine));
	waitpid(child, &ended, 0);
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == 77) {
		free(mine);
		skip(); /* no filters here */
	}
	assert_int_equal(ended, 0);
	assert_int_equal(stat(mine, &status), 0);
	assert_int_equal(status.st_size, 0);
	free(mine);
}

static void assert_stored(const char *count)
{
	assert_intact(trace_path);
	assert_string_equal(ask_file(trace_path, "SELECT count(*) FROM samples"), count);
}

static void need_own_table(void)
{
	struct utsname system;
	int major, minor;

	if (uname(&system) || sscanf(system.release, "%d.%d", &major, &minor) != 2 ||
	    major * 100 + minor < 509)
		skip();
}

static void host_closes_our_descriptors(void **state)
{
	(void)state;
	need_own_table();
	check_closing(REFUSED_NONE, close_descriptors);
	assert_stored("51000");
}

static void host_closes_them_without_a_pause(void **state)
{
	(void)state;
	need_own_table();
	check_closing(REFUSED_NONE, close_without_pause);
	assert_stored("50000");
}

static void table_is_copied_where_it_cannot_be_made_empty(void **state)
{
	(void)state;
	check_closing(REFUSED_CLOSE_RANGE, close_without_pause);
	assert_stored("50000");
}

static void host_closes_a_pipe(void **state)
{
	(void)state;
	need_own_table();
	check_closing(REFUSED_NONE, close_a_pipe);
	assert_stored("1000");
}

static void host_closes_a_pipe_that_was_copied(void **state)
{
	(void)state;
	check_closing(REFUSED_CLOSE_RANGE, close_a_pipe);
	assert_stored("1000");
}

static void store_is_in_memory_without_a_table(void **state)
{
	(void)state;
	check_closing(REFUSED_BOTH, store_without_table);
}

/* The flusher once requested the number 0 for ever, and used a whole processor. */
static void store_is_in_memory_without_first_numbers(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__ /* needs none */
	skip();
#endif
	check_closing(REFUSED_NUMBERS, store_without_table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, find_library, tear_down)
		TEST(host_closes_our_descriptors),
		TEST(host_closes_them_without_a_pause),
		TEST(table_is_copied_where_it_cannot_be_made_empty),
		TEST(host_closes_a_pipe),
		TEST(host_closes_a_pipe_that_was_copied),
		TEST(store_is_in_memory_without_a_table),
		TEST(store_is_in_memory_without_first_numbers),
		TEST(host_reads_and_closes),
		TEST(host_locks_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
