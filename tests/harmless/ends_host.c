/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that end, execute other programs, fork, and close descriptors that they do not own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static void flush_all(void)
{
	fflush(NULL); /* the following call does not flush */
}

/* --- ends ------------------------------------------------------------------------ */

/* Some samples are in the file, others not yet. */
static void burn_and_store(void)
{
	sqlite3 *db = open_db();

	burn(db, 75);
	burn_until_stored(db, 20);
}

static void exit_now(void)
{
	burn_and_store();
	_exit(7);
}

static void exit_by_c(void)
{
	burn_and_store();
	_Exit(8);
}

static void exit_quickly(void)
{
	burn_and_store();
	quick_exit(9);
}

static void exit_by_abort(void)
{
	burn_and_store();
	abort();
}

static void *keep_burning(void *context)
{
	sqlite3 *db;

	(void)context;
	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	for (;;)
		burn(db, 10);
	return NULL;
}

static void *burn_and_end(void *context)
{
	burn(context, 75);
	puts("the last thread");
	return NULL;
}

/* The first thread ends, and another thread ends the process. */
static void first_thread_ends(void)
{
	sqlite3 *db = open_db();
	pthread_t thread;

	burn(db, 50);
	CHECK(pthread_create(&thread, NULL, burn_and_end, db) == 0);
	pthread_exit(NULL);
}

/* exit() while other threads run queries. */
static void exit_beside(void)
{
	sqlite3 *db = open_db();
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread, NULL, keep_burning, NULL) == 0);
	burn(db, 50);
	puts("ends");
	exit(10);
}

/* Runs until the test kills it. */
static void burn_on(void)
{
	sqlite3 *db = open_db();

	burn(db, 50);
	puts("burning");
	flush_all();
	for (;;)
		burn(db, 1000);
}

/* --- other programs ------------------------------------------------------------------ */

static char *const true_arguments[] = { (char *)(uintptr_t) "true", NULL };

/* Long enough for a signal or two, which arrive faster than some machines can handle them. */
static void query_a_little(sqlite3 *db)
{
	CHECK(ask(db, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200) "
	              "SELECT count(*) FROM c") == 200);
}

static void become_true(int way)
{
	switch (way % 4) {
	case 0: execv("/bin/true", true_arguments); break;
	case 1: execve("/bin/true", true_arguments, environ); break;
	case 2: execlp("true", "true", (char *)NULL); break;
	case 3: execvp("true", true_arguments); break;
	}
	_exit(50);
}

static void *become_true_here(void *context)
{
	sqlite3 *db;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	query_a_little(db);
	become_true((int)(intptr_t)context);
	return NULL;
}

static int way_of_exec;

static int exec_within(void)
{
	become_true(way_of_exec);
	return 0;
}

/* Prepares an exec right after a query, within one, in another thread, and while another thread runs one. */
static void exec_after(sqlite3 *db, int way)
{
	pthread_t thread;
	sigset_t all;

	way_of_exec = way;
	switch (way / 4 % 5) {
	case 0: query_a_little(db); break;
	case 1: ask(db, "SELECT exec_within()"); break;
	case 2:
		pthread_create(&thread, NULL, become_true_here, (void *)(intptr_t)way);
		for (;;)
			query_a_little(db);
	case 3:
		pthread_create(&thread, NULL, keep_burning, NULL);
		query_a_little(db);
		break;
	case 4: /* pending signals stay pending in the new program */
		query_a_little(db);
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		break;
	}
	become_true(way);
}

static void exec_often(void)
{
	sqlite3 *db = open_db();
	int good = 0;

	add_function(db, "exec_within", exec_within);
	query_a_little(db);
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			exec_after(db, i);
		CHECK(waitpid(child, &status, 0) == child);
		if (status)
			fprintf(stderr, "way %d: status 0x%x\n", i, (unsigned)status);
		good += !status;
	}
	printf("%d good\n", good);
	tell_metrics(db);
}

/* --- processes, made while a query runs ------------------------------------------------- */

static int made, refused;

static void take_status(pid_t child, int expected)
{
	int status;

	if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status) == expected)
		made++;
	else
		refused++;
}

static int by_vfork(void)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
		_exit(50);
	}
	take_status(child, 3);
	child = vfork();
	if (!child)
		_exit(4);
	take_status(child, 4);
	return made;
}

static int by_fork(void)
{
	pid_t child = fork();

	if (!child)
		_exit(5);
	take_status(child, 5);
	return made;
}

static int by_spawn(void)
{
	char *arguments[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
		              (char *)(uintptr_t) "exit 6", NULL };
	pid_t child = -1;

	posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
	take_status(child, 6);
	return made;
}

static int by_system(void)
{
	int status = system("exit 7");

	if (WIFEXITED(status) && WEXITSTATUS(status) == 7)
		made++;
	else
		refused++;
	return made;
}

static int by_popen(void)
{
	FILE *pipe = popen("echo 8", "r");
	int number = 0;

	if (pipe && fscanf(pipe, "%d", &number) == 1 && number == 8 && pclose(pipe) == 0)
		made++;
	else
		refused++;
	return made;
}

static void make_processes(void)
{
	static const struct {
		const char *name;
		int (*make)(void);
	} ways[] = {
		{ "by_vfork", by_vfork },   { "by_fork", by_fork },   { "by_spawn", by_spawn },
		{ "by_system", by_system }, { "by_popen", by_popen },
	};
	sqlite3 *db = open_db();

	burn(db, 50);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char *sql = sqlite3_mprintf(
			"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) "
			"SELECT max(CASE x %% 1000 WHEN 0 THEN %s() END) FROM c",
			ways[i].name);

		made = refused = 0;
		add_function(db, ways[i].name, ways[i].make);
		printf("%s: %lld", ways[i].name, ask(db, sql));
		printf(", %d refused\n", refused);
		sqlite3_free(sql);
	}
	tell_metrics(db);
}

/* --- descriptors -------------------------------------------------------------------------- */

#define FILES 300

/* Opens files of all kinds, which get the free descriptor numbers. */
static void open_own(int fds[FILES])
{
	int pair[2];

	for (int i = 0; i < FILES; i++) {
		if (i % 3 == 1) {
			CHECK(pipe(pair) == 0);
			fds[i] = pair[0]; /* a stray write to it would be readable here */
		} else if (i % 3 == 2) {
			CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
			fds[i] = pair[0];
		} else {
			fds[i] = open(".", O_TMPFILE | O_RDWR, 0600);
			CHECK(fds[i] >= 0 && write(fds[i], "mine", 4) == 4);
			continue;
		}
		fcntl(pair[1], F_SETFL, O_NONBLOCK);
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
	}
}

static int own_intact(const int fds[FILES])
{
	int good = 0;

	for (int i = 0; i < FILES; i++) {
		struct stat status;
		char bytes[8];

		if (fstat(fds[i], &status))
			continue;
		if (i % 3)
			good += read(fds[i], bytes, sizeof(bytes)) < 0 && errno == EAGAIN;
		else
			good += status.st_size == 4 && pread(fds[i], bytes, 8, 0) == 4 &&
			        !memcmp(bytes, "mine", 4) && lseek(fds[i], 0, SEEK_CUR) == 4;
	}
	return good;
}

/* Closes all descriptors but the first three, including the library's. */
static void close_others(void)
{
	sqlite3 *db = open_db();
	static int fds[FILES];

	burn(db, 100); /* longer than the library needs to store something */
	CHECK(close_range(3, ~0U, 0) == 0);
	open_own(fds);
	burn(db, 150);
	printf("%d of %d files as they were\n", own_intact(fds), FILES);
	for (int i = 0; i < FILES; i++)
		CHECK(close(fds[i]) == 0);
	ask(db, "SELECT /* later */ 1");
	for (int i = 0; i < 10; i++)
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) "
		          "SELECT /* later */ count(*) FROM c") == 100000);
	tell_metrics(db);
}

/* A daemon: its parents end, and it has only the descriptors that it opens. Writes its result to the file
 * `done`, in the folder where it was started. */
static void daemonize(void)
{
	sqlite3 *db = open_db();
	static int fds[FILES];
	char folder[4096], line[64];
	int result;
	pid_t child;

	CHECK(getcwd(folder, sizeof(folder)) != NULL);
	burn(db, 100);
	child = fork();
	CHECK(child >= 0);
	if (child)
		_exit(0);
	setsid();
	burn(db, 50); /* the library has files open at the next fork */
	child = fork();
	CHECK(child >= 0);
	if (child)
		_exit(0);
	burn(db, 100);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	CHECK(chdir("/") == 0);
	umask(0);
	CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
	CHECK(chdir(folder) == 0);
	open_own(fds);
	for (int i = 0; i < 10; i++)
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200000) "
		          "SELECT /* later */ count(*) FROM c") == 200000);
	snprintf(line, sizeof(line), "%d of %d files as they were\n", own_intact(fds), FILES);
	result = open("result", O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(result >= 0 && write(result, line, strlen(line)) == (ssize_t)strlen(line));
	close(result);
	CHECK(rename("result", "done") == 0);
}

const struct scenario scenarios[] = {
	{ "exit_now", exit_now },
	{ "exit_by_c", exit_by_c },
	{ "exit_quickly", exit_quickly },
	{ "exit_by_abort", exit_by_abort },
	{ "first_thread_ends", first_thread_ends },
	{ "exit_beside", exit_beside },
	{ "burn_on", burn_on },
	{ "exec_often", exec_often },
	{ "make_processes", make_processes },
	{ "close_others", close_others },
	{ "daemonize", daemonize },
	{ NULL, NULL },
};
