/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constructor of a library starts and attaches queryprof while another thread does the same and waits for
 * the loader's lock. Neither may wait for the other forever. A thread's first query does not wait for that
 * lock at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <dlfcn.h>
#include <pthread.h>
#include <queryprof.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HANG_S 300

static void start(sqlite3 *db)
{
	(void)db;
	assert_int_equal(qp_init(NULL), QP_OK);
}

static void attach(sqlite3 *db)
{
	if (qp_attach(db))
		fail_msg("%s", qp_error());
}

static struct {
	void (*act)(sqlite3 *db);
	bool is_joined; /* the constructor waits until the other thread has finished */
	sqlite3 *here, *there;
	pthread_t other;
	atomic_int other_id;
	atomic_bool other_is_done;
} scene;

static void *act_there(void *unused)
{
	(void)unused;
	atomic_store(&scene.other_id, gettid());
	scene.act(scene.there);
	atomic_store(&scene.other_is_done, true);
	return NULL;
}

static bool is_asleep(int thread_id)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread_id);
	file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(file);
	}
	return state == 'S';
}

/* Waits until the other thread sleeps, usually for the loader's lock, or has ended. */
static void await_other(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int asleep = 0; (scene.is_joined || asleep < 50) && !atomic_load(&scene.other_is_done);) {
		int id = atomic_load(&scene.other_id);

		asleep = id && is_asleep(id) ? asleep + 1 : 0;
		nanosleep(&moment, NULL);
	}
}

/* Called by the plugin. */
__attribute__((visibility("default"))) void run_in_constructor(void);

void run_in_constructor(void)
{
	assert_int_equal(pthread_create(&scene.other, NULL, act_there, NULL), 0);
	await_other();
	scene.act(scene.here);
}

static void open_both(void)
{
	assert_int_equal(sqlite3_open(":memory:", &scene.here), SQLITE_OK);
	assert_int_equal(sqlite3_open(":memory:", &scene.there), SQLITE_OK);
}

static void meet(void (*act)(sqlite3 *db))
{
	void *plugin;

	scene.act = act;
	plugin = dlopen(LOADING_PLUGIN, RTLD_NOW);
	if (!plugin)
		fail_msg("%s", dlerror());
	assert_int_equal(pthread_join(scene.other, NULL), 0);
	/* Both connections can be used afterwards. */
	attach(scene.here);
	attach(scene.there);
	assert_int_equal(sqlite3_exec(scene.here, "SELECT count(*) FROM system.processes", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(sqlite3_exec(scene.there, "SELECT count(*) FROM system.processes", NULL, NULL, NULL),
	                 SQLITE_OK);
	sqlite3_close(scene.here);
	sqlite3_close(scene.there);
	dlclose(plugin);
}

static void starts_in_a_constructor(void **state)
{
	(void)state;
	open_both();
	meet(start);
}

static void attaches_in_a_constructor(void **state)
{
	(void)state;
	start(NULL);
	open_both();
	meet(attach);
}

static void query(sqlite3 *db)
{
	assert_int_equal(sqlite3_exec(db,
	                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
	                              "300000) SELECT count(*) FROM n",
	                              NULL, NULL, NULL),
	                 SQLITE_OK);
}

/* The constructor waits for the other thread's first queries. */
static void queries_in_a_constructor(void **state)
{
	(void)state;
	start(NULL);
	assert_int_equal(qp_set(NULL, "query_profiler_cpu_time_period_ns", "1000000"), QP_OK);
	open_both();
	attach(scene.here);
	attach(scene.there);
	scene.is_joined = true;
	meet(query);
}

/* Recorded by the command. These are the first queries of the process. */
static void begins_in_a_constructor(void **state)
{
	(void)state;
	open_both();
	scene.is_joined = true;
	meet(query);
}

static int attach_each(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)error, (void)api;
	return qp_attach(db) ? SQLITE_ERROR : SQLITE_OK;
}

/* queryprof opens a connection of its own to fetch SQLite's routines. The auto extension runs for that
 * connection, too. */
static void attaches_in_an_auto_extension(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_auto_extension((void (*)(void))attach_each), SQLITE_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM system.processes", NULL, NULL, NULL),
		                 SQLITE_OK);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
	}
	sqlite3_reset_auto_extension();
}

/* Each test needs a process of its own, because the library starts and patches the hooks only once. */
int main(int argc, char **argv)
{
	const struct CMUnitTest starting[] = { cmocka_unit_test(starts_in_a_constructor) };
	const struct CMUnitTest attaching[] = { cmocka_unit_test(attaches_in_a_constructor) };
	const struct CMUnitTest querying[] = { cmocka_unit_test(queries_in_a_constructor) };
	const struct CMUnitTest beginning[] = { cmocka_unit_test(begins_in_a_constructor) };
	const struct CMUnitTest extending[] = { cmocka_unit_test(attaches_in_an_auto_extension) };

	alarm(HANG_S);
	if (argc > 1 && !strcmp(argv[1], "starts"))
		return cmocka_run_group_tests(starting, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "queries"))
		return cmocka_run_group_tests(querying, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "begins"))
		return cmocka_run_group_tests(beginning, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "extends"))
		return cmocka_run_group_tests(extending, NULL, NULL);
	return cmocka_run_group_tests(attaching, NULL, NULL);
}
