/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log: this program starts itself with different environments, and reads the log.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/debug.h"

static char folder[] = "/tmp/base_debug.XXXXXX";

/* Writing a line is not a cancellation point. */
static void *log_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	debug_log(DEBUG_STORE, "the cancelled thread's store");
	return argument;
}

/* The child: logs under two topics, and prints errors. */
static int log_something(void)
{
	pthread_t thread;
	char *error;
	void *result;

	debug_log(DEBUG_STORE, "the store says %d", 1);
	debug_log(DEBUG_HOOKS, "the hooks say %d", 2);
	if (fork() == 0) {
		debug_log(DEBUG_STORE, "the child's store");
		_exit(0);
	}
	wait(NULL);
	pthread_create(&thread, NULL, log_cancelled, NULL);
	pthread_join(thread, &result);
	if (result == PTHREAD_CANCELED)
		printf("cancelled");
	error = debug_error();
	printf("%s", error ? error : "");
	free(error);
	return 0;
}

/* The output of the child. */
static const char *run(const char *topics, const char *file)
{
	static char said[512];
	char command[1024];
	size_t size;
	FILE *pipe;

	snprintf(command, sizeof(command),
	         "cd '%s' && rm -f *.log && TMPDIR='%s' QUERYPROF_DEBUG='%s' QUERYPROF_DEBUG_FILE='%s' "
	         "/proc/%d/exe child",
	         folder, folder, topics, file, (int)getpid());
	pipe = popen(command, "r");
	assert_non_null(pipe);
	size = fread(said, 1, sizeof(said) - 1, pipe);
	said[size] = 0;
	assert_int_equal(pclose(pipe), 0);
	return said;
}

/* Counts the lines of the logs that contain the text. */
static int count_lines(const char *text)
{
	char command[256];
	FILE *pipe;
	int count = -1;

	snprintf(command, sizeof(command), "cat '%s'/*.log 2>/dev/null | grep -c '%s'", folder, text);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%d", &count), 1);
	pclose(pipe);
	return count;
}

static int count_logs(void)
{
	char command[256];
	FILE *pipe;
	int count = -1;

	snprintf(command, sizeof(command), "ls '%s' | grep -c 'log$'", folder);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%d", &count), 1);
	pclose(pipe);
	return count;
}

static void off_by_default(void **state)
{
	(void)state;
	assert_string_equal(run("", ""), "");
	assert_int_equal(count_logs(), 0);
}

static void logs_the_topics_asked_for(void **state)
{
	(void)state;
	assert_string_equal(run("store,timers", ""), "");
	assert_int_equal(count_logs(), 2); /* one for each process */
	assert_int_equal(count_lines(" store: the store says 1$"), 1);
	assert_int_equal(count_lines(" store: the child.s store$"), 1);
	assert_int_equal(count_lines("hooks"), 0);
	assert_string_equal(run("all", ""), "");
	assert_int_equal(count_lines(" hooks: the hooks say 2$"), 1);
}

static void logs_to_one_file(void **state)
{
	(void)state;
	assert_string_equal(run("store", "one.log"), "");
	assert_int_equal(count_logs(), 1);
	assert_int_equal(count_lines(" store: "), 3);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	assert_string_equal(run("store,network", ""), "QUERYPROF_DEBUG: \"network\" is not one of hooks, "
	                                              "symbols, store, timers, all");
	assert_int_equal(count_logs(), 0);
	assert_non_null(strstr(run("store", "missing/one.log"), "No such file or directory"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_by_default),
		cmocka_unit_test(logs_the_topics_asked_for),
		cmocka_unit_test(logs_to_one_file),
		cmocka_unit_test(says_what_is_wrong),
	};
	char command[64];
	int failed;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return log_something();
	assert_non_null(mkdtemp(folder));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? 1 : failed;
}
