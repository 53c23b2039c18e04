/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <queryprof.h>

#include "checked_mutex.h"

static char directory[64];
static bool has_library;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	(void)status, (void)kind, (void)at;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *library(void)
{
	const char *named = getenv("QUERYPROF_TEST_LIBRARY");

	return named ? named : QUERYPROF_LIBRARY;
}

static void must(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		exit(2);
	}
}

static void load(void)
{
	sqlite3 *db;
	char *error = NULL;

	must(sqlite3_open(":memory:", &db) == SQLITE_OK, "open");
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, library(), "sqlite3_queryprof_init", &error))
		must(0, error);
	sqlite3_close(db);
}

static void record(void)
{
	void *handle = dlopen(library(), RTLD_NOW);
	int (*start)(void);

	must(handle != NULL, "the library cannot be loaded");
	*(void **)&start = dlsym(handle, "qp_record");
	must(start && !start(), "qp_record");
}

void host_begin(const char *how)
{
	char path[128];

	must(check_mutexes(), "SQLite takes no mutexes of the program's");
	strcpy(directory, "/tmp/queryprof-watch-XXXXXX");
	must(mkdtemp(directory) != NULL, "mkdtemp");
	atexit(remove_directory);
	snprintf(path, sizeof(path), "%s/trace", directory);
	setenv("QUERYPROF_TRACE_LOG_PATH", path, 1);
	setenv("QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS", "1000000", 1);
	setenv("QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS", "1000000", 1);
	setenv("QUERYPROF_LOG_QUERIES_MIN_QUERY_DURATION_NS", "0", 1);
	has_library = strcmp(how, "alone") != 0;
	if (!strcmp(how, "loaded"))
		load();
	else if (!strcmp(how, "recorded"))
		record();
	else
		must(!strcmp(how, "alone"), "loaded, recorded or alone?");
}

sqlite3 *host_open(const char *name)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), *name ? "%s/%s" : ":memory:", directory, name);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 300000);
	return db;
}

void host_exec(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
}

sqlite3_stmt *host_prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return stmt;
}

int64_t host_int(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = host_prepare(db, sql);
	int64_t number;

	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

struct wanted {
	const char *name;
	int64_t value;
};

static int take_metric(void *context, const qp_metric *metric)
{
	struct wanted *wanted = context;

	if (strcmp(metric->name, wanted->name) != 0)
		return 0;
	wanted->value = metric->value;
	return 1;
}

int64_t host_metric(const char *name)
{
	int (*metrics)(int (*)(void *, const qp_metric *), void *);
	struct wanted wanted = { name, -1 };

	if (!has_library)
		return 0;
	*(void **)&metrics = dlsym(dlopen(library(), RTLD_NOW | RTLD_NOLOAD), "qp_metrics");
	assert_non_null(metrics);
	metrics(take_metric, &wanted);
	assert_true(wanted.value >= 0);
	return wanted.value;
}

int host_end(int failed)
{
	if (has_library && !host_metric("queries_logged")) {
		fprintf(stderr, "nothing was followed\n");
		return 1;
	}
	return failed;
}

const char *host_library(void)
{
	return library();
}

const char *host_directory(void)
{
	return directory;
}
