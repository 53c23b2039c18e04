/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char trace_path[64];
static sqlite3 *file;

int set_up_file(void **state)
{
	const qp_config config = { .size = sizeof(config), .trace_log_path = trace_path };
	int fd;

	(void)state;
	strcpy(trace_path, "/tmp/queryprof-span-XXXXXX");
	fd = mkstemp(trace_path);
	close(fd);
	/* On a busy machine the budget would leave a query too few samples. */
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", "0"))
		fail_msg("%s", qp_error());
	return sqlite3_open(trace_path, &file);
}

int tear_down_file(void **state)
{
	char other[80];

	(void)state;
	sqlite3_close(file);
	qp_shutdown();
	unlink(trace_path);
	for (const char *suffix = "-wal\0-shm\0"; *suffix; suffix += strlen(suffix) + 1) {
		snprintf(other, sizeof(other), "%s%s", trace_path, suffix);
		unlink(other);
	}
	return 0;
}

static sqlite3_stmt *first_row(const char *sql)
{
	sqlite3_stmt *stmt;

	if (qp_flush(60000))
		fail_msg("%s", qp_error());
	if (sqlite3_prepare_v2(file, sql, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(file));
	return stmt;
}

int64_t ask(const char *sql)
{
	sqlite3_stmt *stmt = first_row(sql);
	int64_t number = sqlite3_column_int64(stmt, 0);

	sqlite3_finalize(stmt);
	return number;
}

const char *ask_text(const char *sql)
{
	static char text[16384];
	sqlite3_stmt *stmt = first_row(sql);
	const char *found = (const char *)sqlite3_column_text(stmt, 0);

	snprintf(text, sizeof(text), "%s", found ? found : "(NULL)");
	sqlite3_finalize(stmt);
	return text;
}

void set(const char *name, const char *value)
{
	if (qp_set(NULL, name, value))
		fail_msg("%s", qp_error());
}

struct wanted {
	const char *name;
	int64_t value;
};

static int compare(void *context, const qp_metric *found)
{
	struct wanted *wanted = context;

	if (strcmp(found->name, wanted->name) != 0)
		return 0;
	wanted->value = found->value;
	return 1;
}

int64_t metric(const char *name)
{
	struct wanted wanted = { name, -1 };

	qp_metrics(compare, &wanted);
	return wanted.value;
}
